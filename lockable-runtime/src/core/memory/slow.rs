//! A store in memory that is reached slowly.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::Memory;
use crate::core::backend::epochs::Epochs;
use crate::core::backend::{
    AcquireReply, Attempt, Backend, Enqueued, Environment, Events, Fault, Grant, Release, Renewal,
    Renewed, Reply, Transferred,
};
use crate::core::process::clock::Moment;
use crate::core::types::key::LockKey;
use crate::core::types::owner::{Held, Origin};
use crate::core::types::slot::Slot;

pub(crate) struct Slow {
    memory: Arc<Memory>,
    /// How many milliseconds go by before the next requests reach the store.
    pub(crate) query_takes: AtomicU64,
    pub(crate) renewal_takes: AtomicU64,
    pub(crate) withdrawal_takes: AtomicU64,
    pub(crate) release_takes: AtomicU64,
    /// Whose server renews nothing: each slot has one of its own.
    pub(crate) silent: OnceLock<Slot>,
    /// Whether the server is left for another one before it counts a fencing token.
    pub(crate) is_left: AtomicBool,
    epochs: Arc<Epochs>,
    pub(crate) queries: AtomicUsize,
    pub(crate) releases: AtomicUsize,
}

impl Slow {
    pub(crate) fn open() -> Arc<Self> {
        let memory = Memory::open("").unwrap();
        let (queries, releases) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let [query_takes, renewal_takes, withdrawal_takes, release_takes] = Default::default();
        Arc::new(Self {
            memory,
            query_takes,
            renewal_takes,
            withdrawal_takes,
            release_takes,
            silent: OnceLock::new(),
            is_left: AtomicBool::new(false),
            epochs: Arc::default(),
            queries,
            releases,
        })
    }

    async fn reach(self: &Arc<Self>, millis: u64) {
        if millis > 0 {
            self.timer(Duration::from_millis(millis)).await;
        }
    }
}

impl Backend for Arc<Slow> {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<AcquireReply> {
        self.memory.try_acquire(attempt)
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        self.releases.fetch_add(1, Relaxed);
        let this = Arc::clone(self);
        let takes = self.release_takes.load(Relaxed);
        Box::pin(async move {
            this.reach(takes).await;
            this.memory.release(attempt).await
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        self.memory.release_to(attempt, next)
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let this = Arc::clone(self);
        let takes = self.renewal_takes.load(Relaxed);
        Box::pin(async move {
            if renewals.iter().any(|one| this.silent.get() == Some(&one.attempt.slot)) {
                return pending().await;
            }
            this.reach(takes).await;
            this.memory.renew(renewals).await
        })
    }

    fn transfer(&self, from: Arc<Attempt>, to: Arc<Attempt>) -> Reply<Transferred> {
        let this = Arc::clone(self);
        let takes = self.renewal_takes.load(Relaxed);
        Box::pin(async move {
            to.mark_sent(this.now());
            this.reach(takes).await;
            let transferred = this.memory.transfer(from, to).await?;
            let epoch = Some(Arc::new(this.epochs.current()));
            Ok(Transferred { epoch, ..transferred })
        })
    }

    fn count_fence(&self, attempt: Arc<Attempt>) -> Reply<u64> {
        let (this, counted) = (Arc::clone(self), self.memory.count_fence(attempt));
        Box::pin(async move {
            if this.is_left.load(Relaxed) {
                this.epochs.begin(true);
            }
            counted.await
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        self.queries.fetch_add(1, Relaxed);
        let this = Arc::clone(self);
        let takes = self.query_takes.load(Relaxed);
        Box::pin(async move {
            attempt.mark_sent(this.now());
            this.reach(takes).await;
            this.memory.enqueue(attempt).await
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let this = Arc::clone(self);
        let takes = self.withdrawal_takes.load(Relaxed);
        Box::pin(async move {
            this.reach(takes).await;
            this.memory.leave(attempt).await
        })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        self.memory.inspect(key)
    }

    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool> {
        self.memory.is_any_taken(keys)
    }
}

impl Environment for Arc<Slow> {
    fn name(&self) -> &str {
        self.memory.name()
    }

    fn store(&self) -> &str {
        self.memory.store()
    }

    fn now(&self) -> Moment {
        self.memory.now()
    }

    fn timer(&self, duration: Duration) -> Sleep {
        self.memory.timer(duration)
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.memory.detach(task);
    }

    fn renewal_runtime(&self, caller_blocks: bool) -> Handle {
        self.memory.renewal_runtime(caller_blocks)
    }

    fn report_to(&self, origin: Origin, events: Weak<dyn Events>) {
        self.memory.report_to(origin, events);
    }

    fn server_index(&self, slot: Slot) -> usize {
        slot.index()
    }
}
