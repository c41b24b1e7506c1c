//! The check of a server: everything that locks do is done once, with a lock of the check's own, and
//! what they depend on is read.

use ::redis::Pipeline;

use self::group::Group;
use self::rights::Missing;
use self::session::{Probe, Session};
use self::subscription::Subscription;
use super::reach::opener::Opener;
use super::wire::greeting::Introduced;
use super::wire::server::{self, Mode};
use crate::backend::redis::fault;
use crate::check::{Code, Finding, Report, Severity};
use crate::types::token::Origin;

mod clock;
mod failures;
mod group;
mod proxy;
mod rehearsal;
mod rights;
mod sentinel;
mod session;
mod settings;
mod subscription;

/// Checks a server on connections of the check's own, until it gives no answer, and the Sentinels that name it.
pub(super) async fn check(opener: Opener, prefix: String) -> Report {
    let mut report = Report::new(&opener.server);
    let group = match opener.sentinels() {
        Some(sentinels) => Some(Group::of(sentinels).await),
        None => None,
    };
    if group.as_ref().is_none_or(Group::names_primary)
        && let Err(finding) = examine(&opener, &prefix, group.as_ref(), &mut report).await
    {
        report.add([finding]);
    }
    report.locate();
    report.add(group.iter().flat_map(Group::findings));
    report
}

/// The report where the check itself ended midway.
pub(super) fn unchecked(server: &str) -> Report {
    let mut report = Report::new(server);
    report.add([failures::silence(fault::runtime_ended(server).message)]);
    report
}

/// The error is a finding that makes everything after it pointless.
async fn examine(
    opener: &Opener,
    prefix: &str,
    group: Option<&Group>,
    report: &mut Report,
) -> Result<(), Finding> {
    let login = opener.login().await.map_err(|fault| failures::credentials(&fault))?;
    let target = opener.connecting(opener.target(&login)).await;
    let target = target.map_err(|fault| failures::fault(&fault))?;
    report.address = target.named();
    let session = Session::connect(opener, target).await?;
    let Introduced { hello, names } = session.greet().await?;
    report.server = server::name(&hello);
    let elsewhere = session.elsewhere(&hello).await?;
    if Mode::of(&hello) == Mode::Sentinel
        && let Some(sentinel) = elsewhere
    {
        return Err(sentinel);
    }
    if let Some(unfit) = server::unfit_by_greeting(&hello) {
        return Err(unfit);
    }
    let names = names.map_err(|error| failures::operation("loading the scripts", &error))?;
    let is_replica = server::is_replica(&hello);
    if !is_replica {
        report.add(nodes(&session, Mode::of(&hello)).await?);
    }
    report.add(elsewhere);
    // No key begins with an unsound prefix, which is a finding of every backend's.
    if let Ok(probe) = Probe::new(prefix, &names) {
        let mut missing = Missing::of(&session, &probe, report).await?;
        let subscription = Subscription::open(&session, &probe, &mut missing, report).await;
        report.add(missing.findings(session.target.user(), probe.names.are_cached()));
        if !is_replica {
            report.add(rehearsal::run(&session, &probe, subscription, &missing).await?);
        }
    }
    report.add(proxy::look(&session).await?);
    settings::look(&session, group, report).await?;
    clock::compare(&session, report).await
}

/// Whether the server is of a cluster; the error is one of several nodes, which refuses most keys.
async fn nodes(session: &Session<'_>, mode: Mode) -> Result<Option<Finding>, Finding> {
    let mut pipeline = Pipeline::new();
    if let Ok(origin) = Origin::draw() {
        mode.ask(&session.opener.namespace.of_trial(origin), &mut pipeline);
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
