//! The calls of a simulated process: each takes a lock in one of the ways there are, works for a while, and
//! may be dropped at any moment.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::life::{polled_worker, sleep};
use super::mix::Mix;
use super::process::Process;
use super::rules::Hold;
use super::world::{KEYS, World};
use crate::backend::{Fault, Outcome, Stage};
use crate::hold::guard::LockGuard;
use crate::hold::run::{LeaseCell, Run};
use crate::lease::Lease;
use crate::locker::acquire::{Acquirer, Tried, acquire};
use crate::request_id::RequestId;
use crate::types::clock::{tokio_time, within};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::{OnLost, Terms, Ttl, Wait};

/// One worker makes one call at a time.
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) process: Arc<Process>,
    pub(super) acquirer: Arc<Acquirer>,
    /// The numbers of holds, for all of the seed.
    pub(super) holds: Arc<AtomicU64>,
}

/// One call, as the dice made it.
#[derive(Debug)]
struct Call {
    key: &'static str,
    terms: Terms,
    end: End,
    /// The body waits this often, each time for so long.
    steps: u64,
    pause: Duration,
    /// A guard that is held by hand is extended once.
    extends: bool,
    /// The call is dropped after this time.
    patience: Option<Duration>,
}

/// How a call holds its lock, and how that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As the attribute does it: the body runs only while the lease is held.
    Run,
    /// By hand, with a release that is waited for.
    Release,
    /// By hand, without one.
    Drop,
}

impl Worker {
    /// Makes calls until it is calm.
    pub(super) async fn work(self) {
        let world = &self.process.world;
        let longest_rest = if world.mix.rest == 0 { 0 } else { 900_000 };
        while !world.is_calm() {
            let call = world.roll(|dice| Call::draw(dice, &world.mix));
            self.make(&call).await;
            let rest = world.roll(|dice| {
                let is_long = dice.chance(world.mix.rest);
                dice.micros_below(if is_long { longest_rest } else { 3_000 })
            });
            sleep(rest).await;
        }
    }

    /// Makes the call, which may be dropped before its end.
    async fn make(&self, call: &Call) {
        let (world, process) = (&self.process.world, self.process.number);
        world.note(|_| format!("p{process} w{} begins {call:?}", self.number));
        if call.terms.wait == Wait::Forever {
            world.rules().waits(process, self.number);
        }
        let patience = call.patience.unwrap_or(Duration::from_secs(3_600));
        let outcome = within(|| sleep(patience), self.perform(call)).await;
        world.rules().leaves(process, self.number);
        let what = outcome.unwrap_or("calls cancelled");
        world.count(what);
        world.note(|_| format!("p{process} w{}: {what}", self.number));
    }

    async fn perform(&self, call: &Call) -> &'static str {
        match call.end {
            End::Run => self.run(call).await,
            End::Release | End::Drop => match self.acquire(call).await {
                Ok(guard) => self.hold_by_hand(call, guard).await,
                Err(error) => of_error(&error),
            },
        }
    }

    async fn run(&self, call: &Call) -> &'static str {
        let (cell, is_long) = (LeaseCell::default(), AtomicBool::new(false));
        let body = self.body(call, cell.clone(), &is_long);
        let (acquirer, key, terms) =
            (Arc::clone(&self.acquirer), LockKey::from_static(call.key), call.terms.clone());
        let process = Arc::clone(&self.process);
        let acquire =
            async move { in_time(&process, acquire(&acquirer, key, &terms), &terms).await };
        let outcome = Run::new(acquire, body).lease_into(cell).await;
        match outcome {
            Ok(()) => "calls completed",
            Err(error) => self.of_held(call, is_long.load(Ordering::Relaxed), &error),
        }
    }

    /// The body of a call, which the library polls only while the lease is held, unless it may finish.
    async fn body(&self, call: &Call, cell: LeaseCell, is_long: &AtomicBool) {
        let lease = cell.lease().await;
        is_long.store(is_renewable(&lease), Ordering::Relaxed);
        let user = User::new(self, call, &lease);
        for _ in 0..call.steps {
            let mut pause = pin!(sleep(self.pause(call)));
            poll_fn(|cx| {
                user.polled(&lease);
                pause.as_mut().poll(cx)
            })
            .await;
        }
        user.polled(&lease);
    }

    async fn acquire(&self, call: &Call) -> Result<LockGuard, LockError> {
        let asked = acquire(&self.acquirer, LockKey::from_static(call.key), &call.terms);
        in_time(&self.process, asked, &call.terms).await
    }

    /// The work under a guard, which looks at the lease before each step by itself.
    async fn hold_by_hand(&self, call: &Call, guard: LockGuard) -> &'static str {
        let lease = guard.lease();
        let is_long = is_renewable(&lease);
        let user = User::new(self, call, &lease);
        for step in 0..=call.steps {
            if !guard.is_held() {
                break;
            }
            user.polled(&lease);
            if step == 0 && call.extends {
                let extended = guard.extend(2 * call.terms.ttl.duration()).await;
                self.process.world.count(if extended.is_ok() {
                    "extensions"
                } else {
                    "failed extensions"
                });
            }
            if step < call.steps {
                sleep(self.pause(call)).await;
            }
        }
        if call.end == End::Drop {
            return "guards dropped";
        }
        match guard.release().await {
            Ok(()) => "guards released",
            Err(error) => self.of_held(call, is_long, &error),
        }
    }

    /// Once it is calm, no body waits for long.
    fn pause(&self, call: &Call) -> Duration {
        let is_calm = self.process.world.is_calm();
        if is_calm { Duration::from_millis(1) } else { call.pause }
    }

    /// The end of a call that has held its lock. Where nothing fails, a lease that is renewed is not lost.
    fn of_held(&self, call: &Call, is_long: bool, error: &LockError) -> &'static str {
        let Call { terms, key, .. } = call;
        let is_kept = is_long && terms.renew && terms.max_hold.is_none();
        if error.is_lost() && is_kept && self.process.world.mix.is_mild() {
            let (process, number) = (self.process.number, self.number);
            self.process.world.violation(|_| {
                format!("{key}: p{process} w{number} lost its renewed lease: {error}")
            });
        }
        of_error(error)
    }
}

/// Whether a lease that begins lasts long enough for a renewal whose request and reply are late. It may come
/// from a call that asked for less.
fn is_renewable(lease: &Lease) -> bool {
    lease.ttl().duration() >= Duration::from_millis(1_500)
        && lease.remaining() >= Duration::from_millis(550)
}

/// The guard of a call. Where nothing fails, a call with a wait limit keeps that, but for its own requests.
async fn in_time(
    process: &Process,
    asked: impl Future<Output = Result<Tried, LockError>>,
    terms: &Terms,
) -> Result<LockGuard, LockError> {
    let start = tokio_time();
    let tried = asked.await;
    let took = tokio_time().since(start);
    if let Some(limit) = terms.wait.limit()
        && process.world.mix.is_mild()
        && took > limit + LONGEST_TRIES
    {
        let number = process.number;
        process.world.violation(|_| format!("p{number}: a wait of {limit:?} took {took:?}"));
    }
    match tried? {
        Tried::Granted(guard) => Ok(guard),
        Tried::Busy(key) => Err(LockError::busy(key.as_str())),
    }
}

fn of_error(error: &LockError) -> &'static str {
    match () {
        () if error.is_wait_limit_reached() => "wait limits reached",
        () if error.is_busy() => "calls busy",
        () if error.is_max_hold_reached() => "longest holds reached",
        () if error.is_lost() => "locks lost",
        () => "calls without an answer",
    }
}

/// A call that uses its lock, until this is dropped.
struct User<'a> {
    world: &'a World,
    hold: Hold,
    finishes: bool,
}

impl<'a> User<'a> {
    fn new(worker: &'a Worker, call: &Call, lease: &Lease) -> Self {
        let world = &*worker.process.world;
        let hold = Hold {
            number: worker.holds.fetch_add(1, Ordering::Relaxed),
            key: call.key,
            fence: world.fence(lease.fencing_token().into()),
            owner: lease.attempt().owner.as_ref().to_owned(),
        };
        world.rules().uses(&hold.owner);
        world.note(|names| {
            let (process, number, owner) =
                (worker.process.number, worker.number, names.of(&hold.owner));
            let Hold { number: hold, key, fence, .. } = hold;
            format!("p{process} w{number} has {key} as {owner}: hold {hold}, token {fence}")
        });
        Self { world, hold, finishes: call.terms.on_lost == OnLost::Finish }
    }

    /// A body that may finish without its lock believes in it only while it sees that it is held.
    fn polled(&self, lease: &Lease) {
        if !self.finishes || lease.is_held() {
            self.world.polled(&self.hold);
        }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.world.rules().done(&self.hold.owner);
    }
}

impl Call {
    fn draw(dice: &mut super::dice::Dice, mix: &Mix) -> Self {
        let longest_pause = match dice.below(10) {
            _ if dice.chance(mix.long_body) => 900_000,
            0..=2 => 60_000,
            _ => 4_000,
        };
        Self {
            key: KEYS[usize::from(dice.chance(150))],
            terms: terms(dice),
            end: dice.one_of(&[End::Run, End::Run, End::Release, End::Drop]),
            steps: dice.below(6),
            pause: dice.micros_below(longest_pause),
            patience: dice.chance(mix.cancel).then(|| {
                let longest = dice.one_of(&[30_000, 30_000, 1_500_000]);
                dice.micros_below(longest)
            }),
            extends: dice.chance(50),
        }
    }
}

fn terms(dice: &mut super::dice::Dice) -> Terms {
    let millis = dice.one_of(&[200, 500, 1_500, 4_000]);
    let renew = dice.chance(400);
    let wait = match dice.below(10) {
        0 | 1 => Wait::Never,
        2 | 3 => Wait::AtMost(dice.millis_below(1_500)),
        _ => Wait::Forever,
    };
    Terms {
        ttl: Ttl::new("expire", Duration::from_millis(millis)).unwrap(),
        renew,
        max_hold: (renew && dice.chance(100)).then(|| Duration::from_millis(1 + dice.below(3_000))),
        min_hold: dice.chance(30).then(|| Duration::from_millis(millis / 3)),
        on_lost: if dice.chance(100) { OnLost::Finish } else { OnLost::Cancel },
        wait,
        fair: wait != Wait::Never && dice.chance(200),
        identity: dice.chance(100).then(|| RequestId::new("checkout")),
        caller_blocks: false,
    }
}

/// Two tries, and each release that they wait for before.
const LONGEST_TRIES: Duration = Duration::from_millis(2_500);

/// Sees in which order the calls of a process join their line, and get their locks.
pub(super) struct Order(pub(super) Arc<Process>);

impl Stage for Order {
    fn next_fault(&self, _: &LockKey) -> Option<Fault> {
        None
    }

    fn count(&self, key: &LockKey, outcome: Outcome) {
        let Self(process) = self;
        let Some(worker) = polled_worker() else { return };
        match outcome {
            Outcome::Busy => process.world.rules().joins(process.number, worker, key.as_str()),
            Outcome::Granted => {
                let overtaken = process.world.rules().served(process.number, worker, key.as_str());
                if let Some(count) = overtaken {
                    let number = process.number;
                    process.world.violation(|_| {
                        format!("{key}: p{number} w{worker} overtook {count} calls of its line")
                    });
                }
            }
            Outcome::Failed => {}
        }
    }
}
