//! A worker of a simulated process: it makes one call after the other, each of which may be dropped.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::call::{Call, Form};
use super::held::Held;
use super::keys::{KEYS, lock_key, permits_key};
use super::life::sleep;
use super::process::Process;
use super::user::User;
use super::world::World;
use crate::core::acquire::{Acquirer, Tried};
use crate::core::hold::guard::LockGuard;
use crate::core::hold::run::{GrantCell, Run, completed, refuse_start};
use crate::core::hold::set::LockSet;
use crate::core::lease::Lease;
use crate::core::process::clock::{tokio_time, within};
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::Wait;
use crate::core::types::permit::Permits;
use crate::core::types::ticket::Ticket;

/// How much longer than its wait limit a call may take, where nothing fails: two tries, and the releases before them.
const LONGEST_TRIES: Duration = Duration::from_millis(2_500);

#[derive(Clone)]
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) process: Arc<Process>,
    pub(super) acquirer: Arc<Acquirer>,
    pub(super) holds: Arc<AtomicU64>,
}

impl Worker {
    pub(super) async fn work(self) {
        let world = &self.process.world;
        while !world.is_calm() {
            let call = world.roll(|dice| Call::draw(dice, &world.mix));
            let call = world.roll_late(|dice| {
                let redeems = dice.chance(world.mix.redeems);
                let ticket = redeems.then(|| world.tickets().take(dice)).flatten();
                call.or_late(ticket, dice, &world.mix)
            });
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
        world.rules().begins(process, *number, call);
        let outcome = match call.patience {
            None => Some(self.perform_any(call).await),
            Some(patience) => within(|| sleep(patience), self.perform_any(call)).await,
        };
        world.rules().ends(process, *number, call);
        for key in call.waits_for() {
            let places = world.rules().places(process, key);
            let lines = KEYS.into_iter().filter(|line| permits_key(line) == key);
            let waiting: usize = lines.map(|line| self.acquirer.waiting(&lock_key(line))).sum();
            if waiting > places {
                world.violation(|_| {
                    format!("{key}: {waiting} of the {places} calls of p{process} wait")
                });
            }
        }
        let outcome = outcome.unwrap_or("calls cancelled");
        world.count(outcome);
        world.note(|_| format!("p{process} w{number}: {outcome}"));
    }

    async fn perform_any(&self, call: &Call) -> &'static str {
        if call.is_of_one() {
            self.perform::<LockGuard>(call).await
        } else {
            self.perform::<LockSet>(call).await
        }
    }

    async fn perform<G: Held>(&self, call: &Call) -> &'static str {
        match call.form {
            Form::Body => return self.run::<G>(call).await,
            Form::Sync => return self.block::<G>(call).await,
            Form::Lead => return self.lead(call).await,
            Form::Released | Form::Dropped | Form::Passed(_) => {}
        }
        match self.acquire::<G>(call).await {
            Ok(guard) => self.hold_by_hand(call, guard).await,
            Err(error) => outcome_of(&error),
        }
    }

    /// Where nothing fails, a call that waits keeps its limit, but for its own requests.
    fn acquire<G: Held>(
        &self,
        call: &Call,
    ) -> impl Future<Output = Result<G, LockError>> + Send + use<G> {
        let (world, acquirer) = (Arc::clone(&self.process.world), Arc::clone(&self.acquirer));
        let keys: Vec<_> = call.keys.iter().map(|key| LockKey::from_static(key)).collect();
        let (what, options, redeems) = (what(call), call.options.clone(), call.redeems.clone());
        let longest_tries = LONGEST_TRIES * u32::try_from(keys.len()).unwrap();
        async move {
            let (start, key) = (tokio_time(), keys[0].clone());
            if options.wait == Wait::Never && acquirer.leases(&key).iter().any(Lease::is_held) {
                world.count("tries of a held lock");
            }
            if options.wait.can_wait() && acquirer.waiting(&key) == 0 && acquirer.trying(&key) > 0 {
                world.count("calls behind a try");
            }
            let tried = match redeems {
                None => G::acquire(acquirer, keys, options.clone()).await,
                Some(ticket) => {
                    let redeemed = G::redeem(acquirer, ticket.clone(), options.clone()).await;
                    told(&world, &ticket, &redeemed);
                    redeemed.map(Tried::Granted)
                }
            };
            let took = tokio_time().since(start);
            let limit = options.wait.limit().filter(|_| world.mix.is_mild());
            if let Some(limit) = limit.filter(|limit| took > *limit + longest_tries) {
                world.violation(|_| format!("a wait of at most {limit:?} took {took:?}"));
            }
            match tried? {
                Tried::Granted(guard) => {
                    world.count(what);
                    for lease in guard.each() {
                        if is_over_already(&world, lease) {
                            let key = lease.key();
                            world.violation(|_| format!("{key}: granted when its lease was over"));
                        }
                    }
                    Ok(guard)
                }
                Tried::Busy(busy) => Err(busy.error()),
            }
        }
    }

    async fn run<G: Held>(&self, call: &Call) -> &'static str {
        let (grant, is_renewable) = (GrantCell::default(), AtomicBool::new(false));
        let body = self.body::<G>(call, grant.clone(), &is_renewable);
        match Run::new(self.acquire::<G>(call), body).lease_into(grant).once().await {
            Ok(()) => "calls completed",
            Err(error) => self.ended(call, is_renewable.into_inner(), &error),
        }
    }

    /// Polled only while the lease is held, unless it may finish after a loss.
    async fn body<G: Held>(
        &self,
        call: &Call,
        grant: GrantCell<G::Lease>,
        is_renewable: &AtomicBool,
    ) {
        let leases = G::leases(&grant.lease().await);
        is_renewable
            .store(leases.iter().all(|lease| self.is_long_enough(lease)), Ordering::Relaxed);
        let users = self.users(&leases);
        self.begins(call, &users);
        self.steps(call, &users).await;
    }

    /// The steps of a body, which believes in its locks at each poll. A leader resigns once it is calm.
    pub(super) async fn steps(&self, call: &Call, users: &[User]) {
        for _ in 0..call.steps {
            if call.form == Form::Lead && self.process.world.is_calm() {
                break;
            }
            let mut pause = pin!(sleep(self.pause(call)));
            let step = poll_fn(|cx| {
                users.iter().for_each(User::polled);
                pause.as_mut().poll(cx)
            });
            step.await;
        }
        users.iter().for_each(User::polled);
    }

    /// Checks the lease before each step.
    async fn hold_by_hand<G: Held>(&self, call: &Call, guard: G) -> &'static str {
        let world = &self.process.world;
        let leases = G::leases(guard.shown());
        let is_renewable = leases.iter().all(|lease| self.is_long_enough(lease));
        let users = self.users(&leases);
        self.begins(call, &users);
        for step in 0..=call.steps {
            if !leases.iter().all(Lease::is_held) {
                break;
            }
            users.iter().for_each(User::polled);
            for lease in leases.iter().filter(|_| step == 0 && call.extends) {
                let extended = lease.extend(2 * call.options.ttl.duration()).await;
                world.count(if extended.is_ok() { "extensions" } else { "extensions failed" });
            }
            sleep(self.pause(call)).await;
        }
        match call.form {
            Form::Dropped => return "guards dropped",
            Form::Passed(period) if !world.is_calm() => {
                return self.pass(call, guard, period, is_renewable).await;
            }
            Form::Body | Form::Released | Form::Sync | Form::Lead | Form::Passed(_) => {}
        }
        match Held::release(guard, call.kept).await {
            Ok(()) => {
                let rest = leases[0].attempt().min_hold.rest(tokio_time);
                let rest = rest.filter(|_| call.kept.is_some() && !world.may_lose(&users[0].hold));
                if rest.is_some_and(|rest| !world.is_done(&users[0].hold, rest)) {
                    world.violation(|_| format!("{:?} is not done", call.keys));
                }
                "guards released"
            }
            Err(error) => self.ended(call, is_renewable, &error),
        }
    }

    /// Leaves the lock to a ticket. A guard without one is released.
    async fn pass<G: Held>(
        &self,
        call: &Call,
        guard: G,
        period: Duration,
        is_renewable: bool,
    ) -> &'static str {
        let world = &self.process.world;
        match guard.pass(period).await {
            Ok(ticket) => {
                world.tickets().offer(ticket);
                "tickets made"
            }
            Err(failed) => {
                let outcome = self.ended(call, is_renewable, failed.error());
                if let Some(guard) = failed.into_guard() {
                    world.count("guards without a ticket");
                    drop(guard.release().await);
                }
                outcome
            }
        }
    }

    /// As `core/locker/blocking.rs`: the thread waits for tasks of the background, and nothing stops its body.
    async fn block<G: Held>(&self, call: &Call) -> &'static str {
        self.process.world.count("sync calls");
        let guard = match tokio::spawn(self.acquire::<G>(call)).await.unwrap() {
            Ok(guard) => guard,
            Err(error) => return outcome_of(&error),
        };
        if let Some(error) = refuse_start(&guard) {
            return outcome_of(&error);
        }
        let leases = G::leases(guard.shown());
        let is_renewable = leases.iter().all(|lease| self.is_long_enough(lease));
        let users = self.users(&leases);
        users.iter().for_each(User::polled);
        let steps = u32::try_from(call.steps).unwrap();
        sleep(self.pause(call) * steps).await;
        let completed = completed(&guard, ());
        // One that an operator has asked to stop completes all the same, and keeps its lock until then.
        if completed.is_ok() && leases.iter().all(Lease::is_held) {
            users.iter().for_each(User::polled);
        }
        tokio::spawn(async move { guard.end().await }).await.unwrap();
        match completed {
            Ok(()) => "sync calls completed",
            Err(error) => self.ended(call, is_renewable, &error),
        }
    }

    pub(super) fn users(&self, leases: &[Lease]) -> Vec<User> {
        let is_first = |at: usize| leases[..at].iter().all(|lease| lease.key() != leases[at].key());
        let each = (0..leases.len()).filter(|at| is_first(*at));
        let user = |at: usize| {
            User::new(&self.process, self.number, self.next_number(), leases[at].clone())
        };
        each.map(user).collect()
    }

    pub(super) fn next_number(&self) -> u64 {
        self.holds.fetch_add(1, Ordering::Relaxed)
    }

    /// A call for one lock begins, with a grant of no server that its process has left.
    pub(super) fn begins(&self, call: &Call, users: &[User]) {
        let (world, epoch) = (&self.process.world, self.process.epoch());
        let [User { hold, .. }] = users else { return };
        if epoch > 0 && call.is_of_one() && !world.rules().is_confirmed(&hold.owner, epoch) {
            let (key, number) = (hold.key, hold.number);
            world.violation(|_| {
                format!("{key}: hold {number} begins with a grant of a server that was left")
            });
        }
    }

    fn pause(&self, call: &Call) -> Duration {
        let is_calm = self.process.world.is_calm();
        if is_calm { Duration::from_millis(1) } else { call.pause }
    }

    /// Whether a lease lasts long enough for a renewal that is late both ways, and refused or redirected, where nothing
    /// else fails. The lease may come from a call that asked for less.
    pub(super) fn is_long_enough(&self, lease: &Lease) -> bool {
        let shortest = self.process.world.mix.shortest_kept();
        shortest.is_some_and(|shortest| {
            let needed = Duration::from_millis(550).max(shortest / 3);
            lease.ttl().duration() >= shortest && lease.remaining() >= needed
        })
    }

    /// Where nothing fails, a renewed lease is not lost.
    pub(super) fn ended(&self, call: &Call, is_renewable: bool, error: &LockError) -> &'static str {
        let Self { number, process, .. } = self;
        let is_kept = is_renewable && call.options.renew && call.options.max_hold.is_none();
        if error.is_lost() && is_kept {
            let (keys, process_number) = (&call.keys, process.number);
            process.world.violation(|_| {
                format!("{keys:?}: p{process_number} w{number} lost its renewed lease: {error}")
            });
        }
        outcome_of(error)
    }
}

/// Whether a lease is over by itself, not by an operator or its longest hold.
fn is_over_already(world: &World, lease: &Lease) -> bool {
    let is_lost = world.rules().is_lost(lease.attempt().owner.as_ref());
    !is_lost && lease.still_held().is_err_and(|error| error.is_lost())
}

fn told<G: Held>(world: &World, ticket: &Ticket, redeemed: &Result<G, LockError>) {
    match redeemed {
        Ok(guard) => guard.each().for_each(|lease| world.redeemed(ticket, lease)),
        Err(error) if error.is_lost() => world.is_refused(ticket),
        Err(_) => world.count("redemptions without an answer"),
    }
}

fn outcome_of(error: &LockError) -> &'static str {
    match () {
        () if error.is_done() => "calls done already",
        () if error.is_wait_limit_reached() => "wait limits reached",
        () if error.is_busy() => "calls busy",
        () if error.is_max_hold_reached() => "longest holds reached",
        () if error.is_revoked() => "holders stopped",
        () if error.is_lost() => "locks lost",
        () => "calls without an answer",
    }
}

fn what(call: &Call) -> &'static str {
    match call.options.permits {
        Permits::OneOf(_) => "permits",
        Permits::All(_) => "all permits",
        Permits::OneLock if call.is_of_one() => "locks",
        Permits::OneLock => "several locks",
    }
}
