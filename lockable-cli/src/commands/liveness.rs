//! The liveness check of a hold: whether it was renewed meanwhile, and when it ends by itself.

use std::time::Duration;

use lockable_runtime::HolderKind;
use lockable_runtime::admin::{Admin, HeldLock, Process};

use crate::clock::{Moment, boot_time};
use crate::failure::Failure;
use crate::output::times::short;

/// A hold, and when it was looked at.
pub(super) struct LivenessCheck {
    pub(super) held: HeldLock,
    at: Moment,
}

/// What became of it.
pub(super) struct Liveness {
    pub(super) held: HeldLock,
    seen: Seen,
}

/// What two looks show of a lease. Its length is not in Redis, so it is not known how often it has to be renewed.
struct Seen {
    remaining: Option<Duration>,
    /// How long it was looked at.
    looked: Duration,
    was_renewed: bool,
}

impl LivenessCheck {
    /// The hold as the server has just shown it.
    pub(super) fn at(held: HeldLock) -> Self {
        Self { held, at: boot_time() }
    }

    /// Looks again, a second after the first look at the earliest; `None` where the hold is over.
    pub(super) async fn again(&self, admin: &Admin) -> Result<Option<Liveness>, Failure> {
        if self.held.holder().kind() == HolderKind::Exclusive {
            pause(LONG_ENOUGH.saturating_sub(boot_time().since(self.at))).await;
        }
        let looked = boot_time().since(self.at);
        let now = admin.holder(self.held.name()).await?;
        let before = self.held.holder();
        let now = now.filter(|now| now.holder().id() == before.id());
        Ok(now.map(|held| {
            let seen = Seen::of(before.remaining(), held.holder().remaining(), looked);
            Liveness { held, seen }
        }))
    }
}

impl Liveness {
    /// When the lock ends by itself, and what of its lease is known.
    pub(super) fn end(&self) -> String {
        // Only its process renews it, and another library's way to do so is unknown.
        match self.held.holder().kind() {
            HolderKind::Exclusive => self.seen.of_lease(),
            _ => end(self.seen.remaining),
        }
    }

    /// Unknown of a lock that no process of ours renews.
    pub(super) fn was_renewed(&self) -> Option<bool> {
        let is_ours = self.held.holder().kind() == HolderKind::Exclusive;
        is_ours.then_some(self.seen.was_renewed)
    }
}

impl Seen {
    /// What is left before, and that long afterwards.
    fn of(before: Option<Duration>, remaining: Option<Duration>, looked: Duration) -> Self {
        Self { remaining, looked, was_renewed: was_renewed(before, remaining, looked) }
    }

    fn of_lease(&self) -> String {
        let looked = short(self.looked);
        match self.remaining {
            Some(_) if self.was_renewed => format!(
                "the lock was renewed in the {looked} of observation, so its process is alive, and the lock does not \
                 end by itself"
            ),
            Some(rest) => format!(
                "the lock ends by itself in {}, unless it is renewed; it was not renewed in the {looked} of \
                 observation",
                short(rest)
            ),
            None => end(None),
        }
    }
}

/// Whether more is left after that time than would be without a renewal.
pub(super) fn was_renewed(
    before: Option<Duration>,
    remaining: Option<Duration>,
    looked: Duration,
) -> bool {
    let without = before.map(|before| before.saturating_sub(looked).saturating_add(CLOCKS));
    remaining.zip(without).is_some_and(|(now, without)| now > without)
}

/// When a lock ends by itself.
fn end(remaining: Option<Duration>) -> String {
    remaining.map_or_else(
        || "the lock never ends by itself".to_owned(),
        |rest| format!("the lock ends by itself in {}, unless it is renewed", short(rest)),
    )
}

/// The process that is to be ended, in words.
pub(super) fn end_of(process: &Process) -> String {
    let (service, host, pid) = (process.service(), process.host(), process.pid());
    format!("end its process, `{service}` on {host} with the pid {pid} (`kill -9 {pid}`)")
}

#[expect(clippy::disallowed_methods, reason = "between two looks no event is waited for")]
pub(super) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// For how long a hold is looked at, at least.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// By so much the server's clock may be behind this machine's after a while.
const CLOCKS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(before: u64, now: u64, looked: u64) -> Seen {
        let [before, now, looked] = [before, now, looked].map(Duration::from_millis);
        Seen::of(Some(before), Some(now), looked)
    }

    #[test]
    fn a_lease_that_only_runs_down_was_not_renewed() {
        for it in [seen(20_000, 18_900, 1_000), seen(20_000, 19_000, 1_000), seen(500, 0, 1_000)] {
            assert!(!it.was_renewed);
        }
        let text = seen(20_000, 19_000, 1_000).of_lease();
        let parts = ["ends by itself in 19.0s", "not renewed in the 1.0s of observation"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn a_lease_with_more_left_than_before_was_renewed() {
        for it in [seen(20_000, 29_500, 1_000), seen(20_000, 20_000, 1_000), seen(300, 900, 1_000)]
        {
            assert!(it.was_renewed);
        }
        let text = seen(20_000, 29_500, 1_000).of_lease();
        assert!(
            text.contains("its process is alive") && !text.contains("ends by itself"),
            "{text}"
        );
    }

    #[test]
    fn a_lock_without_an_end_was_not_renewed() {
        let it = Seen::of(None, None, Duration::from_secs(1));
        assert!(!it.was_renewed);
        assert_eq!(it.of_lease(), "the lock never ends by itself");
    }
}
