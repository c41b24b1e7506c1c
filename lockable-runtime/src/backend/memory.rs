//! Locks in this process: the reference that the other backends are compared with, and what tests
//! and examples use when there is no server.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use once_cell::sync::Lazy;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::{Acquisition, Attempt, Backend, Fault, Release, Reply};
use crate::background::Background;
use crate::clock::{Moment, timer_on, tokio_time};
use crate::error::LockErrorKind;
use crate::token::{FencingToken, OwnerToken};

/// A store of locks in memory, measured by tokio's clock.
#[derive(Debug)]
pub(crate) struct Memory {
    name: String,
    calendar: Calendar,
    /// For timers of callers outside any runtime.
    background: Background,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    locks: HashMap<String, Held>,
    floors: HashMap<String, Floor>,
    /// Expired entries are swept when the maps have grown to this size.
    sweep_at: usize,
}

/// The calendar that fencing floors start from. It survives [`Memory::flush`], as a server's does.
#[derive(Debug)]
struct Calendar {
    /// The calendar time at `born`, in microseconds.
    epoch: u64,
    born: Moment,
    latest: AtomicU64,
}

impl Calendar {
    fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let epoch = since_epoch.map_or(0, micros);
        Self { epoch, born: tokio_time(), latest: AtomicU64::new(0) }
    }

    /// Microseconds since 1970. More than one passes between two grants, even while tokio's clock
    /// is paused: that time goes on is what makes a lost floor start above the old one.
    fn read(&self, now: Moment) -> u64 {
        let time = self.epoch.saturating_add(micros(now.since(self.born)));
        let next = |latest: u64| Some(time.max(latest.saturating_add(2)));
        let latest = self.latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        time.max(latest.unwrap_or(0).saturating_add(2))
    }
}

#[derive(Debug)]
struct Held {
    owner: OwnerToken,
    expires: Moment,
}

#[derive(Debug)]
struct Floor {
    value: u64,
    expires: Moment,
}

impl Memory {
    /// A store of its own, or the one that this process shares under `name`.
    ///
    /// # Errors
    /// When the system gives no background thread.
    pub(crate) fn open(name: &str) -> Result<Arc<Self>, Fault> {
        static SHARED: Lazy<Mutex<HashMap<String, Weak<Memory>>>> = Lazy::new(Mutex::default);
        if name.is_empty() {
            return Ok(Arc::new(Self::new("memory://".to_owned())?));
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = shared.get(name).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let store = Arc::new(Self::new(format!("memory://{name}"))?);
        shared.retain(|_, store| store.strong_count() > 0);
        shared.insert(name.to_owned(), Arc::downgrade(&store));
        Ok(store)
    }

    fn new(name: String) -> Result<Self, Fault> {
        let background = Background::start()
            .map_err(|error| Fault::new(LockErrorKind::Unavailable, error.to_string()))?;
        Ok(Self { name, calendar: Calendar::start(), background, state: Mutex::default() })
    }

    /// Forgets everything, as a server does that restarts without its data.
    pub(crate) fn flush(&self) {
        *self.state() = State::default();
    }

    /// The names that live now and how long each still does.
    pub(crate) fn keyspace(&self) -> Vec<(String, Duration)> {
        let now = tokio_time();
        let mut state = self.state();
        state.sweep(now);
        let locks = state.locks.iter().map(|(key, held)| (key.clone(), held.expires.since(now)));
        let floors =
            state.floors.iter().map(|(key, floor)| (key.clone(), floor.expires.since(now)));
        locks.chain(floors).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is one assignment, so a panic elsewhere leaves the state sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquire_now(&self, attempt: &Attempt) -> Acquisition {
        let now = tokio_time();
        let since = attempt.mark_sent(now);
        let mut state = self.state();
        state.sweep_when_grown(now);
        if !state.take(attempt, now) {
            return Acquisition::Contended;
        }
        let fencing_token = state.next_token(attempt, now, self.calendar.read(now));
        Acquisition::Granted { fencing_token, since }
    }

    fn release_now(&self, attempt: &Attempt) -> Release {
        let now = tokio_time();
        let mut state = self.state();
        match state.holder(attempt.key.as_str(), now) {
            None => Release::Absent,
            Some(owner) if *owner != attempt.owner => Release::Taken,
            Some(_) => {
                state.locks.remove(attempt.key.as_str());
                Release::Released
            }
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl State {
    fn holder(&self, key: &str, now: Moment) -> Option<&OwnerToken> {
        self.locks.get(key).filter(|held| now < held.expires).map(|held| &held.owner)
    }

    /// Makes the attempt the holder of a free key; an attempt that holds it already stays so.
    fn take(&mut self, attempt: &Attempt, now: Moment) -> bool {
        let key = attempt.key.as_str();
        if let Some(owner) = self.holder(key, now) {
            return *owner == attempt.owner;
        }
        let expires = now.after(attempt.ttl.duration());
        self.locks.insert(key.to_owned(), Held { owner: attempt.owner.clone(), expires });
        true
    }

    fn next_token(&mut self, attempt: &Attempt, now: Moment, seed: u64) -> FencingToken {
        let name = attempt.key.companion("floor");
        let expires = now.after(attempt.ttl.floor_life());
        let floor = self.floors.entry(name).or_insert(Floor { value: seed, expires });
        if floor.expires <= now {
            *floor = Floor { value: seed, expires };
        }
        floor.value = floor.value.saturating_add(1);
        FencingToken::new(floor.value)
    }

    fn sweep_when_grown(&mut self, now: Moment) {
        const SMALL: usize = 64;
        if self.locks.len() + self.floors.len() >= self.sweep_at.max(SMALL) {
            self.sweep(now);
            self.sweep_at = 2 * (self.locks.len() + self.floors.len());
        }
    }

    fn sweep(&mut self, now: Moment) {
        self.locks.retain(|_, held| now < held.expires);
        self.floors.retain(|_, floor| now < floor.expires);
    }
}

impl Backend for Arc<Memory> {
    fn name(&self) -> &str {
        &self.name
    }

    fn now(&self) -> Moment {
        tokio_time()
    }

    fn timer(&self, duration: Duration) -> Sleep {
        let runtime = Handle::try_current().unwrap_or_else(|_| self.background.handle().clone());
        timer_on(&runtime, duration)
    }

    fn connect(&self) -> Reply<()> {
        Box::pin(ready(Ok(())))
    }

    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let store = Arc::clone(self);
        Box::pin(async move { Ok(store.acquire_now(&attempt)) })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let store = Arc::clone(self);
        Box::pin(async move { Ok(store.release_now(&attempt)) })
    }

    fn unanswered(&self) {}

    /// Runs the task to its end: nothing in memory ever waits.
    fn detach(&self, mut task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut context = Context::from_waker(Waker::noop());
        if task.as_mut().poll(&mut context).is_pending() {
            self.background.spawn(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::LockKey;
    use crate::options::Ttl;

    fn attempt(key: &'static str) -> Attempt {
        Attempt::new(LockKey::from_static(key), Ttl::DEFAULT)
    }

    fn token(acquisition: &Acquisition) -> u64 {
        let Acquisition::Granted { fencing_token, .. } = acquisition else { panic!("contended") };
        (*fencing_token).into()
    }

    #[test]
    fn a_repeated_attempt_finds_its_own_token() {
        let store = Memory::open("").unwrap();
        let attempt = attempt("k");
        let first = token(&store.acquire_now(&attempt));
        assert!(token(&store.acquire_now(&attempt)) > first);
    }

    #[test]
    fn a_release_by_another_changes_nothing() {
        let store = Memory::open("").unwrap();
        let (holder, other) = (attempt("k"), attempt("k"));
        token(&store.acquire_now(&holder));
        assert_eq!(store.release_now(&other), Release::Taken);
        assert!(matches!(store.acquire_now(&other), Acquisition::Contended));
        assert_eq!(store.release_now(&holder), Release::Released);
        assert_eq!(store.release_now(&holder), Release::Absent);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_rise_over_a_flush_while_time_stands_still() {
        let store = Memory::open("").unwrap();
        let mut latest = 0;
        for _ in 0..3 {
            let holder = attempt("k");
            for _ in 0..5 {
                let next = token(&store.acquire_now(&holder));
                assert!(next > latest);
                latest = next;
            }
            store.flush();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn expired_entries_are_swept() {
        let store = Memory::open("").unwrap();
        for number in 0..1_000 {
            let key = LockKey::new(format!("k{number}")).unwrap();
            store.acquire_now(&Attempt::new(key, Ttl::DEFAULT));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert!(store.state().locks.len() < 200);
    }

    #[test]
    fn a_name_is_shared_and_no_name_is_not() {
        let (one, two) = (Memory::open("shared").unwrap(), Memory::open("shared").unwrap());
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&Memory::open("").unwrap(), &Memory::open("").unwrap()));
    }
}
