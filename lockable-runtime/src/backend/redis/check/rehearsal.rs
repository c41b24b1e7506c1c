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
use crate::backend::redis::wire::script::{FreeAll, Inspect, Renew};
use crate::backend::redis::wire::trial::{self, Step, attempt};
use crate::backend::redis::wire::{command, server};
use crate::check::{Code, Finding, Severity};
use crate::types::clock::boot_time;

/// The one step with keys in several slots.
const TOGETHER: &str = "renewing locks together";

/// Does everything; returns what went wrong and is not explained by a missing right.
pub(super) async fn run(
    session: &Session<'_>,
    probe: &Probe,
    subscription: Option<Subscription>,
    missing: &Missing,
) -> Result<Vec<Finding>, Finding> {
    let steps = all_steps(probe);
    let commands = steps.iter().map(|step| step.command.clone());
    let commands =
        command::pipeline(commands.chain(command::clean_up(&probe.names.namespace, &probe.key)));
    let replies = session.call(&commands).await?;
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

/// Every verb and every script.
fn all_steps(probe: &Probe) -> Vec<Step> {
    let Probe { key, tried, origin, prefix, names, .. } = probe;
    let (one, other) = (attempt(key, *origin, 1), attempt(tried, *origin, 1));
    let renewals = [&one, &other].map(|of| Renewal::new(of, Some(of.ttl), boot_time()));
    let free_all = FreeAll(slice::from_ref(&one));
    let mut steps = trial::steps(names, key, *origin);
    steps.extend(trial::meetings(names, prefix));
    steps.push(Step::script("inspecting a lock", names.command(&Inspect(key))));
    steps.push(Step::script("freeing locks together", names.command(&free_all)));
    steps.push(Step::script(TOGETHER, names.command(&Renew(&renewals))));
    steps
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
                "the server refuses a command about several locks, which are renewed one by one";
            findings.push(Finding::new(Severity::Info, Code::CrossSlotRefused, message));
            continue;
        }
        is_complete = false;
        if !missing.explain(&error) {
            findings.push(failures::operation(step.name, &error));
            break;
        }
    }
    is_complete
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::redis::wire::script::Names;
    use crate::backend::redis::wire::source::Script;
    use crate::types::namespace::{Channels, Namespace};

    #[test]
    fn every_script_is_rehearsed() {
        let names = Names::uncached(Namespace::default(), Channels::Plain);
        let Ok(probe) = Probe::new("shop:", &names) else { panic!("a sound prefix") };
        let steps = all_steps(&probe);
        let sent = steps.iter().map(|step| step.command.get_packed_command());
        let sent = String::from_utf8(sent.flatten().collect()).unwrap();
        for script in Script::needed(Channels::Plain) {
            assert!(sent.contains(script.source(Channels::Plain)), "{script:?}");
        }
    }
}
