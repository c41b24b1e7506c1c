//! A worker of a simulated process: it makes one call after the other, each of which may be dropped at any
//! moment.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::call::{Call, Form};
use super::life::sleep;
use super::process::Process;
use super::rules::Hold;
use super::world::World;
use crate::hold::guard::LockGuard;
use crate::hold::run::{LeaseCell, Run};
use crate::lease::Lease;
use crate::locker::acquire::{Acquirer, Tried, acquire};
use crate::types::clock::{tokio_time, within};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::{OnLost, Wait};

/// A call with a wait limit may take longer by this, where nothing fails: by two tries, and by the releases
/// that each waits for before.
const LONGEST_TRIES: Duration = Duration::from_millis(2_500);

pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) process: Arc<Process>,
    pub(super) acquirer: Arc<Acquirer>,
    /// Counts the holds of all workers.
    pub(super) holds: Arc<AtomicU64>,
}

impl Worker {
    /// Makes calls until it is calm.
    pub(super) async fn work(self) {
        let world = &self.process.world;
        while !world.is_calm() {
            let call = world.roll(|dice| Call::draw(dice, &world.mix));
            self.make(&call).await;
            let rest = world.roll(|dice| {
                let is_long = dice.chance(world.mix.rest);
                dice.micros_below(if is_long { 900_000 } else { 3_000 })
            });
            sleep(rest).await;
        }
    }

    async fn make(&self, call: &Call) {
        let Self { number, process, .. } = self;
        let (world, process) = (&process.world, process.number);
        world.note(|_| format!("p{process} w{number} begins {call:?}"));
        world.rules().begins(process, *number, call.key, call.terms.wait == Wait::Forever);
        let outcome = match call.patience {
            None => Some(self.perform(call).await),
            Some(patience) => within(|| sleep(patience), self.perform(call)).await,
        };
        let others = world.rules().ends(process, *number, call.key);
        let waiting = self.acquirer.waiting(&LockKey::from_static(call.key));
        if waiting > others {
            world.violation(|_| {
                format!("{}: {waiting} of the {others} calls of p{process} wait", call.key)
            });
        }
        let outcome = outcome.unwrap_or("calls cancelled");
        world.count(outcome);
        world.note(|_| format!("p{process} w{number}: {outcome}"));
    }

    async fn perform(&self, call: &Call) -> &'static str {
        if call.form == Form::Body {
            return self.run(call).await;
        }
        match self.acquire(call).await {
            Ok(guard) => self.hold_by_hand(call, guard).await,
            Err(error) => outcome_of(&error),
        }
    }

    /// The guard of the call. Where nothing fails, a call that waits keeps its limit, but for its own requests.
    fn acquire(&self, call: &Call) -> impl Future<Output = Result<LockGuard, LockError>> + use<> {
        let (world, acquirer) = (Arc::clone(&self.process.world), Arc::clone(&self.acquirer));
        let (key, terms) = (LockKey::from_static(call.key), call.terms.clone());
        async move {
            let start = tokio_time();
            if terms.wait == Wait::Never && acquirer.leases(&key).iter().any(Lease::is_held) {
                world.count("tries of a held lock");
            }
            if terms.wait.can_wait() && acquirer.waiting(&key) == 0 && acquirer.asking(&key) > 0 {
                world.count("calls behind a try");
            }
            let tried = acquire(&acquirer, key, &terms, start).await;
            let took = tokio_time().since(start);
            let limit = terms.wait.limit().filter(|_| world.mix.is_mild());
            if let Some(limit) = limit.filter(|limit| took > *limit + LONGEST_TRIES) {
                world.violation(|_| format!("a wait of at most {limit:?} took {took:?}"));
            }
            match tried? {
                Tried::Granted(guard) => {
                    if !guard.lease().is_held() && terms.max_hold.is_none() {
                        world.violation(|_| {
                            format!("{}: granted when its lease was over", guard.lease().key())
                        });
                    }
                    Ok(guard)
                }
                Tried::Busy(key) => Err(LockError::busy(key.as_str())),
            }
        }
    }

    async fn run(&self, call: &Call) -> &'static str {
        let (lease, is_renewable) = (LeaseCell::default(), AtomicBool::new(false));
        let body = self.body(call, lease.clone(), &is_renewable);
        match Run::new(self.acquire(call), body).lease_into(lease).await {
            Ok(()) => "calls completed",
            Err(error) => self.ended(call, is_renewable.into_inner(), &error),
        }
    }

    /// What the library polls only while the lease is held, unless it may finish without that.
    async fn body(&self, call: &Call, lease: LeaseCell, is_renewable: &AtomicBool) {
        let lease = lease.lease().await;
        is_renewable.store(is_long_enough(&lease), Ordering::Relaxed);
        let user = User::new(self, call, lease);
        for _ in 0..call.steps {
            let mut pause = pin!(sleep(self.pause(call)));
            let step = poll_fn(|cx| {
                user.polled();
                pause.as_mut().poll(cx)
            });
            step.await;
        }
        user.polled();
    }

    /// Work that looks at its lease before each step by itself.
    async fn hold_by_hand(&self, call: &Call, guard: LockGuard) -> &'static str {
        let is_renewable = is_long_enough(guard.lease());
        let user = User::new(self, call, guard.lease().clone());
        for step in 0..=call.steps {
            if !guard.lease().is_held() {
                break;
            }
            user.polled();
            if step == 0 && call.extends {
                let extended = guard.lease().extend(2 * call.terms.ttl.duration()).await;
                user.world.count(if extended.is_ok() { "extensions" } else { "extensions failed" });
            }
            sleep(self.pause(call)).await;
        }
        if call.form == Form::Dropped {
            return "guards dropped";
        }
        match guard.release().await {
            Ok(()) => "guards released",
            Err(error) => self.ended(call, is_renewable, &error),
        }
    }

    /// Once it is calm, no call holds its lock for long.
    fn pause(&self, call: &Call) -> Duration {
        let is_calm = self.process.world.is_calm();
        if is_calm { Duration::from_millis(1) } else { call.pause }
    }

    /// A call has ended with an error after it had its lock. Where nothing fails, a lease that is renewed is
    /// not lost.
    fn ended(&self, call: &Call, is_renewable: bool, error: &LockError) -> &'static str {
        let Self { number, process, .. } = self;
        let is_kept = is_renewable && call.terms.renew && call.terms.max_hold.is_none();
        if error.is_lost() && is_kept && process.world.mix.is_mild() {
            let (key, process_number) = (call.key, process.number);
            process.world.violation(|_| {
                format!("{key}: p{process_number} w{number} lost its renewed lease: {error}")
            });
        }
        outcome_of(error)
    }
}

/// Whether a lease that begins lasts long enough for a renewal whose request and reply are late. It may come
/// from a call that asked for less.
fn is_long_enough(lease: &Lease) -> bool {
    lease.ttl().duration() >= Duration::from_millis(1_500)
        && lease.remaining() >= Duration::from_millis(550)
}

fn outcome_of(error: &LockError) -> &'static str {
    match () {
        () if error.is_wait_limit_reached() => "wait limits reached",
        () if error.is_busy() => "calls busy",
        () if error.is_max_hold_reached() => "longest holds reached",
        () if error.is_revoked() => "holders stopped",
        () if error.is_lost() => "locks lost",
        () => "calls without an answer",
    }
}

/// A call that uses its lock, until this is dropped.
struct User<'a> {
    world: &'a World,
    hold: Hold,
    lease: Lease,
}

impl<'a> User<'a> {
    fn new(worker: &'a Worker, call: &Call, lease: Lease) -> Self {
        let Worker { number, process, holds, .. } = worker;
        let world = &*process.world;
        let hold = Hold {
            number: holds.fetch_add(1, Ordering::Relaxed),
            key: call.key,
            fence: world.fence(lease.fencing_token().into()),
            owner: lease.attempt().owner.as_ref().to_owned(),
        };
        world.rules().uses(&hold.owner);
        world.note(|names| {
            let (process, owner) = (process.number, names.of(&hold.owner));
            let Hold { number: hold, key, fence, .. } = hold;
            format!("p{process} w{number} has {key} as {owner}: hold {hold}, token {fence}")
        });
        Self { world, hold, lease }
    }

    /// A body that may finish without its lock believes in it only while it sees that it is held.
    fn polled(&self) {
        if self.lease.on_lost() == OnLost::Cancel || self.lease.is_held() {
            self.world.polled(&self.hold);
        }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.world.rules().done(&self.hold.owner);
    }
}
