//! Releases that nobody waits for: of guards that were dropped, and of acquisitions that were
//! given up before their answer came.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::backend::{Acquisition, Attempt, Backend, Fault, Release, Reply};
use crate::background::Background;
use crate::clock::{Moment, timer_on, within};
use crate::error::{LockError, LockErrorKind};
use crate::key::LockKey;
use crate::telemetry;

/// The first pause between two tries; each next one is twice as long, up to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Releases in the background what was handed over, until it is done or the lease would have ended.
///
/// Memory is bounded by the leases that this process was granted within one `expire`.
#[derive(Debug)]
pub(crate) struct Releaser {
    backend: Arc<dyn Backend>,
    command_deadline: Duration,
    /// How many hand-overs there are; spares the lock while there are none, which is nearly always.
    open: AtomicUsize,
    pending: Mutex<HashMap<LockKey, Pending>>,
    /// Told whenever `pending` changes.
    changed: Notify,
}

/// The hand-overs of one key.
#[derive(Debug, Default)]
struct Pending {
    /// Those whose release has not been tried yet: a new acquisition goes behind them.
    untried: usize,
    total: usize,
}

/// What is known of an attempt whose release was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was granted and its release was never sent: finding it gone is worth a warning.
    Granted,
    /// Its release was sent and not answered: finding it gone is what was wanted.
    Releasing,
    /// Its request may still land: nothing found now proves nothing.
    Unknown,
}

impl Releaser {
    pub(crate) fn new(backend: Arc<dyn Backend>, command_deadline: Duration) -> Arc<Self> {
        let releaser = Arc::new(Self {
            backend,
            command_deadline,
            open: AtomicUsize::new(0),
            pending: Mutex::default(),
            changed: Notify::new(),
        });
        let mut all = registry();
        all.retain(|releaser| releaser.strong_count() > 0);
        all.push(Arc::downgrade(&releaser));
        releaser
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    pub(crate) fn command_deadline(&self) -> Duration {
        self.command_deadline
    }

    /// Waits until every earlier hand-over of this key has been tried once, at most one command deadline.
    ///
    /// Without this, a call right after a dropped guard would find the lock busy with itself.
    pub(crate) async fn settled(&self, key: &LockKey) {
        if self.open.load(Ordering::Acquire) == 0 {
            return;
        }
        let timer = || self.backend.timer(self.command_deadline);
        let settled =
            self.wait_until(|pending| pending.get(key).is_none_or(|of_key| of_key.untried == 0));
        let _in_time: Option<()> = within(timer, settled).await;
    }

    /// Releases the attempt without anybody waiting for it. Never blocks, never fails.
    pub(crate) fn hand_over(self: &Arc<Self>, attempt: Arc<Attempt>, known: Known) {
        let ticket = Ticket::new(self, &attempt.key);
        self.backend.detach(Box::pin(release_until_ended(ticket, attempt, known)));
    }

    /// Keeps waiting for the answer that the caller gave up, and releases what it grants.
    pub(crate) fn adopt(self: &Arc<Self>, attempt: Arc<Attempt>, reply: Reply<Acquisition>) {
        let ticket = Ticket::new(self, &attempt.key);
        self.backend.detach(Box::pin(release_late_grant(ticket, attempt, reply)));
    }

    /// Waits until nothing is pending.
    async fn drained(&self) {
        self.wait_until(HashMap::is_empty).await;
    }

    async fn wait_until(&self, is_met: impl Fn(&HashMap<LockKey, Pending>) -> bool) {
        loop {
            // Registered before the look, so that a change right after it is not missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if is_met(&self.pending()) {
                return;
            }
            changed.await;
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<LockKey, Pending>> {
        // Counts change one at a time, so a panic elsewhere leaves them sound.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After this the backend cannot know the attempt any more, even if its request was late.
    fn end_of(&self, attempt: &Attempt) -> Moment {
        let sent = attempt.sent_at().unwrap_or_else(|| self.backend.now());
        sent.after(attempt.ttl.duration()).after(self.command_deadline)
    }

    async fn pause(&self, duration: Duration) {
        self.backend.timer(duration).await;
    }
}

/// Counts one hand-over for as long as it lives.
struct Ticket {
    releaser: Arc<Releaser>,
    key: LockKey,
    tried: bool,
}

impl Ticket {
    fn new(releaser: &Arc<Releaser>, key: &LockKey) -> Self {
        releaser.open.fetch_add(1, Ordering::AcqRel);
        let mut pending = releaser.pending();
        let of_key = pending.entry(key.clone()).or_default();
        of_key.untried += 1;
        of_key.total += 1;
        drop(pending);
        Self { releaser: Arc::clone(releaser), key: key.clone(), tried: false }
    }

    /// Lets the calls go on that wait for this hand-over.
    fn mark_tried(&mut self) {
        if !std::mem::replace(&mut self.tried, true) {
            if let Some(of_key) = self.releaser.pending().get_mut(&self.key) {
                of_key.untried -= 1;
            }
            self.releaser.changed.notify_waiters();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.mark_tried();
        let mut pending = self.releaser.pending();
        if let Some(of_key) = pending.get_mut(&self.key) {
            of_key.total -= 1;
            if of_key.total == 0 {
                pending.remove(&self.key);
            }
        }
        drop(pending);
        self.releaser.open.fetch_sub(1, Ordering::AcqRel);
        self.releaser.changed.notify_waiters();
    }
}

async fn release_late_grant(ticket: Ticket, attempt: Arc<Attempt>, reply: Reply<Acquisition>) {
    let releaser = Arc::clone(&ticket.releaser);
    let timer = || releaser.backend.timer(releaser.command_deadline);
    let known = match within(timer, reply).await {
        Some(Ok(Acquisition::Granted { .. })) => Known::Granted,
        Some(Err(fault)) if !fault.proves_absence => Known::Unknown,
        Some(Ok(Acquisition::Contended) | Err(_)) => return,
        // The connection hangs; what it may still bring is released over another one.
        None => Known::Unknown,
    };
    release_until_ended(ticket, attempt, known).await;
}

async fn release_until_ended(mut ticket: Ticket, attempt: Arc<Attempt>, mut known: Known) {
    let releaser = Arc::clone(&ticket.releaser);
    let key = attempt.key.as_str();
    let end = releaser.end_of(&attempt);
    let mut pause = FIRST_PAUSE;
    loop {
        let outcome = try_release(&releaser, &attempt).await;
        ticket.mark_tried();
        let rest = end.since(releaser.backend.now());
        let is_last = rest.is_zero();
        match (outcome, known) {
            (Ok(Release::Released), _) | (Ok(_), Known::Releasing) => return,
            (Ok(found), Known::Granted) => {
                return telemetry::released_too_late(key, found == Release::Taken);
            }
            (Ok(_), Known::Unknown) if is_last => return,
            (Err(fault), _) if is_last => return telemetry::release_abandoned(key, &fault.into()),
            (Err(_), Known::Granted) => known = Known::Releasing,
            (Ok(_), Known::Unknown) | (Err(_), _) => {}
        }
        releaser.pause(pause.min(rest)).await;
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// One release, within one command deadline.
pub(crate) async fn try_release(
    releaser: &Releaser,
    attempt: &Arc<Attempt>,
) -> Result<Release, Fault> {
    let backend = releaser.backend();
    let limit = releaser.command_deadline();
    let outcome = within(|| backend.timer(limit), backend.release(Arc::clone(attempt))).await;
    outcome.unwrap_or_else(|| {
        backend.unanswered();
        Err(Fault::no_answer(backend.name(), limit))
    })
}

/// Waits, at most `deadline`, until every lock that was handed to the background is released.
///
/// Call it last in `main`: a guard that was dropped, or a task that was aborted, releases its lock
/// on a background thread, which the end of the process would cut off. New locks can be acquired
/// afterwards as before.
///
/// # Errors
/// [`is_unavailable`](LockError::is_unavailable) when the deadline came first. The message says how
/// many locks remain; each of them ends with its lease.
///
/// # Cancel safety
/// The releases go on when the future is dropped.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// use std::time::Duration;
///
/// // … serve until asked to stop …
/// lockable_runtime::shutdown(Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub async fn shutdown(deadline: Duration) -> Result<(), LockError> {
    let releasers: Vec<Arc<Releaser>> = registry().iter().filter_map(Weak::upgrade).collect();
    let all_drained = async {
        for releaser in &releasers {
            releaser.drained().await;
        }
    };
    let background = Background::start().map_err(|error| unreleased(&error.to_string()))?;
    let drained = within(|| timer_on(background.handle(), deadline), all_drained).await;
    drained.ok_or_else(|| {
        let open = releasers.iter().map(|releaser| releaser.open.load(Ordering::Acquire));
        let count: usize = open.sum();
        unreleased(&format!("{count} locks were not released within {deadline:?}"))
    })
}

fn unreleased(what: &str) -> LockError {
    LockError::new(LockErrorKind::Unavailable, format!("{what}; each ends with its lease"))
}

/// All releasers of this process, for [`shutdown`].
fn registry() -> MutexGuard<'static, Vec<Weak<Releaser>>> {
    static ALL: Mutex<Vec<Weak<Releaser>>> = Mutex::new(Vec::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
