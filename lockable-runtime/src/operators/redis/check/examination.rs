use super::clock;
use super::rights::Missing;
use super::session::{connect, target};
use super::subscription::ProbeSubscription;
use super::{dry_run, proxy};
use crate::core::types::slot::Slot;
use crate::findings::{Code, Finding, Severity};
use crate::operators::check::{Report, Role};
use crate::redis::connect::opener::Opener;
use crate::redis::connect::shards::Shard;
use crate::redis::wire::delete::Delete;
use crate::redis::wire::flaw::Flaw;
use crate::redis::wire::probe::{self, Probe};
use crate::redis::wire::script::Names;
use crate::redis::wire::server::{self, Clock, Mode};
use crate::redis::wire::session::{Handshake, Session};
use crate::redis::wire::settings;

#[derive(Clone)]
pub(super) struct Aim {
    pub(super) prefix: String,
    pub(super) role: Role,
}

/// Examines a server as far as it replies, and its clock. `shard` is what it is the master of in a cluster.
pub(super) async fn examine(
    opener: &Opener,
    aim: &Aim,
    shard: Option<&Shard>,
    report: &mut Report,
) -> Option<Clock> {
    match steps(opener, aim, shard, report).await {
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
    shard: Option<&Shard>,
    report: &mut Report,
) -> Result<Option<Clock>, Finding> {
    let target = target(opener).await?;
    report.address = target.named();
    let session = connect(opener, target).await?;
    let Handshake { hello, names, settings, flaws, .. } =
        session.handshake(aim.role != Role::Reader).await?;
    report.server = server::name(&hello);
    let is_sound = flaws.is_empty();
    for finding in flaws.into_iter().map(Finding::from) {
        match (finding.code(), shard) {
            // It has settings and users, and may be the primary soon.
            (Code::Replica, None) => report.add([finding]),
            (Code::Replica, Some(_)) => return Err(finding.graded(Severity::Warning)),
            _ => return Err(finding),
        }
    }
    if shard.is_none() && is_sound {
        report.add(nodes(&session, &names, Mode::of(&hello)).await?);
    }
    // No key begins with an unsound prefix, which is a finding of every backend's.
    if let Some(probe) = probe(aim, &names, shard) {
        let delete = Delete::of(&hello);
        let mut missing = Missing::of(&session, &probe, aim.role, delete, report).await?;
        if aim.role == Role::Reader {
            report.add(missing.findings(session.target.user()));
            return clock::compare(&session, report).await;
        }
        let subscription = ProbeSubscription::open(&session, &probe, &mut missing, report).await;
        report.add(missing.findings(session.target.user()));
        if is_sound {
            report.add(dry_run::run(&session, probe, subscription, &missing).await?);
        }
    }
    report.add(proxy::check(&session).await?);
    report.add(settings::findings(settings, opener, &session.target, shard));
    clock::compare(&session, report).await
}

/// In a slot of the shard, where there is one; `None` where the prefix puts all locks into the slot of another.
fn probe(aim: &Aim, names: &Names, shard: Option<&Shard>) -> Option<Probe> {
    // The last one, because slots are often moved from the first one on.
    let slot = shard.and_then(|shard| shard.slots().last());
    let probe = Probe::new(&aim.prefix, names, slot).ok()?;
    shard.is_none_or(|shard| shard.has(Slot::of(&probe.key))).then_some(probe)
}

/// Whether the server is of a cluster; the error is one of several nodes, which refuses most keys.
async fn nodes(session: &Session<'_>, names: &Names, mode: Mode) -> Result<Option<Finding>, Flaw> {
    let target = &session.target;
    if let Ok(probe) = Probe::new("", names, None) {
        let tried = probe::run(session, probe, |probe| probe::others(session, probe, mode)).await?;
        tried.flaws(target).into_iter().next().map_or(Ok(()), Err)?;
    }
    let message = "this server is in a cluster, and refuses keys once that has several shards";
    let finding = Finding::new(Severity::Warning, Code::Cluster, message);
    Ok((mode == Mode::Cluster).then(|| finding.advise(server::of_cluster(target))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::naming::namespace::{Channels, Namespace};
    use crate::redis::connect::endpoint::Endpoint;

    #[test]
    fn a_probe_is_in_a_slot_of_its_shard() {
        let names = Names::uncached(Namespace::default(), Channels::Sharded);
        let endpoint = Endpoint { host: "a".to_owned(), port: 1 };
        let shard = Shard { ranges: vec![7..=9], master: endpoint, replicas: Vec::new() };
        let slot = |prefix: &str| {
            let aim = Aim { prefix: prefix.to_owned(), role: Role::App };
            probe(&aim, &names, Some(&shard)).map(|probe| Slot::of(&probe.key))
        };
        assert_eq!(slot("shop:"), Some(Slot::new(9)));
        assert_eq!(slot("{elsewhere}:"), None);
    }
}
