//! Calls without the attribute: runs that are not repeated, campaigns, and holds that pass to another process in a ticket.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lockable_runtime::__internals::ticket_at;
use lockable_runtime::{LockError, LockGuard, LockRequest};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::calls::{Call, Caller, WAIT, pause};
use crate::journal::boot_time;
use crate::keys::LEADER;
use crate::stay::Stay;

impl Caller {
    /// A run, which leaves its lock done.
    pub(crate) async fn run_once(&self, call: &Call) -> Result<(), LockError> {
        let asked = boot_time();
        let guard = match self.request(&ONCE, call).once().acquire().await {
            Err(error) if error.is_done() => return Ok(()),
            outcome => outcome?,
        };
        self.hold(&guard, call).await;
        let lease = guard.lease().clone();
        guard.keep(DONE_FOR).await?;
        let (key, token) = (lease.key(), lease.fencing_token());
        let until = asked + u64::try_from(DONE_FOR.as_nanos()).unwrap();
        self.journal.write(format_args!("done {key} {token} {} {until}", boot_time()));
        Ok(())
    }

    /// Campaigns for a while, and resigns at the end of a body or in the middle of one.
    pub(crate) async fn lead(&self, call: &Call, polled: &Arc<AtomicU64>) -> Result<(), LockError> {
        let (caller, call, polled) = (self.clone(), call.clone(), Arc::clone(polled));
        let mut waiting = Some(self.journal.wait(&format!("disLock:{LEADER}")));
        let request = self.locks.lock(LEADER).expire(call.expire).max_hold(TERM);
        let leading = request.lead(move |lease| {
            drop(waiting.take());
            let (caller, call, polled) = (caller.clone(), call.clone(), Arc::clone(&polled));
            async move { caller.stay(&[&lease], &call, &polled).await }
        });
        timeout(WAIT, leading).await.unwrap_or(Ok(()))
    }

    /// A hold whose lock another process gets.
    pub(crate) async fn give(&self, call: &Call) -> Result<(), LockError> {
        let guard = self.request(&TICKETS, call).acquire().await?;
        self.hold(&guard, call).await;
        let ticket = guard.into_ticket(VALID_FOR).await?;
        let (resource, text) = (self.resource.clone(), ticket.expose_secret());
        spawn_blocking(move || resource.leave_ticket(&text)).await.unwrap();
        Ok(())
    }

    /// The hold of a ticket, which may come twice, or late.
    pub(crate) async fn redeem(&self, call: &Call) -> Result<(), LockError> {
        let resource = self.resource.clone();
        let Some(ticket) = spawn_blocking(move || resource.take_ticket()).await.unwrap() else {
            pause(5).await;
            return Ok(());
        };
        let ticket = ticket_at(&self.locks, ticket.parse().unwrap());
        let guard = match self.locks.redeem(ticket).expire(call.expire).acquire().await {
            Err(error) if error.is_lost() => return Ok(()),
            outcome => outcome?,
        };
        let (key, token) = (guard.lease().key(), guard.lease().fencing_token());
        self.journal.write(format_args!("redeemed {key} {token} {}", boot_time()));
        self.hold(&guard, call).await;
        if call.is_renewed { guard.release().await } else { Ok(()) }
    }

    fn request(&self, keys: &[&'static str; 2], call: &Call) -> LockRequest {
        let key = keys[usize::from(call.is_renewed)];
        self.locks.lock(key).expire(call.expire).wait(WAIT)
    }

    /// Nothing stops it: it looks at its lease itself.
    async fn hold(&self, guard: &LockGuard, call: &Call) {
        let mut stay = [Stay::begin(&self.journal, guard.lease())];
        for _ in 0..call.rounds {
            if !stay[0].look() {
                return;
            }
            pause(1).await;
        }
        if call.writes {
            self.write(&stay).await;
        }
        stay[0].look();
    }
}

/// Of runs that are not repeated for a while.
const ONCE: [&str; 2] = ["once1", "once2"];

/// Locks that pass from process to process in tickets.
const TICKETS: [&str; 2] = ["ticket1", "ticket2"];

const DONE_FOR: Duration = Duration::from_millis(700);
const VALID_FOR: Duration = Duration::from_millis(900);

/// Shorter than the longest bodies.
const TERM: Duration = Duration::from_millis(600);
