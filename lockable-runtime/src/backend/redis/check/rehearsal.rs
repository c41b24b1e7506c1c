//! Everything that is done with a lock, done once with the check's own: from acquiring to a grant
//! that is handed on and heard.

use std::sync::Arc;

use ::redis::aio::{PubSubSink, PubSubStream};
use ::redis::{Pipeline, RedisError, Value};

use super::rights::Missing;
use super::{Checked, Probe};
use crate::backend::redis::wait::grants;
use crate::backend::redis::wire::command;
use crate::backend::redis::wire::fault;
use crate::backend::redis::wire::script::{
    Call, Enqueue, FreeAll, Inspect, Leave, Names, Place, Release, Renew, Seed,
};
use crate::backend::{self, Attempt, Renewal, Renewed};
use crate::check::{Code, Finding, Report, Severity};
use crate::types::clock::{boot_time, timer_on, within};
use crate::types::options::Ttl;
use crate::types::token::OwnerToken;

/// In microseconds since 1970: a token that was raised to the time is larger.
const YEAR_2001: u64 = 1_000_000_000_000_000;

/// A subscription to the grants of the probe.
pub(super) type Subscribed = (PubSubSink, PubSubStream);

/// Subscribes as a locker does whose calls wait, and asks whether the subscription lives.
pub(super) async fn subscribe(
    server: &Checked<'_>,
    probe: &Probe,
    missing: &mut Missing,
    report: &mut Report,
) -> Option<Subscribed> {
    let opener = server.opener;
    let timer = || timer_on(&opener.timers, opener.connect_deadline);
    let (mut sink, stream) =
        match within(timer, grants::subscribe(&opener.client, [probe.origin])).await {
            Some(Ok(subscribed)) => subscribed,
            failed => {
                let error = failed.and_then(Result::err);
                take(missing, report, "subscribe", error.as_ref());
                return None;
            }
        };
    let timer = || timer_on(&opener.timers, opener.command_deadline);
    let lives = within(timer, grants::ping(&mut sink)).await;
    match lives.map(|answer| answer.and_then(Value::extract_error)) {
        Some(Ok(_)) => {}
        failed => take(missing, report, "ping", failed.and_then(Result::err).as_ref()),
    }
    Some((sink, stream))
}

/// Notes why a command of the subscription failed; there is no error where no answer came.
fn take(missing: &mut Missing, report: &mut Report, name: &str, error: Option<&RedisError>) {
    match error {
        Some(error) if fault::is_missing_right(error) => missing.add_of_subscription(name, error),
        Some(error) => {
            let cause = fault::explain(error).1;
            report.add([unheard(format!("`{name}` failed: {cause}"))]);
        }
        None => report.add([unheard(format!("`{name}` was not answered in time"))]),
    }
}

/// Does everything; gives what went wrong and is not told by a missing right.
pub(super) async fn run(
    server: &Checked<'_>,
    probe: &Probe,
    subscribed: Option<Subscribed>,
    missing: &Missing,
) -> Result<Option<Finding>, Finding> {
    let lock = Lock::of(probe);
    let mut steps = lock.steps(&probe.scripts);
    for command in command::clean_up(&probe.key) {
        steps.pipeline.add_command(command);
    }
    let replies = server.call(&steps.pipeline).await?;
    let was_published = match steps.judge(replies, missing) {
        Err(finding) => return Ok(Some(finding)),
        Ok(is_complete) => is_complete && !missing.explains_silence(),
    };
    match subscribed {
        Some(subscribed) if was_published => Ok(hear(server, probe, subscribed).await),
        _ => Ok(None),
    }
}

/// Renews two locks of different slots in one command; what else can go wrong is told by [`run`].
pub(super) async fn renew_together(
    server: &Checked<'_>,
    probe: &Probe,
) -> Result<Option<Finding>, Finding> {
    let renewals = [&probe.key, &probe.tried].map(|key| {
        let owner = OwnerToken::at(probe.origin, 0, None);
        let attempt = Attempt::owned(key.clone(), Ttl::DEFAULT.provisional(), owner);
        let ttl = attempt.ttl;
        Renewal::new(&Arc::new(attempt), Some(ttl), boot_time())
    });
    let mut pipeline = Pipeline::with_capacity(1);
    pipeline.add_command(probe.scripts.command(&Renew { renewals: &renewals }));
    let mut replies = server.call(&pipeline).await?.into_iter();
    let error = replies.next().and_then(|reply| reply.extract_error().err());
    Ok(error.filter(fault::is_cross_slot).map(|_| one_by_one()))
}

fn one_by_one() -> Finding {
    Finding::new(
        Severity::Note,
        Code::OneByOne,
        "this server refuses a command whose keys are in several slots; leases are renewed, and locks \
         released, one by one",
        "nothing, unless there are thousands of locks; a prefix with a hash tag such as `{disLock}:` \
         puts all of them into one slot, where they are renewed together",
    )
}

/// Waits for the grant that the release has published.
async fn hear(server: &Checked<'_>, probe: &Probe, subscribed: Subscribed) -> Option<Finding> {
    let (_sink, mut stream) = subscribed;
    let limit = server.opener.command_deadline;
    let timer = || timer_on(&server.opener.timers, limit);
    let message = within(timer, grants::next(&mut stream)).await.flatten();
    let text = message.and_then(|message| message.get_payload::<String>().ok());
    let is_heard = text.is_some_and(|text| text.ends_with(probe.key.as_str()));
    (!is_heard).then(|| unheard(format!("a grant that was published was not heard in {limit:?}")))
}

fn unheard(matter: String) -> Finding {
    let advice = "see whether a proxy is between, and lets subscriptions through to the same \
                  server as commands";
    Finding::new(Severity::Wrong, Code::GrantNotHeard, matter, advice)
}

/// The lock, and those who want it.
struct Lock {
    holder: Attempt,
    waiter: Attempt,
    /// Gives up waiting.
    leaver: Attempt,
    next: Attempt,
    renewals: [Renewal; 1],
}

impl Lock {
    fn of(probe: &Probe) -> Self {
        // The shortest lives, because nobody cleans up after a process that is killed.
        let attempt = |number| {
            let owner = OwnerToken::at(probe.origin, number, None);
            Attempt::owned(probe.key.clone(), Ttl::DEFAULT.provisional(), owner)
        };
        let holder = attempt(1);
        let renewed = Attempt::owned(probe.key.clone(), holder.ttl, holder.owner.clone()).into();
        let renewals = [Renewal::new(&renewed, Some(holder.ttl), boot_time())];
        Self { holder, waiter: attempt(2), leaver: attempt(3), next: attempt(4), renewals }
    }

    /// Every verb and every script.
    fn steps<'a>(&'a self, scripts: &'a Names) -> Steps<'a> {
        let Self { holder, waiter, leaver, next, renewals } = self;
        let is_done = |reply: Value| reply.extract_error().map(|_| true);
        let judges: Vec<(_, Judge<'a>)> = vec![
            ("acquiring a lock", Box::new(|reply| command::is_granted(&reply, holder))),
            ("counting up a fence", Box::new(is_done)),
        ];
        let pipeline = command::acquire(holder, command::count(holder));
        let mut steps = Steps { scripts, pipeline, judges };
        steps.script("raising a fence", Seed { attempt: holder }, |token| *token > YEAR_2001);
        let renew = Renew { renewals };
        steps.pipeline.add_command(scripts.command(&renew));
        let is_renewed =
            move |reply| Ok(renew.outcome(reply)?.pop().transpose()? == Some(Renewed::Held));
        steps.judges.push(("renewing a lock", Box::new(is_renewed)));
        steps.script("inspecting a lock", Inspect { key: &holder.key }, Option::is_some);
        // It frees nothing where it may not look at the queue, which the steps after it tell.
        steps.script("freeing locks together", FreeAll { attempts: vec![holder] }, |_| true);
        steps.pipeline.add_command(command::set_lock(holder));
        let is_granted = |reply| command::is_granted(&reply, holder);
        steps.judges.push(("acquiring a lock again", Box::new(is_granted)));
        for attempt in [waiter, leaver] {
            let is_queued = |place: &Place| matches!(place, Place::Queued { .. });
            steps.script("queueing for a lock", Enqueue { attempt }, is_queued);
        }
        steps.script("leaving a queue", Leave { attempt: leaver }, |()| true);
        let release = |attempt, next| Release { attempt, kept_for: None, next };
        let is_released = |(found, _): &(backend::Release, _)| *found == backend::Release::Released;
        steps.script("releasing a lock", release(holder, None), is_released);
        // Whether the waiter has it now depends on whether anybody hears of the grant.
        steps.script("handing a lock on", release(waiter, Some(next)), |_| true);
        steps.script("releasing a lock at the end of a turn", release(next, None), |_| true);
        steps
    }
}

/// Whether a reply is what it should be.
type Judge<'a> = Box<dyn FnOnce(Value) -> Result<bool, RedisError> + Send + 'a>;

/// Commands, and what is expected of each.
struct Steps<'a> {
    scripts: &'a Names,
    pipeline: Pipeline,
    judges: Vec<(&'static str, Judge<'a>)>,
}

impl<'a> Steps<'a> {
    fn script<C: Call + Send + 'a>(
        &mut self,
        verb: &'static str,
        call: C,
        is_expected: impl FnOnce(&C::Outcome) -> bool + Send + 'a,
    ) {
        self.pipeline.add_command(self.scripts.command(&call));
        let judge = move |reply| call.outcome(reply).map(|outcome| is_expected(&outcome));
        self.judges.push((verb, Box::new(judge)));
    }

    /// Whether all went well, or the first step that went wrong. Where a right is missing, which is
    /// told already, the steps after it find what they should not.
    fn judge(self, replies: Vec<Value>, missing: &Missing) -> Result<bool, Finding> {
        let mut is_complete = true;
        for ((verb, judge), reply) in self.judges.into_iter().zip(replies) {
            match judge(reply) {
                Ok(true) => {}
                Err(error) if missing.explain(&error) => is_complete = false,
                Ok(false) if !is_complete => {}
                Ok(false) => return Err(failed(verb, "an outcome that no Redis server gives", "")),
                Err(error) => return Err(not_done(verb, &error)),
            }
        }
        Ok(is_complete)
    }
}

pub(super) fn not_done(verb: &'static str, error: &RedisError) -> Finding {
    let (_, cause, advice) = fault::explain(error);
    failed(verb, &cause, advice)
}

pub(super) fn failed(verb: &'static str, cause: &str, advice: &'static str) -> Finding {
    let advice = if advice.is_empty() { "see what the server's log says" } else { advice };
    let matter = format!("{verb} failed: {cause}");
    Finding::new(Severity::Wrong, Code::VerbFailed, matter, advice).about(verb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::redis::wire::script::Script;

    #[test]
    fn every_script_is_rehearsed() {
        let Ok(probe) = Probe::new("shop:", Names::default()) else { panic!("a sound prefix") };
        let lock = Lock::of(&probe);
        let steps = lock.steps(&probe.scripts);
        let sent = String::from_utf8(steps.pipeline.get_packed_pipeline()).unwrap();
        for script in Script::ALL {
            assert!(sent.contains(script.source()), "{script:?}");
        }
        assert_eq!(steps.pipeline.len(), steps.judges.len());
    }
}
