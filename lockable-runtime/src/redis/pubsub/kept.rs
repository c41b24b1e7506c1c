//! A subscription that is opened again, with backoff, when it is lost.

use std::future::Future;
use std::time::Duration;

use ::redis::{Msg, ToRedisArgs};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::subscription::{Broken, Subscription};
use crate::core::backend::Fault;
use crate::core::backend::epochs::Epoch;
use crate::core::process::clock::timer_on;
use crate::core::types::random::random;
use crate::redis::connect::opener::{Opener, Target};
use crate::redis::fault;

/// The pause after the first failure. It doubles with each failure, up to the longest, in which the waiters send a
/// request of their own.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after this number of failures in a row.
pub(super) fn pause_after(failures: u32) -> Duration {
    SHORTEST_PAUSE.saturating_mul(1 << failures.min(MAX_DOUBLED)).min(LONGEST_PAUSE)
}

const MAX_DOUBLED: u32 = 4;

/// A random part of a pause, at least half of it, so that processes that lost their connections together do not return
/// together.
pub(super) fn jittered(pause: Duration) -> Duration {
    // Without randomness it is no lock that suffers.
    let [part, ..] = random().unwrap_or(u64::MAX).to_le_bytes();
    pause / 2 + pause / 2 * u32::from(part) / u32::from(u8::MAX)
}

pub(crate) trait Subscriber: Send + 'static {
    /// Opens a subscription, and passes on its messages until it ends.
    fn serve(&mut self) -> impl Future<Output = SubscriptionEnd> + Send;

    /// Whether it is to be opened again.
    fn is_needed(&self) -> bool;
}

pub(crate) enum SubscriptionEnd {
    /// Its server was left for another, which can be used at once.
    Left,
    Broken,
    Failed,
}

/// A task that renews a subscription until this is dropped.
pub(crate) struct Kept(AbortHandle);

impl Kept {
    /// On this runtime, which outlives the callers'.
    pub(crate) fn spawn(timers: &Handle, subscriber: impl Subscriber) -> Self {
        Self(timers.spawn(keep(subscriber, timers.clone())).abort_handle())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn keep(mut subscriber: impl Subscriber, timers: Handle) {
    let mut failures = 0;
    while subscriber.is_needed() {
        match subscriber.serve().await {
            SubscriptionEnd::Left => {
                failures = 0;
                continue;
            }
            SubscriptionEnd::Broken => failures = 0,
            SubscriptionEnd::Failed => {}
        }
        timer_on(&timers, jittered(pause_after(failures))).await;
        failures += 1;
    }
}

pub(super) struct Followed {
    target: Target,
    /// Over when the server at this address has become a replica.
    epoch: Epoch,
    subscription: Subscription,
}

impl Followed {
    pub(super) async fn open(
        opener: &Opener,
        channels: impl ToRedisArgs + Sync,
    ) -> Result<Self, Fault> {
        opener.yields().await;
        let epoch = opener.demotion.epoch();
        let (target, subscription) = opener.connecting(subscribe(opener, &channels)).await?;
        Ok(Self { target, epoch, subscription })
    }

    /// Passes on each message until the subscription breaks, its server is left, or the locker is gone.
    pub(super) async fn pass_on(
        &mut self,
        opener: &Opener,
        pass: impl Fn(&Msg) + Send,
    ) -> SubscriptionEnd {
        let subscription = &mut self.subscription;
        let passing = async {
            while opener.reports.are_received() {
                match subscription.message(&opener.timers, opener.command_deadline).await {
                    Ok(message) => message.iter().for_each(&pass),
                    Err(Broken) => return,
                }
            }
        };
        let end = self.epoch.unless_over(self.target.unless_over(passing)).await.flatten();
        end.map_or(SubscriptionEnd::Left, |()| SubscriptionEnd::Broken)
    }
}

async fn subscribe(
    opener: &Opener,
    channels: &(impl ToRedisArgs + Sync),
) -> Result<(Target, Subscription), Fault> {
    let login = opener.login().await?;
    loop {
        let target = opener.target(&login).await?;
        let subscribed = Subscription::open(&target.client, channels);
        let Some(subscribed) = target.unless_over(subscribed).await else {
            if target.node.is_some() {
                return Err(fault::cluster::without_its_slots(&target.server));
            }
            continue;
        };
        let subscription = subscribed.map_err(|error| {
            target.doubt();
            fault::About::Login(target.is_given).fault(&target.server, &error)
        })?;
        return Ok((target, subscription));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::{Arc, Mutex};
    use std::vec::IntoIter;

    use super::*;
    use crate::core::process::clock::{Moment, tokio_time};

    /// Ends in these ways, one after the other, and notes when it was served.
    struct Scripted {
        ends: IntoIter<SubscriptionEnd>,
        served: Arc<Mutex<Vec<Moment>>>,
    }

    impl Subscriber for Scripted {
        async fn serve(&mut self) -> SubscriptionEnd {
            self.served.lock().unwrap().push(tokio_time());
            self.ends.next().unwrap()
        }

        fn is_needed(&self) -> bool {
            !self.ends.as_slice().is_empty()
        }
    }

    async fn pauses(mut ends: Vec<SubscriptionEnd>) -> Vec<u128> {
        let served = Arc::new(Mutex::new(Vec::new()));
        ends.push(SubscriptionEnd::Failed);
        let ends = ends.into_iter();
        keep(Scripted { ends, served: Arc::clone(&served) }, Handle::current()).await;
        let served = served.lock().unwrap();
        served.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect()
    }

    /// At least half of what is expected; a timer may be a millisecond late.
    fn are(pauses: &[u128], expected: &[u128]) {
        let fits = |(pause, of): (&u128, &u128)| (*of / 2..*of + 2).contains(pause);
        let fit = pauses.len() == expected.len() && pauses.iter().zip(expected).all(fits);
        assert!(fit, "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscription_that_fails_is_opened_ever_later_up_to_a_second() {
        let ends = (0..6).map(|_| SubscriptionEnd::Failed).collect();
        are(&pauses(ends).await, &[100, 200, 400, 800, 1_000, 1_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscription_that_was_open_is_soon_opened_again() {
        let first = [SubscriptionEnd::Failed, SubscriptionEnd::Failed, SubscriptionEnd::Broken];
        let ends = first
            .into_iter()
            .chain([SubscriptionEnd::Failed, SubscriptionEnd::Left, SubscriptionEnd::Failed])
            .collect();
        are(&pauses(ends).await, &[100, 200, 100, 200, 0, 100]);
    }

    #[test]
    fn pauses_differ_and_keep_their_bounds() {
        let pause = Duration::from_millis(100);
        let pauses: HashSet<_> = (0..1_000).map(|_| jittered(pause)).collect();
        assert!(pauses.iter().all(|drawn| (pause / 2..=pause).contains(drawn)), "{pauses:?}");
        assert!(pauses.len() > 100, "{} pauses", pauses.len());
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }
}
