//! The examination of one server, alone or among others.

use ::redis::{Pipeline, Value};

use super::aim::{Aim, Standing};
use super::clock::{self, Clock};
use super::rights::Missing;
use super::session::{Probe, Session};
use super::subscription::Subscription;
use super::{failures, proxy, rehearsal, settings};
use crate::backend::redis::connect::opener::Opener;
use crate::backend::redis::wire::delete::Delete;
use crate::backend::redis::wire::greeting::Introduced;
use crate::backend::redis::wire::server::{self, Mode};
use crate::check::{Code, Finding, Report, Role, Severity};
use crate::types::owner::Origin;

/// Everything about a server, as far as it answers; with its clock, where that was read.
pub(super) async fn examine(
    opener: &Opener,
    aim: &Aim,
    standing: Standing<'_>,
    report: &mut Report,
) -> Option<Clock> {
    match steps(opener, aim, standing, report).await {
        Ok(clock) => clock,
        Err(finding) => {
            report.add([finding]);
            None
        }
    }
}

/// The error is a finding that makes everything after it pointless.
async fn steps(
    opener: &Opener,
    aim: &Aim,
    standing: Standing<'_>,
    report: &mut Report,
) -> Result<Option<Clock>, Finding> {
    let target = Session::target(opener).await?;
    report.address = target.named();
    let session = Session::connect(opener, target).await?;
    let Introduced { hello, names, .. } = session.greet().await?;
    report.server = server::name(&hello);
    let elsewhere = elsewhere(&session, &hello, standing).await?;
    if let Some(unfit) = server::unfit_by_greeting(&hello) {
        return Err(unfit);
    }
    let names = names.map_err(|error| failures::operation("loading the scripts", &error))?;
    if standing.shard.is_none() && elsewhere.is_none() {
        report.add(nodes(&session, Mode::of(&hello), aim.role).await?);
    }
    let is_replica = elsewhere.is_some();
    report.add(elsewhere);
    // No key begins with an unsound prefix, which is a finding of every backend's.
    if let Ok(Some(probe)) = Probe::new(&aim.prefix, &names, standing.shard) {
        let delete = Delete::of(&hello);
        let mut missing = Missing::of(&session, &probe, aim.role, delete, report).await?;
        if aim.role == Role::Reader {
            report.add(missing.findings(session.target.user(), true));
            return clock::compare(&session, report).await;
        }
        let subscription = Subscription::open(&session, &probe, &mut missing, report).await;
        report.add(missing.findings(session.target.user(), probe.names.are_cached()));
        if !is_replica {
            report.add(rehearsal::run(&session, &probe, subscription, &missing).await?);
        }
    }
    report.add(proxy::check(&session).await?);
    settings::check(&session, standing, report).await?;
    clock::compare(&session, report).await
}

/// What is at the address instead of a server for locks; the error is one that makes everything after it pointless.
async fn elsewhere(
    session: &Session<'_>,
    hello: &Value,
    standing: Standing<'_>,
) -> Result<Option<Finding>, Finding> {
    if standing.shard.is_some() {
        return if server::is_replica(hello) { Err(demoted()) } else { Ok(None) };
    }
    match session.elsewhere(hello).await? {
        Some(sentinel) if Mode::of(hello) == Mode::Sentinel => Err(sentinel),
        elsewhere => Ok(elsewhere),
    }
}

/// Whether the server is of a cluster; the error is one of several nodes, which refuses most keys.
async fn nodes(session: &Session<'_>, mode: Mode, role: Role) -> Result<Option<Finding>, Finding> {
    let mut pipeline = Pipeline::new();
    if let Ok(origin) = Origin::draw() {
        let trial = session.opener.namespace.of_trial(origin);
        let command = if role == Role::Reader { Mode::OF_READERS } else { Mode::OF_HOLDERS };
        mode.probe(&trial, command, &mut pipeline);
    }
    if !pipeline.is_empty()
        && let Some(unfit) =
            server::unfit_by_answers(&session.call(&pipeline).await?, &session.target)
    {
        return Err(unfit);
    }
    let message = "this server is in a cluster, and refuses keys once that has several shards";
    let finding = Finding::new(Severity::Warning, Code::Cluster, message);
    Ok((mode == Mode::Cluster).then(|| finding.advise(server::of_cluster(&session.target))))
}

/// A node that was a master when its cluster was asked.
fn demoted() -> Finding {
    let message = "this node is a replica by now: a failover is under way, or is just over";
    Finding::new(Severity::Warning, Code::Replica, message).advise("check again")
}
