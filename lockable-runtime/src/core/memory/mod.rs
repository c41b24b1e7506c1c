//! Locks in this process: the reference for the other backends, and what tests and examples use without a server.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use self::change::Change;
use self::state::State;
use crate::core::backend::{
    AcquireReply, Attempt, Backend, Enqueued, Environment, Events, Fault, Grant, Release, Renewal,
    Renewed, Reply, Transferred,
};
use crate::core::background::background;
use crate::core::process::PerProcess;
use crate::core::process::clock::{Moment, timer_on, tokio_time};
use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;
use crate::core::types::owner::{Held, Origin};

mod change;
#[cfg(lockable_internals)]
mod outside;
mod permits;
#[cfg(test)]
mod slow;
pub(crate) mod state;

#[cfg(lockable_internals)]
pub use self::outside::MemoryStore;
#[cfg(test)]
pub(crate) use self::slow::Slow;

/// A store of locks in memory, measured by tokio's clock.
pub(crate) struct Memory {
    name: String,
    /// Differs from store to store, also if the name does not.
    store: String,
    /// For timers of callers outside any runtime.
    background: Handle,
    pub(crate) service: Option<String>,
    pub(crate) born: Moment,
    pub(crate) state: Mutex<State>,
}

impl Memory {
    /// A store of its own, or the one that this process shares under `name`.
    ///
    /// # Errors
    /// When the system gives no background thread.
    pub(crate) fn open(name: &str) -> Result<Arc<Self>, Fault> {
        Self::open_as(name, None)
    }

    /// As [`open`](Self::open), for a process that is called `service`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_as(name: &str, service: Option<&str>) -> Result<Arc<Self>, Fault> {
        static SHARED: PerProcess<Mutex<HashMap<String, Weak<Memory>>>> = PerProcess::new();
        static COUNT: AtomicU64 = AtomicU64::new(1);
        if name.is_empty() {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            return Self::new("memory://".to_owned(), format!("memory://#{number}"), service);
        }
        let mut shared = SHARED.get().lock();
        if let Some(store) = shared.get(name).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let url = format!("memory://{name}");
        let store = Self::new(url.clone(), url, service)?;
        shared.retain(|_, store| store.strong_count() > 0);
        shared.insert(name.to_owned(), Arc::downgrade(&store));
        Ok(store)
    }

    fn new(name: String, store: String, service: Option<&str>) -> Result<Arc<Self>, Fault> {
        let background = background().map_err(|error| Fault::unavailable(error.to_string()))?;
        let state = Mutex::new(State::new());
        let service = service.map(ToOwned::to_owned);
        Ok(Arc::new(Self { name, store, background, service, born: tokio_time(), state }))
    }

    pub(crate) fn evict(&self, key: LockKey) -> bool {
        self.change(key, |change| change.evict().is_some())
    }

    /// Applies `verb` to a key, then sends the wake-up outside of the mutex.
    pub(crate) fn change<T>(&self, key: LockKey, verb: impl FnOnce(&mut Change<'_>) -> T) -> T {
        let (found, hand_off) = self.state.lock().change(key, verb);
        if let Some((listener, wake_up)) = hand_off {
            listener.on_wake_up(wake_up);
        }
        found
    }

    pub(crate) fn reply<T: 'static>(
        self: &Arc<Self>,
        key: LockKey,
        verb: impl FnOnce(&mut Change<'_>) -> T + Send + 'static,
    ) -> Reply<T> {
        self.reply_of(move |store| store.change(key, verb))
    }

    fn reply_of<T: 'static>(
        self: &Arc<Self>,
        verb: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Reply<T> {
        let store = Arc::clone(self);
        Box::pin(async move { Ok(verb(&store)) })
    }
}

#[cfg(test)]
impl Memory {
    pub(crate) fn flush(&self) {
        self.state.lock().flush();
    }

    pub(crate) fn delete(&self, key: &LockKey) {
        if let Some(place) = self.state.lock().places.get_mut(key) {
            place.lock = None;
        }
    }

    pub(crate) fn queue(&self, key: &LockKey) -> Vec<String> {
        let owner = |attempt: &Arc<Attempt>| attempt.owner.as_ref().to_owned();
        self.state.lock().queue(key).map(owner).collect()
    }
}

impl Backend for Arc<Memory> {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<AcquireReply> {
        if attempt.local_permit.is_some() {
            return self.reply_of(move |store| store.acquire_permit(&attempt));
        }
        self.reply(attempt.key.clone(), move |change| change.acquire(&attempt))
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        if attempt.local_permit.is_some() {
            return self.reply_of(move |store| store.release_permits(&attempt));
        }
        self.reply(attempt.key.clone(), move |change| change.release(&attempt, None).0)
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        self.reply(attempt.key.clone(), move |change| change.release(&attempt, Some(&next)))
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let store = Arc::clone(self);
        let renew =
            move |one: Renewal| store.change(one.attempt.key.clone(), |change| change.renew(&one));
        Box::pin(async move { Ok(renewals.into_iter().map(|one| Ok(renew(one))).collect()) })
    }

    fn transfer(&self, from: Arc<Attempt>, to: Arc<Attempt>) -> Reply<Transferred> {
        self.reply(from.key.clone(), move |change| change.transfer(&from, &to).into())
    }

    fn count_fence(&self, attempt: Arc<Attempt>) -> Reply<u64> {
        self.reply(attempt.key.clone(), move |change| change.count(&attempt))
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        if attempt.local_permit.is_some() {
            return self.reply_of(move |store| store.enqueue_for_permit(&attempt));
        }
        self.reply(attempt.key.clone(), move |change| change.enqueue(&attempt))
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        if attempt.local_permit.is_some() {
            return self.reply_of(move |store| store.leave_permits(&attempt));
        }
        self.reply(attempt.key.clone(), move |change| change.leave(&attempt))
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        self.reply(key, |change| change.inspect())
    }

    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool> {
        let store = Arc::clone(self);
        let is_taken = move |key| store.change(key, |change| change.inspect()).is_some();
        Box::pin(async move { Ok(keys.into_iter().any(is_taken)) })
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
        timer_on(&self.renewal_runtime(false), duration)
    }

    /// Runs the task to its end, unless it waits for a timer. That one is the caller's, so the task ends with the
    /// caller's runtime.
    fn detach(&self, mut task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut context = Context::from_waker(Waker::noop());
        if task.as_mut().poll(&mut context).is_pending() {
            drop(self.renewal_runtime(false).spawn(task));
        }
    }

    /// The caller's own runtime, whose clock may be paused, unless the caller blocks it.
    fn renewal_runtime(&self, caller_blocks: bool) -> Handle {
        let current = Handle::try_current().ok().filter(|_| !caller_blocks);
        current.unwrap_or_else(|| self.background.clone())
    }

    /// No connection can break, and only this process changes a lock.
    fn report_to(&self, origin: Origin, events: Weak<dyn Events>) {
        let lockers = &mut self.state.lock().lockers;
        lockers.retain(|(_, other)| other.strong_count() > 0);
        lockers.push((origin, events));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::options::Ttl;

    fn attempt(key: &'static str) -> Attempt {
        Attempt::drawn(LockKey::from_static(key), Ttl::DEFAULT)
    }

    fn acquire(store: &Memory, attempt: &Attempt) -> AcquireReply {
        store.change(attempt.key.clone(), |change| change.acquire(attempt))
    }

    fn release(store: &Memory, attempt: &Attempt) -> Release {
        store.change(attempt.key.clone(), |change| change.release(attempt, None).0)
    }

    fn token(acquisition: &AcquireReply) -> u64 {
        let AcquireReply::Granted(grant) = acquisition else { panic!("busy") };
        grant.fencing_token().into()
    }

    #[test]
    fn a_repeated_attempt_finds_its_own_token() {
        let store = Memory::open("").unwrap();
        let attempt = attempt("k");
        let first = token(&acquire(&store, &attempt));
        assert!(token(&acquire(&store, &attempt)) > first);
    }

    #[test]
    fn a_release_by_another_changes_nothing() {
        let store = Memory::open("").unwrap();
        let (holder, other) = (attempt("k"), attempt("k"));
        token(&acquire(&store, &holder));
        assert_eq!(release(&store, &other), Release::Taken);
        assert!(matches!(acquire(&store, &other), AcquireReply::Busy));
        assert_eq!(release(&store, &holder), Release::Released);
        assert_eq!(release(&store, &holder), Release::Absent);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_rise_over_a_flush_while_time_is_paused() {
        let store = Memory::open("").unwrap();
        let mut latest = 0;
        for _ in 0..3 {
            let holder = attempt("k");
            for _ in 0..5 {
                let next = token(&acquire(&store, &holder));
                assert!(next > latest);
                latest = next;
            }
            store.flush();
        }
    }

    #[test]
    fn a_deleted_lock_is_handed_to_no_waiter() {
        let store = Memory::open("").unwrap();
        let (holder, waiter) = (attempt("k"), Arc::new(attempt("k")));
        token(&acquire(&store, &holder));
        store.change(waiter.key.clone(), |change| drop(change.enqueue(&waiter)));
        store.delete(&holder.key);
        assert_eq!(store.queue(&holder.key), [waiter.owner.as_ref()]);
        assert_eq!(release(&store, &holder), Release::Absent);
    }

    #[tokio::test(start_paused = true)]
    async fn expired_entries_are_swept() {
        let store = Memory::open("").unwrap();
        for number in 0..1_000 {
            let key = LockKey::new(format!("k{number}")).unwrap();
            acquire(&store, &Attempt::drawn(key, Ttl::DEFAULT));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert!(store.state.lock().places.len() < 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_not_swept() {
        let store = Memory::open("").unwrap();
        let (holder, waiter) = (attempt("k"), Arc::new(attempt("k")));
        acquire(&store, &holder);
        store.change(waiter.key.clone(), |change| drop(change.enqueue(&waiter)));
        tokio::time::advance(Ttl::DEFAULT.duration()).await;
        for number in 0..1_000 {
            let key = LockKey::new(format!("k{number}")).unwrap();
            acquire(&store, &Attempt::drawn(key, Ttl::DEFAULT));
        }
        assert_eq!(store.queue(&holder.key), [waiter.owner.as_ref()]);
    }

    /// Goal: a timer of a runtime that has ended is polled elsewhere, which panics. Method: the task sends at its end
    /// whether it is unwinding.
    #[test]
    fn a_waiting_task_ends_with_its_timers_runtime() {
        struct Ending(std::sync::mpsc::Sender<bool>);
        impl Drop for Ending {
            fn drop(&mut self) {
                self.0.send(std::thread::panicking()).unwrap();
            }
        }
        let store = Memory::open("").unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let waiting = Arc::clone(&store);
        let task = Box::pin(async move {
            let _ending = Ending(sender);
            waiting.timer(Duration::from_secs(600)).await;
        });
        runtime.block_on(async { store.detach(task) });
        drop(runtime);
        assert!(!receiver.recv().unwrap());
    }

    #[test]
    fn a_name_is_shared_and_no_name_is_not() {
        let (one, two) = (Memory::open("shared").unwrap(), Memory::open("shared").unwrap());
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&Memory::open("").unwrap(), &Memory::open("").unwrap()));
    }
}
