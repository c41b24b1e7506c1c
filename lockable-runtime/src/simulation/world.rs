//! The world of one seed: the server, the ways to it, and what is known of all that happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::yield_now;

use super::dice::Dice;
use super::history::{History, MARKS, Names, Record};
use super::keys::{KEYS, known, lock_key};
use super::life::sleep_until;
use super::mix::{Mix, Way};
use super::rules::{Hold, Rules};
use crate::backend::{Backend, Memory, Reply, Reserved, Revocation, Revoking, Verb};
use crate::types::clock::{Moment, tokio_time};
use crate::types::key::LockKey;
use crate::types::reason::Reason;

pub(super) struct World {
    pub(super) store: Arc<Memory>,
    pub(super) mix: Mix,
    dice: Mutex<Dice>,
    pub(super) history: Mutex<History>,
    rules: Mutex<Rules>,
    /// The server answers nothing until then.
    stalled: Mutex<Moment>,
    /// By how much the server's clock was set back.
    set_back: Mutex<Duration>,
    /// One less than the first fencing token: those of the calendar differ from run to run.
    fences: OnceLock<u64>,
    /// Whether nothing goes wrong any more, and no call begins.
    is_calm: AtomicBool,
}

impl World {
    pub(super) fn new(mix: Mix, dice: Dice, record: Record) -> Arc<Self> {
        Arc::new(Self {
            store: Memory::open("").unwrap(),
            rules: Mutex::new(Rules::new(&mix)),
            mix,
            dice: Mutex::new(dice),
            history: Mutex::new(History::new(record)),
            stalled: Mutex::default(),
            set_back: Mutex::default(),
            fences: OnceLock::new(),
            is_calm: AtomicBool::new(false),
        })
    }

    pub(super) fn roll<R>(&self, roll: impl FnOnce(&mut Dice) -> R) -> R {
        roll(&mut self.dice.lock().unwrap())
    }

    pub(super) fn note(&self, text: impl FnOnce(&mut Names) -> String) {
        self.history().note(text);
    }

    pub(super) fn count(&self, what: &'static str) {
        self.history().count(what);
    }

    pub(super) fn violation(&self, text: impl FnOnce(&mut Names) -> String) {
        self.history().violation(text);
    }

    pub(super) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap()
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }

    pub(super) fn set_calm(&self, is_calm: bool) {
        self.is_calm.store(is_calm, Ordering::Relaxed);
    }

    pub(super) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// How long a request or a reply is under way.
    pub(super) fn way(&self, way: Way) -> Duration {
        let Mix { slow, longest_way, very_slow, ref slow_ways, .. } = self.mix;
        let slow = if slow_ways.contains(&way) { slow } else { 0 };
        let is_calm = self.is_calm();
        self.roll(|dice| {
            if !is_calm && dice.chance(very_slow) {
                Duration::from_millis(500) + dice.millis_below(3_000)
            } else if !is_calm && dice.chance(slow) {
                dice.millis_below(longest_way)
            } else {
                Duration::from_micros(50) + dice.micros_below(1_000)
            }
        })
    }

    /// How long a message of a grant is under way.
    pub(super) fn message_way(&self) -> Duration {
        let Mix { late_message, longest_message, .. } = self.mix;
        let is_calm = self.is_calm();
        self.roll(|dice| {
            if !is_calm && dice.chance(late_message) {
                dice.millis_below(longest_message)
            } else {
                Duration::from_micros(30) + dice.micros_below(500)
            }
        })
    }

    /// What happens in the same millisecond happens in any order.
    pub(super) async fn in_any_order(&self) {
        for _ in 0..self.roll(|dice| dice.below(4)) {
            yield_now().await;
        }
    }

    pub(super) fn stall_until(&self, end: Moment) {
        let mut stalled = self.stalled.lock().unwrap();
        *stalled = end.max(*stalled);
    }

    /// What was sent arrives then, and is read once the server does anything.
    pub(super) async fn read_by_server(&self, arrives: Moment) {
        sleep_until(|| arrives.max(*self.stalled.lock().unwrap())).await;
        self.in_any_order().await;
    }

    pub(super) fn set_clock_back(&self, by: Duration) {
        *self.set_back.lock().unwrap() += by;
    }

    /// The server's clock, in microseconds.
    pub(super) fn server_time(&self) -> u64 {
        // Long ago it started, so it can be set back often.
        let year = Duration::from_secs(365 * 86_400);
        let time = tokio_time().since(Moment::default()) + year;
        let shown = time.checked_sub(*self.set_back.lock().unwrap()).unwrap();
        u64::try_from(shown.as_micros()).unwrap()
    }

    /// The owner of a lock in the store, with the mark that shows a minimum hold.
    pub(super) fn owner(&self, key: &str) -> Option<String> {
        answer(self.store.inspect(lock_key(key))).map(|held| held.owner.text().to_owned())
    }

    /// Asks the holder of a lock to stop, where there is one.
    pub(super) fn revoke(&self, key: &str) {
        if let Some(owner) = self.owner(key) {
            let (verb, key, reason) = (Verb::Revoke, lock_key(key), Reason::new("an operator"));
            answer(self.store.send(Revocation { verb, owner, key, reason }));
        }
    }

    pub(super) fn queue(&self, key: &str) -> Vec<String> {
        self.store.queue(&lock_key(key))
    }

    /// The owner and the queue of each lock, for the trace.
    pub(super) fn shown(&self, names: &mut Names) -> String {
        let used = KEYS.map(|key| (key, self.owner(key), self.queue(key)));
        let used =
            used.into_iter().filter(|(_, owner, queue)| owner.is_some() || !queue.is_empty());
        let shown = used.map(|(key, owner, queue)| {
            format!("{key} {}, queue {}", names.of_all(owner), names.of_all(queue))
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    /// A fencing token, counted from the first one.
    pub(super) fn fence(&self, token: u64) -> u64 {
        token.saturating_sub(*self.fences.get_or_init(|| token - 1))
    }

    /// The server granted a lock.
    pub(super) fn granted(&self, key: &LockKey, owner: &str, fence: Reserved) {
        let fence = [fence.first, fence.last()].map(|token| self.fence(token));
        let broken = self.rules.lock().unwrap().granted(known(key), owner, fence);
        if let Some(broken) = broken {
            self.violation(|_| broken);
        }
        let has = |other: &&str| self.owner(other).as_deref() == Some(owner);
        if KEYS.iter().filter(|other| has(other)).count() > 1 {
            self.violation(|names| format!("{key}: {} has two locks", names.of(owner)));
        }
    }

    /// Whether this hold, which ended well, leaves its lock done for so long.
    pub(super) fn is_done(&self, hold: &Hold, rest: Duration) -> bool {
        let Some(found) = answer(self.store.inspect(lock_key(hold.key))) else { return false };
        // The rest is in whole milliseconds.
        let longest = found.remaining.unwrap_or_default() + Duration::from_millis(1);
        found.owner.text().strip_prefix(MARKS) == Some(&hold.owner) && rest <= longest
    }

    /// Something may happen to this lock.
    pub(super) fn struck_key(&self) -> &'static str {
        self.roll(|dice| if dice.chance(500) { KEYS[0] } else { dice.one_of(&KEYS) })
    }

    /// A body is polled, which believes in its lock.
    pub(super) fn polled(&self, hold: &Hold) {
        let in_store = self.owner(hold.key);
        let mut history = self.history();
        let polled = self.rules.lock().unwrap().polled(hold, in_store.as_deref());
        history.count("polls of bodies");
        if polled.is_first {
            history.count(if polled.is_passed { "passes" } else { "grants used" });
        }
        for broken in polled.broken {
            history.violation(|_| format!("{}: hold {} {broken}", hold.key, hold.number));
        }
    }
}

/// The answer of the store in memory, which needs no time.
pub(super) fn answer<T>(mut reply: Reply<T>) -> T {
    match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => answer,
        Poll::Ready(Err(_)) | Poll::Pending => unreachable!("memory answers at once"),
    }
}
