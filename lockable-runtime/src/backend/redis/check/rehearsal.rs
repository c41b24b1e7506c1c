//! The check's run of all steps on a lock of its own: from acquiring to a grant that is handed off and
//! received.

use std::slice;

use ::redis::Value;

use super::failures;
use super::rights::Missing;
use super::session::{Probe, Session};
use super::subscription::Subscription;
use crate::backend::Renewal;
use crate::backend::redis::fault;
use crate::backend::redis::wire::permits::Asker;
use crate::backend::redis::wire::script;
use crate::backend::redis::wire::trial::{self, Step, attempt};
use crate::backend::redis::wire::{command, server};
use crate::check::{Code, Finding, Severity};
use crate::types::clock::boot_time;
use crate::types::namespace::Channels;
use crate::types::permit::{Family, Lane, LaneNumber};

/// The one step with keys in several slots.
const TOGETHER: &str = "renewing locks together";

/// Does everything; returns what went wrong and is not explained by a missing right.
pub(super) async fn run(
    session: &Session<'_>,
    probe: &Probe,
    subscription: Option<Subscription>,
    missing: &Missing,
) -> Result<Vec<Finding>, Finding> {
    let steps = all_steps(probe, session.opener.channels);
    let commands = steps.iter().map(|step| step.command.clone());
    let commands =
        command::pipeline(commands.chain(command::clean_up(&probe.names.namespace, &probe.key)));
    let mut replies = session.call(&commands).await?;
    trial::is_spread(&steps, &mut replies);
    if trial::is_split(&steps, &replies) {
        return Ok(vec![server::split()]);
    }
    let mut findings = Vec::new();
    let is_complete = judge(&steps, replies, missing, &mut findings);
    if let Some(subscription) = subscription
        && is_complete
        && !missing.explains_silence()
    {
        findings.extend(subscription.receive(session, probe).await);
    }
    Ok(findings)
}

/// Every verb and every script that is run where wake-ups are published so.
fn all_steps(probe: &Probe, channels: Channels) -> Vec<Step> {
    let Probe { key, tried, origin, prefix, names, .. } = probe;
    let one = attempt(key, *origin, 1);
    let other = attempt(tried, *origin, 1);
    let mut steps = trial::steps(names, key, *origin);
    steps.push(Step::script("inspecting a lock", script::inspect(names, key).command));
    steps.extend(permits(probe));
    match channels {
        Channels::Plain => {
            let free_all = script::free_all(names, slice::from_ref(&one)).command;
            let renewals = [&one, &other].map(|of| Renewal::new(of, Some(of.ttl), boot_time()));
            steps.extend(trial::meetings(names, prefix));
            steps.push(Step::script("freeing locks together", free_all));
            steps.push(Step::script(TOGETHER, script::renew(names, &renewals).command));
        }
        // Each command is about one lock.
        Channels::Sharded => {
            let free_one = script::free_one(names, &one, None).command;
            steps.push(Step::script("freeing a lock", free_one));
        }
    }
    steps
}

/// A permit that is taken and given back.
fn permits(Probe { key, origin, prefix, names, .. }: &Probe) -> Vec<Step> {
    let Ok(family) = Family::of(key, prefix.len()) else { return Vec::new() };
    let lane = Lane { family, number: LaneNumber::OneOf(1), permits: 2 };
    let attempt = attempt(&lane.family.member(1), *origin, 1);
    let asker = Asker { attempt: &attempt, lane: &lane };
    vec![
        Step::script("taking a permit", asker.take(names).command),
        Step::script("leaving a permit", asker.leave(names).command),
    ]
}

/// Adds the first step that went wrong; returns whether all went well.
fn judge(
    steps: &[Step],
    replies: Vec<Value>,
    missing: &Missing,
    findings: &mut Vec<Finding>,
) -> bool {
    let mut is_complete = true;
    for (step, reply) in steps.iter().zip(replies) {
        let Err(error) = reply.extract_error() else { continue };
        if step.name == TOGETHER && fault::is_cross_slot(&error) {
            let message =
                "the server refuses a command with several locks, which are renewed one by one";
            findings.push(Finding::new(Severity::Info, Code::CrossSlotRefused, message));
            continue;
        }
        is_complete = false;
        if fault::is_redirect(&error) {
            findings.push(moved());
            break;
        }
        if !missing.explain(&error) {
            findings.push(failures::operation(step.name, &error));
            break;
        }
    }
    is_complete
}

/// A node of a cluster that is asked for a slot which it has no more, or not alone.
fn moved() -> Finding {
    let message = "the slot of the check's own lock was moved meanwhile";
    Finding::new(Severity::Info, Code::CheckIncomplete, message).advise("check again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::redis::connect::endpoint::Endpoint;
    use crate::backend::redis::connect::shards::Shard;
    use crate::backend::redis::wire::script::Names;
    use crate::backend::redis::wire::source::Script;
    use crate::types::namespace::Namespace;
    use crate::types::slot::Slot;
    use crate::types::tag::tag;

    #[test]
    fn every_script_is_rehearsed() {
        let names = Names::uncached(Namespace::default(), Channels::Plain);
        let Ok(Some(probe)) = Probe::new("shop:", &names, None) else { panic!("a sound prefix") };
        let steps = all_steps(&probe, Channels::Plain);
        let sent = steps.iter().map(|step| step.command.get_packed_command());
        let sent = String::from_utf8(sent.flatten().collect()).unwrap();
        for script in Script::needed(Channels::Plain) {
            assert!(sent.contains(script.source(Channels::Plain)), "{script:?}");
        }
    }

    /// Goal: no command of a cluster's is about keys of another slot than the probe's.
    #[test]
    fn every_step_in_a_cluster_is_about_one_slot() {
        let names = Names::uncached(Namespace::default(), Channels::Sharded);
        let endpoint = Endpoint { host: "a".to_owned(), port: 1 };
        let shard = Shard { ranges: vec![7..=9], master: endpoint, replicas: Vec::new() };
        let Ok(Some(probe)) = Probe::new("shop:", &names, Some(&shard)) else { panic!("a key") };
        assert_eq!(Slot::of(&probe.key), Slot::new(9));
        assert_eq!(Slot::of(&probe.tried), Slot::new(9));
        assert!(matches!(Probe::new("{elsewhere}:", &names, Some(&shard)), Ok(None)));
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
