//! The subscription on which this process hears what operators send to its holders.
//!
//! See "How does a holder hear of an operator?" in DESIGN.md.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::backend::redis::connect::opener::{Opener, Target};
use crate::backend::redis::fault;
use crate::backend::redis::pubsub::subscription::{Heard, Subscription};
use crate::backend::{Fault, Revocation, Verb};
use crate::types::clock::timer_on;
use crate::types::error::LockErrorKind;
use crate::types::key::LockKey;
use crate::types::owner::ProcessId;
use crate::types::reason::Reason;

use super::grants::{LONGEST_PAUSE, PAUSE};

/// The pause after a server has refused the subscription, which only an operator can mend.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);

/// More than any message of ours has.
const MAX_BYTES: usize = 4_096;

/// The one subscription of a locker; there is none until it has held a lock for a while that it renews.
pub(crate) struct Revocations {
    endpoints: Places,
    task: OnceLock<Running>,
}

/// Where the subscription can be, at each try.
pub(crate) type Places = Arc<dyn Fn(usize) -> Option<Opener> + Send + Sync>;

/// A task that ends with this.
struct Running(AbortHandle);

impl Revocations {
    pub(crate) fn new(endpoints: Places) -> Self {
        Self { endpoints, task: OnceLock::new() }
    }

    /// Begins to listen; later calls find that it does.
    pub(crate) fn start(&self, of_locker: &Opener) {
        if self.task.get().is_some() {
            return;
        }
        // Without randomness this process has no lock.
        let Ok(process) = ProcessId::current() else { return };
        let hearing = Hearing {
            channel: of_locker.namespace.revocations(process),
            endpoints: Arc::clone(&self.endpoints),
            of_locker: of_locker.clone(),
        };
        self.task.get_or_init(|| Running(of_locker.timers.spawn(hearing.always()).abort_handle()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What listening takes.
struct Hearing {
    channel: String,
    endpoints: Places,
    of_locker: Opener,
}

impl Hearing {
    /// Subscribes, again and again: what is sent meanwhile is lost, and its sender learns that no process listens.
    async fn always(self) {
        let mut pause = PAUSE;
        let timers = &self.of_locker.timers;
        for attempt in 0.. {
            let epoch = self.of_locker.demotion.epoch();
            let fault = match self.subscribed(attempt).await {
                Ok((target, mut subscription)) => {
                    pause = PAUSE;
                    let receiving = self.receive(&mut subscription);
                    let end = epoch.unless_over(target.unless_over(receiving)).await.flatten();
                    // A server that was left has a successor.
                    if end.is_none() {
                        continue;
                    }
                    None
                }
                Err(fault) => Some(fault),
            };
            if !self.of_locker.reports.are_received() {
                return;
            }
            let is_refused = fault.is_some_and(|fault| fault.kind == LockErrorKind::Refused);
            timer_on(timers, if is_refused { AFTER_REFUSAL } else { pause }).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    async fn subscribed(&self, attempt: usize) -> Result<(Target, Subscription), Fault> {
        let Some(opener) = (self.endpoints)(attempt) else {
            return Err(Fault::unavailable("no node is known"));
        };
        opener.connecting(self.subscribe(&opener)).await
    }

    async fn subscribe(&self, opener: &Opener) -> Result<(Target, Subscription), Fault> {
        let login = opener.login().await?;
        loop {
            let target = opener.target(&login).await?;
            let subscribing = Subscription::open(&target.client, &self.channel);
            let Some(subscription) = target.unless_over(subscribing).await else {
                if target.node.is_some() {
                    return Err(fault::cluster::without_its_slots(&target.server));
                }
                continue;
            };
            let failed = |error| {
                target.doubt();
                fault::of_login(&target.server, &error, target.login_advice)
            };
            let subscription = subscription.map_err(failed)?;
            return Ok((target, subscription));
        }
    }

    /// Until the subscription breaks, or the locker is gone.
    async fn receive(&self, subscription: &mut Subscription) {
        let Opener { timers, command_deadline, .. } = &self.of_locker;
        loop {
            let heard = subscription.hear(timers, *command_deadline).await;
            let Some(events) = self.of_locker.reports.events() else { return };
            match heard {
                Heard::Message(message) => {
                    if let Some(revocation) = parsed(message.get_payload_bytes()) {
                        events.on_revocation(&revocation);
                    }
                }
                Heard::Nothing => {}
                Heard::End => return,
            }
        }
    }
}

/// `verb \n owner token \n reason \n lock key`: only a key may have more lines than one.
pub(crate) fn written(revocation: &Revocation) -> String {
    let Revocation { verb, owner, key, reason } = revocation;
    let verb = match verb {
        Verb::Revoke => REVOKE,
        Verb::Forced => FORCED,
    };
    format!("{verb}\n{owner}\n{reason}\n{key}")
}

/// Nothing for what no operator sends: others may publish on the channel, too.
fn parsed(message: &[u8]) -> Option<Revocation> {
    if message.len() > MAX_BYTES {
        return None;
    }
    let mut parts = std::str::from_utf8(message).ok()?.splitn(4, '\n');
    let verb = match parts.next()? {
        REVOKE => Verb::Revoke,
        FORCED => Verb::Forced,
        _ => return None,
    };
    let owner = parts.next()?.to_owned();
    let reason = Reason::new(parts.next()?);
    let key = LockKey::prefixed("", parts.next()?).ok()?;
    Some(Revocation { verb, owner, key, reason })
}

const REVOKE: &str = "revoke";
const FORCED: &str = "forced";

#[cfg(test)]
mod tests {
    use super::*;

    fn revocation(verb: Verb, key: &str) -> Revocation {
        let (owner, reason) = ("0123456789abcdef.7 req-1".to_owned(), Reason::new("a\nb"));
        Revocation { verb, owner, key: LockKey::prefixed("", key).unwrap(), reason }
    }

    #[test]
    fn a_message_arrives_as_it_was_written() {
        for sent in [revocation(Verb::Revoke, "order:7"), revocation(Verb::Forced, "two\nlines")] {
            assert_eq!(parsed(written(&sent).as_bytes()), Some(sent));
        }
    }

    #[test]
    fn what_no_operator_sends_is_ignored() {
        let long = format!("revoke\nowner\n{}\nkey", "x".repeat(MAX_BYTES));
        let texts = [
            "",
            "revoke",
            "revoke\nowner\nreason",
            "revoke\no\nr\n",
            "stop\no\nr\nk",
            "7\n8\n9\no\nk",
            &long,
        ];
        for text in texts {
            assert_eq!(parsed(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parsed(b"revoke\n\xff\nr\nk"), None);
    }
}
