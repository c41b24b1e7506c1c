//! The check's run of all steps on its own lock: from acquiring to a grant that is handed off and received.

use std::slice;

use super::rights::Missing;
use super::subscription::ProbeSubscription;
use crate::core::backend::Renewal;
use crate::core::naming::namespace::Channels;
use crate::core::process::clock::boot_time;
use crate::core::types::permit::{LocalNumber, LocalPermit, PermitsKey};
use crate::findings::{Code, Finding};
use crate::redis::wire::permits::Asker;
use crate::redis::wire::probe::{self, Probe, Step, TOGETHER, attempt};
use crate::redis::wire::script;
use crate::redis::wire::session::Session;

/// Does everything; returns what went wrong and is not explained by a missing right.
pub(super) async fn run(
    session: &Session<'_>,
    probe: Probe,
    subscription: Option<ProbeSubscription>,
    missing: &Missing,
) -> Result<Vec<Finding>, Finding> {
    let channels = session.opener.channels;
    let tried = probe::run(session, probe, |probe| all_steps(probe, channels)).await?;
    let mut flaws = tried.flaws(&session.target);
    let is_complete = flaws.iter().all(|flaw| flaw.finding.code() == Code::CrossSlotRefused);
    flaws.retain(|flaw| !flaw.error.as_ref().is_some_and(|error| missing.explain(error)));
    // A step that fails makes others fail.
    let mut findings: Vec<_> = flaws.into_iter().take(1).map(Finding::from).collect();
    if let Some(subscription) = subscription
        && is_complete
        && !missing.explains_silence()
    {
        findings.extend(subscription.receive(session, &tried.probe).await);
    }
    Ok(findings)
}

fn all_steps(probe: &Probe, channels: Channels) -> Vec<Step> {
    probe::steps(probe, || more(probe, channels))
}

fn more(probe: &Probe, channels: Channels) -> Vec<Step> {
    let Probe { key, tried, origin, names, .. } = probe;
    let one = attempt(key, *origin, 1);
    let other = attempt(tried, *origin, 1);
    let mut more = vec![Step::script("inspecting a lock", script::inspect(names, key).command)];
    more.extend(permits(probe));
    match channels {
        Channels::Plain => {
            let free_all = script::free_all(names, slice::from_ref(&one)).command;
            let renewals = [&one, &other].map(|of| Renewal::new(of, Some(of.ttl), boot_time()));
            more.extend(probe::together(probe));
            more.push(Step::script("freeing locks together", free_all));
            more.push(Step::script(TOGETHER, script::renew(names, &renewals).command));
        }
        // Each command is about one lock.
        Channels::Sharded => {
            let free_one = script::free_one(names, &one, None).command;
            more.push(Step::script("freeing a lock", free_one));
        }
    }
    more
}

fn permits(Probe { key, origin, prefix, names, .. }: &Probe) -> Vec<Step> {
    let Ok(permits_key) = PermitsKey::of(key, prefix.len()) else { return Vec::new() };
    let local_permit = LocalPermit { permits_key, number: LocalNumber::OneOf(1), permits: 2 };
    let attempt = attempt(&local_permit.permits_key.member(1), *origin, 1);
    let asker = Asker { attempt: &attempt, local_permit: &local_permit };
    vec![
        Step::script("taking a permit", asker.take(names).command),
        Step::script("leaving a permit", asker.leave(names).command),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::naming::namespace::Namespace;
    use crate::core::types::slot::Slot;
    use crate::core::types::tag::tag;
    use crate::redis::wire::script::Names;
    use crate::redis::wire::source::Script;

    #[test]
    fn every_script_is_run() {
        let names = Names::uncached(Namespace::default(), Channels::Plain);
        let Ok(probe) = Probe::new("shop:", &names, None) else { panic!("a sound prefix") };
        let steps = all_steps(&probe, Channels::Plain);
        let sent = steps.iter().map(|step| step.command.get_packed_command());
        let sent = String::from_utf8(sent.flatten().collect()).unwrap();
        // Those of a cluster, and of tickets, are not.
        let others = [Script::FreeOne, Script::Transfer];
        for script in Script::ALL.iter().filter(|script| !others.contains(script)) {
            assert!(sent.contains(script.source(Channels::Plain)), "{script:?}");
        }
    }

    #[test]
    fn every_step_in_a_cluster_is_about_one_slot() {
        let names = Names::uncached(Namespace::default(), Channels::Sharded);
        let Ok(probe) = Probe::new("shop:", &names, Some(Slot::new(9))) else { panic!("a key") };
        assert_eq!(Slot::of(&probe.key), Slot::new(9));
        assert_eq!(Slot::of(&probe.tried), Slot::new(9));
        let steps = all_steps(&probe, Channels::Sharded);
        let packed = steps.iter().flat_map(|step| step.command.get_packed_command());
        let sent = String::from_utf8(packed.collect()).unwrap();
        let tag = format!("{{{}}}", tag(Slot::new(9)));
        let keys = sent.lines().filter(|line| line.contains(":probe:"));
        assert!(keys.clone().count() > 20 && keys.clone().all(|key| key.contains(&tag)), "{sent}");
        let needed = [Script::FreeOne, Script::Enqueue, Script::Release, Script::Leave];
        assert!(needed.iter().all(|one| sent.contains(one.source(Channels::Sharded))));
    }
}
