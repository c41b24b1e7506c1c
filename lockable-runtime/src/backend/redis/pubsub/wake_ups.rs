//! The subscription on which this process receives wake-ups, apart from the connections that carry
//! commands.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::kept::{End, Followed, Kept, Subscriber};
use crate::backend::redis::connect::opener::Opener;
use crate::backend::redis::fault;
use crate::backend::{Fault, WakeUp};
use crate::types::key::LockKey;
use crate::types::token::{Origin, OwnerToken};

/// The one subscription of a locker; there is none until a call waits.
pub(crate) struct PlainWakeUps {
    opener: Opener,
    task: Mutex<Option<(Kept, Confirmed)>>,
}

/// Whether the subscription is confirmed; `None` before the first try has ended.
type Confirmed = watch::Receiver<Option<Result<(), Fault>>>;

struct Receiver {
    opener: Opener,
    confirmed: watch::Sender<Option<Result<(), Fault>>>,
    origin: Origin,
}

impl PlainWakeUps {
    pub(crate) fn new(opener: Opener) -> Self {
        Self { opener, task: Mutex::default() }
    }

    /// Answers once the subscription is confirmed.
    pub(crate) async fn listen(&self, origin: Origin) -> Result<(), Fault> {
        let mut confirmed = self.started(origin);
        let confirmed = async {
            let outcome = confirmed.wait_for(Option::is_some).await;
            let outcome = outcome.ok().and_then(|outcome| outcome.clone());
            outcome.unwrap_or_else(|| Err(fault::runtime_ended(&self.opener.server)))
        };
        self.opener.connecting(confirmed).await
    }

    fn started(&self, origin: Origin) -> Confirmed {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (confirmed, state) = watch::channel(None);
            let opener = self.opener.clone();
            let receiver = Receiver { opener, confirmed, origin };
            (Kept::spawn(&self.opener.timers, receiver), state)
        };
        task.get_or_insert_with(start).1.clone()
    }
}

impl Subscriber for Receiver {
    async fn serve(&mut self) -> End {
        let opener = &self.opener;
        let channel = opener.namespace.channel(self.origin);
        let mut subscription = match Followed::open(opener, channel).await {
            Ok(subscription) => subscription,
            Err(fault) => {
                self.confirmed.send_replace(Some(Err(fault)));
                return End::Failed;
            }
        };
        self.confirmed.send_replace(Some(Ok(())));
        // What was published meanwhile is lost.
        if let Some(events) = opener.reports.events() {
            events.on_resubscribed(&|_| true);
        }
        let end = subscription.pass_on(opener, |message| {
            let text = message.get_payload::<String>().ok();
            if let Some(wake_up) = text.and_then(|text| wake_up(&text))
                && let Some(events) = opener.reports.events()
            {
                events.on_wake_up(wake_up);
            }
        });
        let end = end.await;
        self.confirmed.send_replace(None);
        if matches!(end, End::Broken) {
            opener.reports.broken(&fault::broke(&opener.server));
        }
        end
    }

    fn is_needed(&self) -> bool {
        self.opener.reports.are_received()
    }
}

/// A wake-up as the scripts publish it: `owner token \n lock key`.
pub(super) fn wake_up(text: &str) -> Option<WakeUp> {
    let (owner, key) = text.split_once('\n')?;
    let key = LockKey::prefixed("", key).ok()?;
    Some(WakeUp { key, owner: OwnerToken::received(owner) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: &str = "0123456789abcdef.17500000000000010000000007 req-1";

    proptest! {
        /// A script publishes the key as it is.
        #[test]
        fn a_wake_up_is_read_as_it_was_published(key in "[a-z:\n]{1,40}") {
            let read = wake_up(&format!("{OWNER}\n{key}")).unwrap();
            prop_assert_eq!((read.owner.as_ref(), read.key.as_str()), (OWNER, key.as_str()));
        }

        #[test]
        fn any_text_is_a_wake_up_or_none(text in ".{0,200}") {
            prop_assert!(wake_up(&text).is_none() || text.contains('\n'));
        }
    }
}
