//! The calls of async callers: locks, permits and sets, renewed and not.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockable_runtime::{Lease, LockError, LockKey, Locker, distributed_lock};
use lockable_tests::Dice;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::journal::{Journal, Waiting, boot_time};
use crate::keys::{KEYS, PERMITS, QUIET};
use crate::losses;
use crate::resource::Resource;
use crate::stay::Stay;

/// What all callers of a process share.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) locks: Locker,
    pub(crate) resource: Resource,
    pub(crate) journal: Journal,
    rests: Arc<AtomicBool>,
}

/// One call, as the dice have it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) key: &'static str,
    /// The second one of a set.
    other: &'static str,
    pub(crate) expire: Duration,
    pub(crate) is_renewed: bool,
    /// How long the body takes.
    pub(crate) rounds: u64,
    pub(crate) writes: bool,
    /// A write that the body does not wait for.
    pub(crate) late_write: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Lock,
    Permit,
    Set,
    /// A run that is not repeated for a while.
    Once,
    /// Campaigns.
    Leader,
    /// A hold that ends in a ticket.
    Ticket,
    /// The hold of a ticket.
    Redemption,
}

/// Of sixteen calls.
const KINDS: [Kind; 16] = [
    Kind::Lock,
    Kind::Lock,
    Kind::Lock,
    Kind::Lock,
    Kind::Lock,
    Kind::Lock,
    Kind::Permit,
    Kind::Permit,
    Kind::Set,
    Kind::Set,
    Kind::Once,
    Kind::Once,
    Kind::Leader,
    Kind::Ticket,
    Kind::Redemption,
    Kind::Redemption,
];

impl Call {
    pub(crate) fn of(dice: &mut Dice) -> Self {
        let expire = dice.millis(300..1_001);
        let is_quiet = dice.is_one_of(6);
        let is_long = dice.is_one_of(if is_quiet { 4 } else { 60 });
        let key = dice.pick(if is_quiet { &QUIET[..] } else { &KEYS[..] });
        let others: Vec<_> = KEYS.into_iter().filter(|other| *other != key).collect();
        Self {
            kind: dice.pick(&KINDS),
            key,
            other: dice.pick(&others),
            expire,
            is_renewed: dice.is_one_of(if is_quiet { 4 } else { 2 }),
            rounds: if is_long { 300 + dice.below(1_000) } else { 1 + dice.below(8) },
            writes: dice.is_one_of(4),
            late_write: dice.is_one_of(16).then(|| dice.millis(0..2_000)),
        }
    }

    pub(crate) fn keys(&self) -> [LockKey; 2] {
        [self.key, self.other].map(LockKey::from_static)
    }
}

impl Caller {
    pub(crate) fn new(locks: Locker, resource: Resource, journal: Journal) -> Self {
        Self { locks, resource, journal, rests: Arc::default() }
    }

    /// The same, until it rests.
    pub(crate) fn at_work(&self) -> Self {
        Self { rests: Arc::default(), ..self.clone() }
    }

    pub(crate) fn rest(&self) {
        self.rests.store(true, Ordering::Relaxed);
    }

    pub(crate) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    pub(crate) async fn work(&self, mut dice: Dice) {
        while !self.rests() {
            let call = Call::of(&mut dice);
            let outcome = self.run(&call).await;
            if losses::note(&self.journal, outcome) {
                // What cannot be reached is not asked all the time.
                pause(20).await;
            }
        }
    }

    /// Each poll of the whole call is dated, so that the body knows whether it should have come to it.
    async fn run(&self, call: &Call) -> Result<(), LockError> {
        let polled = Arc::new(AtomicU64::new(0));
        let mut running = pin!(self.call(call, &polled));
        poll_fn(|context| {
            polled.store(boot_time(), Ordering::Relaxed);
            running.as_mut().poll(context)
        })
        .await
    }

    async fn call(&self, call: &Call, polled: &Arc<AtomicU64>) -> Result<(), LockError> {
        match (call.kind, call.is_renewed) {
            (Kind::Lock, true) => {
                let mut waiting = Some(self.waits(call));
                renewed(self, call, polled, &mut waiting).await
            }
            (Kind::Lock, false) => {
                let mut waiting = Some(self.waits(call));
                plain(self, call, polled, &mut waiting).await
            }
            (Kind::Permit, _) => permit(self, call, polled).await,
            (Kind::Set, _) => {
                let _parts = self.parts(call);
                set(self, call, polled).await
            }
            (Kind::Once, _) => self.run_once(call).await,
            (Kind::Leader, _) => self.lead(call, polled).await,
            (Kind::Ticket, _) => self.give(call).await,
            (Kind::Redemption, _) => self.redeem(call).await,
        }
    }

    pub(crate) fn waits(&self, call: &Call) -> Waiting {
        self.journal.wait(&format!("disLock:{}", call.key))
    }

    pub(crate) fn parts(&self, call: &Call) -> [Waiting; 2] {
        call.keys().map(|key| self.journal.part(&format!("disLock:{key}")))
    }

    pub(crate) async fn stay(&self, leases: &[&Lease], call: &Call, polled: &AtomicU64) {
        let stay = |lease: &&Lease| Stay::begin(&self.journal, lease);
        let mut stays: Vec<_> = leases.iter().map(stay).collect();
        for round in 0..call.rounds {
            look(&mut stays);
            if call.writes && round == call.rounds / 2 {
                self.write(&stays).await;
            }
            pause(1).await;
            for stay in &mut stays {
                stay.polled(polled.load(Ordering::Relaxed));
            }
        }
        look(&mut stays);
        self.write_later(&stays, call);
    }

    pub(crate) async fn write(&self, stays: &[Stay]) {
        for stay in stays {
            let (caller, lease) = (self.clone(), stay.lease().clone());
            let writing = move || caller.resource.write(&caller.journal, &lease);
            spawn_blocking(writing).await.unwrap();
        }
    }

    fn write_later(&self, stays: &[Stay], call: &Call) {
        let Some(delay) = call.late_write else { return };
        for stay in stays {
            let (caller, lease) = (self.clone(), stay.lease().clone());
            tokio::spawn(async move {
                pause(u64::try_from(delay.as_millis()).unwrap()).await;
                let writing = move || caller.resource.write(&caller.journal, &lease);
                spawn_blocking(writing).await.unwrap();
            });
        }
    }
}

#[distributed_lock(key = LockKey::from_static(call.key), expire = call.expire, wait = WAIT, guard = lock, locker = caller.locks)]
async fn plain(
    caller: &Caller,
    call: &Call,
    polled: &AtomicU64,
    waiting: &mut Option<Waiting>,
) -> Result<(), LockError> {
    *waiting = None;
    caller.stay(&[&lock], call, polled).await;
    Ok(())
}

#[distributed_lock(key = LockKey::from_static(call.key), expire = call.expire, wait = WAIT, renew, guard = lock, locker = caller.locks)]
async fn renewed(
    caller: &Caller,
    call: &Call,
    polled: &AtomicU64,
    waiting: &mut Option<Waiting>,
) -> Result<(), LockError> {
    *waiting = None;
    caller.stay(&[&lock], call, polled).await;
    Ok(())
}

#[distributed_lock(key = "{PERMITS}", permits = 3, expire = call.expire, wait = WAIT, guard = lock, locker = caller.locks)]
async fn permit(caller: &Caller, call: &Call, polled: &AtomicU64) -> Result<(), LockError> {
    caller.stay(&[&lock], call, polled).await;
    Ok(())
}

#[distributed_lock(keys = call.keys(), expire = call.expire, wait = WAIT, renew, guard = locks, locker = caller.locks)]
async fn set(caller: &Caller, call: &Call, polled: &AtomicU64) -> Result<(), LockError> {
    let leases: Vec<&Lease> = locks.iter().collect();
    caller.stay(&leases, call, polled).await;
    Ok(())
}

/// What it sees is written down.
pub(crate) fn look(stays: &mut [Stay]) {
    for stay in stays {
        stay.look();
    }
}

#[expect(clippy::disallowed_methods, reason = "bodies that take their time are the subject")]
pub(crate) async fn pause(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

/// Longer than what a fault takes from all who wait.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
