//! The subscription to operators' messages to holders of this process.
//!
//! See "How does a revoke request reach and stop a holder (pub/sub)?" in DESIGN.md.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::kept::{Followed, Kept, Subscriber, SubscriptionEnd};
use crate::core::backend::{Revocation, Verb};
use crate::core::process::clock::timer_on;
use crate::core::types::error::LockErrorKind;
use crate::core::types::id::ProcessId;
use crate::core::types::key::LockKey;
use crate::core::types::reason::Reason;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::reports::Reports;

/// The pause after a refusal, which only an operator can mend.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);

const MAX_BYTES: usize = 4_096;

/// A locker's one subscription; started once it has held a lock with renewal for a while.
pub(crate) struct Revocations {
    servers: AnyServer,
    task: OnceLock<Kept>,
}

/// The server to subscribe at, for each try.
pub(crate) type AnyServer = Arc<dyn Fn(usize) -> Option<Opener> + Send + Sync>;

impl Revocations {
    pub(crate) fn new(servers: AnyServer) -> Self {
        Self { servers, task: OnceLock::new() }
    }

    pub(crate) fn start(&self, of_locker: &Opener) {
        if self.task.get().is_some() {
            return;
        }
        // Without randomness this process has no lock.
        let Ok(process) = ProcessId::current() else { return };
        let channel = of_locker.namespace.revocations(process);
        let (servers, reports) = (Arc::clone(&self.servers), of_locker.reports.clone());
        let receiver = RevocationReceiver { channel, servers, reports, tries: 0 };
        self.task.get_or_init(|| Kept::spawn(&of_locker.timers, receiver));
    }
}

/// Receives revocations. One that is sent while it is not subscribed is lost, and its sender learns that no process
/// listens.
struct RevocationReceiver {
    channel: String,
    servers: AnyServer,
    reports: Reports,
    tries: usize,
}

impl Subscriber for RevocationReceiver {
    async fn serve(&mut self) -> SubscriptionEnd {
        let server = (self.servers)(self.tries);
        self.tries += 1;
        // No node may be known yet.
        let Some(opener) = server else { return SubscriptionEnd::Failed };
        let mut subscription = match Followed::open(&opener, &self.channel).await {
            Ok(subscription) => subscription,
            Err(fault) => {
                if fault.kind == LockErrorKind::Refused {
                    timer_on(&opener.timers, AFTER_REFUSAL).await;
                }
                return SubscriptionEnd::Failed;
            }
        };
        let pass = |message: &::redis::Msg| {
            if let Some(revocation) = parsed(message.get_payload_bytes())
                && let Some(events) = opener.reports.events()
            {
                events.on_revocation(&revocation);
            }
        };
        subscription.pass_on(&opener, pass).await
    }

    fn is_needed(&self) -> bool {
        self.reports.are_received()
    }
}

/// `verb \n owner token \n reason \n lock key`: only a key may have several lines.
pub(crate) fn written(revocation: &Revocation) -> String {
    let Revocation { verb, owner, key, reason } = revocation;
    let verb = match verb {
        Verb::Revoke => REVOKE,
        Verb::Forced => FORCED,
    };
    format!("{verb}\n{owner}\n{reason}\n{key}")
}

/// `None` for a message that no operator sends: others may publish on the channel, too.
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
    use proptest::prelude::*;

    use super::*;

    fn revocation(verb: Verb, key: &str) -> Revocation {
        let (owner, reason) = ("0123456789abcdef.7 req-1".to_owned(), Reason::new("a\nb"));
        Revocation { verb, owner, key: LockKey::prefixed("", key).unwrap(), reason }
    }

    #[tokio::test]
    async fn another_server_is_tried_after_a_failure() {
        let tried = Arc::new(std::sync::Mutex::new(Vec::new()));
        let asked = Arc::clone(&tried);
        let servers: AnyServer = Arc::new(move |attempt| {
            asked.lock().unwrap().push(attempt);
            None
        });
        let (channel, reports) = (String::new(), Reports::default());
        let mut receiver = RevocationReceiver { channel, servers, reports, tries: 0 };
        for _ in 0..3 {
            assert!(matches!(receiver.serve().await, SubscriptionEnd::Failed));
        }
        assert_eq!(*tried.lock().unwrap(), [0, 1, 2]);
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

    proptest! {
        #[test]
        fn any_message_is_read_as_written_or_ignored(
            verb in "revoke|forced|stop|",
            parts in proptest::collection::vec("[0-9a-f.]{0,20}|\\PC{0,30}|.{0,9}", 0..5),
            bytes: Vec<u8>,
        ) {
            let text = [&[verb], &parts[..]].concat().join("\n");
            for message in [text.as_bytes(), &bytes] {
                let Some(read) = parsed(message) else { continue };
                prop_assert_eq!(parsed(written(&read).as_bytes()), Some(read));
            }
        }
    }
}
