//! Locks in this process: the reference that the other backends are compared with, and what tests
//! and examples use when there is no server.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::{
    Acquisition, Attempt, Backend, Checkup, Enqueued, Environment, Fault, Grant, Granted, Held,
    Release, Renewal, Renewed, Reply,
};
use crate::background::Background;
use crate::check::{Code, Finding, Report, Severity};
use crate::types::clock::{Moment, timer_on, tokio_time};
use crate::types::error::LockErrorKind;
use crate::types::key::LockKey;
use crate::types::process::PerProcess;
use crate::types::token::{FencingToken, Origin, OwnerToken};

/// As many fencing tokens as a turn can need.
const RESERVED: u64 = 17;

/// A lock that stays taken after its release stays so for as much longer where somebody waits, who asks for
/// it within that time: so no newcomer finds it free.
const GRACE: Duration = Duration::from_secs(1);

/// A store of locks in memory, measured by tokio's clock.
pub(crate) struct Memory {
    name: String,
    /// Differs from store to store, also where the name does not.
    store: String,
    calendar: Calendar,
    /// For timers of callers outside any runtime.
    background: Background,
    state: Mutex<State>,
    /// Who is told of grants, by where their tokens began.
    listeners: Mutex<Vec<(Origin, Weak<dyn Granted>)>>,
}

#[derive(Default)]
struct State {
    locks: HashMap<String, Lock>,
    queues: HashMap<String, VecDeque<Arc<Attempt>>>,
    fences: HashMap<String, Fence>,
    /// Expired entries are swept when the maps have grown to this size.
    sweep_at: usize,
}

/// The calendar that fence counters start from. It survives [`Memory::flush`], as a server's does.
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

    /// Microseconds since 1970. More pass between two grants than a grant reserves tokens, even
    /// while tokio's clock is paused: that time goes on is what makes a lost fence counter start above the
    /// old one.
    fn read(&self, now: Moment) -> u64 {
        const STEP: u64 = RESERVED + 1;
        let time = self.epoch.saturating_add(micros(now.since(self.born)));
        let next = |latest: u64| Some(time.max(latest.saturating_add(STEP)));
        let latest = self.latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        time.max(latest.unwrap_or(0).saturating_add(STEP))
    }
}

struct Lock {
    owner: OwnerToken,
    expires: Moment,
    /// Released, and taken only until its minimum hold is over; it expires [`GRACE`] later where somebody
    /// waits for it.
    kept_until: Option<Moment>,
}

impl Lock {
    fn is_held_by(&self, attempt: &Attempt) -> bool {
        self.owner == attempt.owner && self.kept_until.is_none()
    }

    /// How long it is taken.
    fn remaining(&self, now: Moment) -> Duration {
        self.kept_until.unwrap_or(self.expires).since(now)
    }

    fn keep_for_queue(&mut self) {
        if let Some(end) = self.kept_until {
            self.expires = end.after(GRACE);
        }
    }
}

struct Fence {
    value: u64,
    expires: Moment,
}

impl Memory {
    /// A store of its own, or the one that this process shares under `name`.
    ///
    /// # Errors
    /// When the system gives no background thread.
    pub(crate) fn open(name: &str) -> Result<Arc<Self>, Fault> {
        static SHARED: PerProcess<Mutex<HashMap<String, Weak<Memory>>>> = PerProcess::new();
        if name.is_empty() {
            static COUNT: AtomicU64 = AtomicU64::new(1);
            let store = format!("memory://#{}", COUNT.fetch_add(1, Ordering::Relaxed));
            return Ok(Arc::new(Self::new("memory://".to_owned(), store)?));
        }
        let mut shared = SHARED.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = shared.get(name).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let url = format!("memory://{name}");
        let store = Arc::new(Self::new(url.clone(), url)?);
        shared.retain(|_, store| store.strong_count() > 0);
        shared.insert(name.to_owned(), Arc::downgrade(&store));
        Ok(store)
    }

    fn new(name: String, store: String) -> Result<Self, Fault> {
        let background = Background::start()
            .map_err(|error| Fault::new(LockErrorKind::Unavailable, error.to_string()))?;
        let (state, listeners) = (Mutex::default(), Mutex::default());
        Ok(Self { name, store, calendar: Calendar::start(), background, state, listeners })
    }

    /// Forgets everything, as a server does that restarts without its data.
    pub(crate) fn flush(&self) {
        *self.state() = State::default();
    }

    /// Takes a lock away, as somebody from outside can.
    pub(crate) fn delete(&self, key: &str) {
        self.state().locks.remove(key);
    }

    /// Ends a grant before its time, as a server does that loses it, and gives the lock to the first
    /// who waits; whether anybody had it.
    pub(crate) fn evict(&self, key: &str) -> bool {
        let now = tokio_time();
        let mut state = self.state();
        if state.lock_of(key, now).is_none() {
            return false;
        }
        state.locks.remove(key);
        let grant = self.hand_on(&mut state, key, now, None);
        drop(state);
        self.tell(grant);
        true
    }

    /// Puts another holder in, whoever was there, as somebody from outside can.
    pub(crate) fn put_foreign(&self, key: &str, life: Duration) {
        let expires = tokio_time().after(life);
        let lock =
            Lock { owner: OwnerToken::received("another holder"), expires, kept_until: None };
        self.state().locks.insert(key.to_owned(), lock);
    }

    /// The owner tokens of those who wait for a lock, in their order.
    pub(crate) fn queue(&self, key: &str) -> Vec<String> {
        let owner = |attempt: &Arc<Attempt>| attempt.owner.as_ref().to_owned();
        self.state().queues.get(key).into_iter().flatten().map(owner).collect()
    }

    /// The last fencing token of a lock that is given away, where its fence counter lives.
    pub(crate) fn fence(&self, key: &str) -> Option<u64> {
        let name = LockKey::prefixed("", key).ok()?.fence().to_string();
        let now = tokio_time();
        self.state().fences.get(&name).filter(|fence| now < fence.expires).map(|fence| fence.value)
    }

    /// The names that live now and how long each still does.
    pub(crate) fn keyspace(&self) -> Vec<(String, Duration)> {
        let now = tokio_time();
        let mut state = self.state();
        state.sweep(now);
        let locks = state.locks.iter().map(|(key, lock)| (key.clone(), lock.expires.since(now)));
        let fences =
            state.fences.iter().map(|(key, fence)| (key.clone(), fence.expires.since(now)));
        locks.chain(fences).collect()
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
            return Acquisition::Busy;
        }
        let fencing_token = state.next_token(attempt, now, self.calendar.read(now));
        Acquisition::Granted { fencing_token, since }
    }

    fn enqueue_now(&self, attempt: &Arc<Attempt>) -> (Enqueued, Option<Grant>) {
        let now = tokio_time();
        attempt.mark_sent(now);
        let key = attempt.key.as_str();
        let mut state = self.state();
        let mut handed = None;
        state.end_kept(key, now);
        if state.lock_of(key, now).is_none() && !state.is_first(attempt) {
            handed = self.hand_on(&mut state, key, now, Some(attempt));
        }
        if state.take(attempt, now) {
            state.withdraw(attempt);
            // One that was handed the lock a while ago has it from now on, too.
            state.prolong(attempt, now);
            let fence = state.reserve(attempt, now, &self.calendar);
            return (Enqueued::Granted(Grant::answered(attempt, fence, now, attempt.ttl)), None);
        }
        state.join(attempt, now);
        let remaining = state.lock_of(key, now).map(|lock| lock.remaining(now));
        (Enqueued::Queued { remaining }, handed)
    }

    fn leave_now(&self, attempt: &Attempt) -> Option<Grant> {
        let now = tokio_time();
        let mut state = self.state();
        state.withdraw(attempt);
        let key = attempt.key.as_str();
        if !state.is_held_by(attempt, now) {
            state.keep_for_nobody(key, now);
            return None;
        }
        state.locks.remove(key);
        self.hand_on(&mut state, key, now, None)
    }

    /// Gives a lock that nobody has to the first who waits for it and can be told so. The attempt
    /// that asks is told by the answer.
    fn hand_on(
        &self,
        state: &mut State,
        key: &str,
        now: Moment,
        asking: Option<&Attempt>,
    ) -> Option<Grant> {
        let next = loop {
            let next = state.pop(key)?;
            let asks = asking.is_some_and(|asking| asking.owner == next.owner);
            if asks || self.listener(&next.owner).is_some_and(|hook| hook.strong_count() > 0) {
                break next;
            }
        };
        let ttl = next.ttl.provisional();
        let expires = now.after(ttl.duration());
        let lock = Lock { owner: next.owner.clone(), expires, kept_until: None };
        state.locks.insert(key.to_owned(), lock);
        let fence = state.reserve(&next, now, &self.calendar);
        Some(Grant::answered(&next, fence, now, ttl))
    }

    fn listener(&self, owner: &OwnerToken) -> Option<Weak<dyn Granted>> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let of_owner = listeners.iter().find(|(origin, _)| origin.is_of(owner.as_ref()));
        of_owner.map(|(_, hook)| Weak::clone(hook))
    }

    /// Tells the locker whose grant it is, outside of the state's lock.
    fn tell(&self, grant: Option<Grant>) {
        let Some(grant) = grant else { return };
        if let Some(listener) = self.listener(&grant.owner).and_then(|hook| hook.upgrade()) {
            listener.granted(grant);
        }
    }

    fn renew_now(&self, renewal: &Renewal) -> Renewed {
        let now = tokio_time();
        match self.state().lock_of(renewal.attempt.key.as_str(), now) {
            None => Renewed::Absent,
            Some(lock) if !lock.is_held_by(&renewal.attempt) => Renewed::Taken,
            Some(lock) => {
                let end = renewal.ttl.map_or(lock.expires, |ttl| now.after(ttl.duration()));
                lock.expires = lock.expires.max(end);
                Renewed::Held
            }
        }
    }

    fn release_now(
        &self,
        attempt: &Attempt,
        next: Option<&Arc<Attempt>>,
    ) -> (Release, Option<Grant>) {
        let now = tokio_time();
        let mut state = self.state();
        if let Some(next) = next {
            let since = next.mark_sent(now);
            if state.is_held_by(next, now) {
                // A repeated request finds what the first one did.
                let fence = state.reserve(next, now, &self.calendar);
                return (
                    Release::Released,
                    Some(Grant::answered(next, fence, since, next.ttl.provisional())),
                );
            }
            state.join(next, now);
        }
        let (key, released) = (attempt.key.as_str(), state.release(attempt, now));
        if released != Release::Released || state.lock_of(key, now).is_some() {
            return (released, None);
        }
        let handed = self.hand_on(&mut state, key, now, next.map(|next| &**next));
        (released, handed)
    }

    fn inspect_now(&self, key: &str) -> Option<Held> {
        let now = tokio_time();
        let mut state = self.state();
        let lock = state.lock_of(key, now)?;
        let mark = match lock.kept_until {
            None => "",
            Some(end) if end == lock.expires => "~",
            Some(_) => "=",
        };
        let owner = [mark, lock.owner.as_ref()].concat();
        Some(Held { owner, remaining: Some(lock.remaining(now)) })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl State {
    fn lock_of(&mut self, key: &str, now: Moment) -> Option<&mut Lock> {
        self.locks.get_mut(key).filter(|lock| now < lock.expires)
    }

    /// Makes the attempt the holder of a free key; an attempt that holds it already stays so.
    fn take(&mut self, attempt: &Attempt, now: Moment) -> bool {
        let key = attempt.key.as_str();
        if let Some(lock) = self.lock_of(key, now) {
            return lock.is_held_by(attempt);
        }
        let expires = now.after(attempt.ttl.duration());
        let lock = Lock { owner: attempt.owner.clone(), expires, kept_until: None };
        self.locks.insert(key.to_owned(), lock);
        true
    }

    fn release(&mut self, attempt: &Attempt, now: Moment) -> Release {
        let is_waited_for = self.queues.contains_key(attempt.key.as_str());
        let Some(lock) = self.lock_of(attempt.key.as_str(), now) else {
            return Release::Absent;
        };
        if lock.owner != attempt.owner {
            return Release::Taken;
        }
        match attempt.kept_for(now) {
            // A repeated release finds it so.
            _ if lock.kept_until.is_some() => {}
            Some(rest) => {
                lock.expires = now.after(rest);
                lock.kept_until = Some(lock.expires);
                if is_waited_for {
                    lock.keep_for_queue();
                }
            }
            None => drop(self.locks.remove(attempt.key.as_str())),
        }
        Release::Released
    }

    fn is_held_by(&mut self, attempt: &Attempt, now: Moment) -> bool {
        self.lock_of(attempt.key.as_str(), now).is_some_and(|lock| lock.is_held_by(attempt))
    }

    /// Makes the lock of its holder last as long as if it were taken now.
    fn prolong(&mut self, attempt: &Attempt, now: Moment) {
        if let Some(lock) = self.lock_of(attempt.key.as_str(), now) {
            lock.expires = lock.expires.max(now.after(attempt.ttl.duration()));
        }
    }

    fn is_first(&self, attempt: &Attempt) -> bool {
        let first = self.queues.get(attempt.key.as_str()).and_then(VecDeque::front);
        first.is_some_and(|first| first.owner == attempt.owner)
    }

    /// Ends a lock that stays taken for those who wait alone.
    fn end_kept(&mut self, key: &str, now: Moment) {
        let lock = self.locks.get(key);
        if lock.and_then(|lock| lock.kept_until).is_some_and(|end| end <= now) {
            self.locks.remove(key);
        }
    }

    /// Where nobody waits any more, a lock ends when its minimum hold is over.
    fn keep_for_nobody(&mut self, key: &str, now: Moment) {
        if self.queues.contains_key(key) {
            return;
        }
        self.end_kept(key, now);
        if let Some(lock) = self.lock_of(key, now)
            && let Some(end) = lock.kept_until
        {
            lock.expires = end;
        }
    }

    /// Queues the attempt behind the others, unless it stands there.
    fn join(&mut self, attempt: &Arc<Attempt>, now: Moment) {
        if let Some(lock) = self.lock_of(attempt.key.as_str(), now) {
            lock.keep_for_queue();
        }
        let queue = self.queues.entry(attempt.key.as_str().to_owned()).or_default();
        if !queue.iter().any(|other| other.owner == attempt.owner) {
            queue.push_back(Arc::clone(attempt));
        }
    }

    fn pop(&mut self, key: &str) -> Option<Arc<Attempt>> {
        let queue = self.queues.get_mut(key)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(key);
        }
        first
    }

    fn withdraw(&mut self, attempt: &Attempt) {
        let key = attempt.key.as_str();
        if let Some(queue) = self.queues.get_mut(key) {
            queue.retain(|other| other.owner != attempt.owner);
            if queue.is_empty() {
                self.queues.remove(key);
            }
        }
    }

    /// The first of the fencing tokens of a turn.
    fn reserve(&mut self, attempt: &Attempt, now: Moment, calendar: &Calendar) -> u64 {
        let first = self.next_token(attempt, now, calendar.read(now));
        if let Some(fence) = self.fences.get_mut(&attempt.key.fence().to_string()) {
            fence.value = fence.value.saturating_add(RESERVED - 1);
        }
        first.into()
    }

    fn next_token(&mut self, attempt: &Attempt, now: Moment, seed: u64) -> FencingToken {
        let name = attempt.key.fence().to_string();
        let expires = now.after(attempt.ttl.fence_life());
        let fence = self.fences.entry(name).or_insert(Fence { value: seed, expires });
        if fence.expires <= now {
            *fence = Fence { value: seed, expires };
        }
        fence.value = fence.value.saturating_add(1);
        FencingToken::new(fence.value)
    }

    fn sweep_when_grown(&mut self, now: Moment) {
        const SMALL: usize = 64;
        if self.locks.len() + self.fences.len() >= self.sweep_at.max(SMALL) {
            self.sweep(now);
            self.sweep_at = 2 * (self.locks.len() + self.fences.len());
        }
    }

    fn sweep(&mut self, now: Moment) {
        self.locks.retain(|_, lock| now < lock.expires);
        self.fences.retain(|_, fence| now < fence.expires);
    }
}

impl Backend for Arc<Memory> {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let store = Arc::clone(self);
        Box::pin(async move { Ok(store.acquire_now(&attempt)) })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let (released, grant) = store.release_now(&attempt, None);
            store.tell(grant);
            Ok(released)
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let (released, grant) = store.release_now(&attempt, Some(&next));
            let is_next = |grant: &Grant| grant.owner == next.owner;
            if grant.as_ref().is_some_and(is_next) {
                return Ok((released, grant));
            }
            store.tell(grant);
            Ok((released, None))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let (outcome, grant) = store.enqueue_now(&attempt);
            store.tell(grant);
            Ok(outcome)
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let store = Arc::clone(self);
        Box::pin(async move {
            store.tell(store.leave_now(&attempt));
            Ok(())
        })
    }

    fn listen(&self, origin: Origin, hook: Weak<dyn Granted>) -> Reply<()> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if !listeners.iter().any(|(other, _)| *other == origin) {
            listeners.retain(|(_, other)| other.strong_count() > 0);
            listeners.push((origin, hook));
        }
        Box::pin(ready(Ok(())))
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let store = Arc::clone(self);
        Box::pin(async move { Ok(renewals.iter().map(|one| Ok(store.renew_now(one))).collect()) })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let store = Arc::clone(self);
        Box::pin(async move { Ok(store.inspect_now(key.as_str())) })
    }
}

impl Environment for Arc<Memory> {
    fn name(&self) -> &str {
        &self.name
    }

    fn store(&self) -> &str {
        &self.store
    }

    fn now(&self) -> Moment {
        tokio_time()
    }

    fn timer(&self, duration: Duration) -> Sleep {
        timer_on(&self.home(false), duration)
    }

    /// Runs the task to its end, unless it waits for a timer. That one is the caller's, so the task ends
    /// with the caller's runtime.
    fn detach(&self, mut task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut context = Context::from_waker(Waker::noop());
        if task.as_mut().poll(&mut context).is_pending() {
            drop(self.home(false).spawn(task));
        }
    }

    /// The caller's own runtime, whose clock may be paused, unless nothing runs there meanwhile.
    fn home(&self, caller_blocks: bool) -> Handle {
        let current = Handle::try_current().ok().filter(|_| !caller_blocks);
        current.unwrap_or_else(|| self.background.handle().clone())
    }

    fn connect(&self) -> Reply<()> {
        Box::pin(ready(Ok(())))
    }

    /// There is no connection that could break.
    fn when_connected(&self, _: Box<dyn Fn() + Send + Sync>) {}

    fn unanswered(&self, _: Duration) {}

    fn check(&self, _: &str) -> Checkup {
        let mut report = Report::new(&self.name);
        report.add([Finding::new(
            Severity::Info,
            Code::OneProcess,
            "these locks are in the memory of this process: no other one sees them, and they end \
             with it",
        )]);
        Box::pin(ready(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::options::Ttl;

    fn attempt(key: &'static str) -> Attempt {
        Attempt::new(LockKey::from_static(key), Ttl::DEFAULT, None).unwrap()
    }

    fn token(acquisition: &Acquisition) -> u64 {
        let Acquisition::Granted { fencing_token, .. } = acquisition else { panic!("busy") };
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
        assert_eq!(store.release_now(&other, None).0, Release::Taken);
        assert!(matches!(store.acquire_now(&other), Acquisition::Busy));
        assert_eq!(store.release_now(&holder, None).0, Release::Released);
        assert_eq!(store.release_now(&holder, None).0, Release::Absent);
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
            store.acquire_now(&Attempt::new(key, Ttl::DEFAULT, None).unwrap());
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert!(store.state().locks.len() < 200);
    }

    /// Goal: a timer of a runtime that has ended, polled elsewhere, which panics.
    /// Method: the task tells at its end whether it is unwinding.
    #[test]
    fn a_task_that_waits_ends_with_the_runtime_of_its_timer() {
        struct Ending(std::sync::mpsc::Sender<bool>);
        impl Drop for Ending {
            fn drop(&mut self) {
                self.0.send(std::thread::panicking()).unwrap();
            }
        }
        let store = Memory::open("").unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let waiting = Arc::clone(&store);
        let task = Box::pin(async move {
            let _ending = Ending(tell);
            waiting.timer(Duration::from_secs(600)).await;
        });
        runtime.block_on(async { store.detach(task) });
        drop(runtime);
        assert!(!told.recv().unwrap());
    }

    #[test]
    fn a_name_is_shared_and_no_name_is_not() {
        let (one, two) = (Memory::open("shared").unwrap(), Memory::open("shared").unwrap());
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&Memory::open("").unwrap(), &Memory::open("").unwrap()));
    }
}
