//! The renewals of one runtime: in batches, on time, and again without an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tracing::Instrument;

use super::age::Age;
use super::plan::{Due, Plan};
use crate::core::backend::{BackendContext, Fault, Renewal, Renewed};
use crate::core::lease::Lease;
use crate::core::lease::schedule::{self, Cause};
use crate::core::process::clock::Moment;
use crate::core::process::mutex::Mutex;
use crate::core::telemetry;
use crate::core::types::options::Ttl;
use crate::core::types::slot::Slot;
use crate::core::worker::{Agent, Worklist};

/// The most leases of one command, which keeps the server busy for about half a millisecond, measured by the test of
/// ten thousand renewed locks.
const MAX_BATCH: usize = 256;

pub(super) struct RenewalTask {
    context: Arc<BackendContext>,
    pub(super) renewal_runtime: Handle,
    next_id: AtomicU64,
    /// When all leases were, or will be, checked at once; never before the first connection.
    checked: Mutex<Option<Moment>>,
    worklist: Worklist<u64, Scheduled>,
}

pub(super) struct Scheduled {
    lease: Lease,
    plan: Plan,
    age: Option<Age>,
}

#[derive(Clone)]
struct Requested {
    id: u64,
    lease: Lease,
    due: Due,
    ttl: Option<Ttl>,
    /// What a check restores, but no look: the rest of the lease.
    ///
    /// See "Why does a reconnect check all leases, and restore their TTL?" in DESIGN.md.
    rest: Option<Ttl>,
}

impl RenewalTask {
    pub(super) fn new(context: &Arc<BackendContext>, renewal_runtime: &Handle) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
            renewal_runtime: renewal_runtime.clone(),
            next_id: AtomicU64::new(0),
            checked: Mutex::default(),
            worklist: Worklist::new(context),
        })
    }

    pub(super) fn schedule_new(self: &Arc<Self>, lease: &Lease, renewal: Moment) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let now = lease.renews().then(|| self.context.backend.now());
        let plan = Plan::new(renewal, now.map(schedule::first_look));
        let age = now.map(Age::new);
        let scheduled = Scheduled { lease: lease.clone(), plan, age };
        let due = scheduled.plan.due();
        self.change(|agenda| drop(agenda.insert(id, scheduled, Some(due))));
        id
    }

    pub(super) fn look(self: &Arc<Self>, id: u64) {
        let now = self.context.backend.now();
        self.change(|agenda| {
            if let Some(scheduled) = agenda.get_mut(&id) {
                let due = scheduled.plan.changed(now);
                agenda.schedule_by(&id, due);
            }
        });
    }

    /// Checks every lease of these slots at once; returns when. Connections that open right after each other share a
    /// check, a moment later.
    pub(super) fn check_all(
        self: &Arc<Self>,
        concerns: &dyn Fn(Slot) -> bool,
        cause: Cause,
    ) -> Moment {
        let due = self.next_check(cause);
        self.change(|agenda| {
            agenda.schedule_where(due, |Scheduled { lease, plan, .. }| {
                let is_concerned = concerns(lease.attempt().slot);
                if is_concerned {
                    plan.check_by(due);
                }
                is_concerned
            });
        });
        due
    }

    pub(super) fn look_again(self: &Arc<Self>, concerns: &dyn Fn(Slot) -> bool) {
        if self.worklist.look(|agenda| agenda.len()) == 0 {
            return;
        }
        let due = self.next_check(Cause::Connected);
        self.change(|agenda| {
            agenda.schedule_where(due, |Scheduled { lease, plan, .. }| {
                let attempt = lease.attempt();
                let is_concerned = attempt.is_watched() && concerns(attempt.slot);
                if is_concerned {
                    plan.look_by(due);
                }
                is_concerned
            });
        });
    }

    fn next_check(&self, cause: Cause) -> Moment {
        // One assignment, so a panic elsewhere leaves it sound.
        let mut checked = self.checked.lock();
        let due = schedule::check(*checked, self.context.backend.now(), cause);
        *checked = Some(due);
        due
    }

    /// The due leases that are held, in batches that one command can take.
    ///
    /// A batch waits for its answer as long as its shortest lease may, so leases of very different lengths are apart;
    /// so are those of different servers, of which one may not answer.
    fn batches(&self, due: &[u64]) -> Vec<(Duration, Vec<Requested>)> {
        let now = self.context.backend.now();
        let leases: Vec<_> = self.worklist.look(|agenda| {
            let mut take = |id: &u64| {
                let Scheduled { lease, plan, age } = agenda.get_mut(id)?;
                let age = age.as_mut().and_then(|age| age.warning(now));
                Some((*id, lease.clone(), plan.take(now), age))
            };
            due.iter().filter_map(&mut take).collect()
        });
        let mut alike: BTreeMap<_, (Duration, Vec<Requested>)> = BTreeMap::new();
        for (id, lease, due, age) in leases.into_iter().filter(|(_, lease, ..)| lease.may_renew()) {
            if let Some(age) = age {
                telemetry::held_long(lease.shown_key(), lease.fencing_token(), age);
            }
            let patience = schedule::patience(lease.ttl(), self.context.command_deadline);
            let class = patience.as_nanos().checked_ilog2().unwrap_or_default();
            let server = self.context.backend.server_index(lease.attempt().slot);
            let (shortest, batch) = alike.entry((server, class)).or_insert((patience, Vec::new()));
            *shortest = patience.min(*shortest);
            let (ttl, rest) = match due {
                Due::Renewal => {
                    (lease.renews().then_some(lease.ttl()), Ttl::with_usable(lease.remaining()))
                }
                Due::Look => (None, None),
            };
            batch.push(Requested { id, lease, due, ttl, rest });
        }
        alike.into_values().collect()
    }

    async fn renew(self: Arc<Self>, patience: Duration, batch: Vec<Requested>) {
        self.watch(&batch);
        // Before the request enters any queue: the new deadline counts from here.
        let sent = self.context.backend.now();
        let request =
            |asked: &Requested| Renewal::new(asked.lease.attempt(), asked.ttl.or(asked.rest), sent);
        let requests = batch.iter().map(request).collect();
        let Some(first) = batch.first() else { return };
        let slot = first.lease.attempt().slot;
        let mut query = self.context.query(slot, self.context.backend.renew(requests));
        match query.answer_within(patience).await {
            Ok(outcomes) => {
                let (answered, failed) = sorted(&batch, outcomes);
                self.settle(&answered, sent);
                for (fault, failed) in failed {
                    self.retry(&failed, sent, fault);
                }
                report(&answered, sent);
            }
            Err(fault) => {
                self.retry(&batch, sent, fault);
                // A late answer still says how long the lock is held, or that it is not.
                let late = query.late_answer(self.context.command_deadline).await;
                if let Some(Ok(outcomes)) = late {
                    // Those that failed are tried again already.
                    let (answered, _) = sorted(&batch, outcomes);
                    self.settle(&answered, sent);
                    report(&answered, sent);
                }
            }
        }
    }

    fn watch(&self, batch: &[Requested]) {
        let mut renewed = batch.iter().filter(|asked| asked.lease.renews()).peekable();
        if renewed.peek().is_some() {
            self.context.backend.watch_holders();
        }
        for asked in renewed {
            asked.lease.attempt().mark_watched();
        }
    }

    fn settle(self: &Arc<Self>, answered: &[Answered<'_>], sent: Moment) {
        for (asked, _) in answered.iter().filter(|(_, outcome)| *outcome == Renewed::Held) {
            asked.answered(sent, Renewed::Held);
        }
        let renewed = answered.iter().map(|(asked, _)| *asked);
        self.schedule(renewed.filter(|asked| asked.lease.renews()), |asked, plan| {
            match asked.due {
                Due::Renewal => plan.renewed(schedule::due(sent, asked.lease.ttl())),
                Due::Look => plan.due(),
            }
        });
    }

    /// A lease whose renewal was not answered is neither renewed nor lost. Checks are repeated too: there was a reason
    /// for them.
    fn retry(self: &Arc<Self>, batch: &[Requested], sent: Moment, fault: Fault) {
        let redact = |fault: Fault, asked: &Requested| fault.shown(asked.lease.shown_key());
        let fault = batch.iter().fold(fault, redact);
        let cause = Arc::new(fault.into_error());
        for asked in batch.iter().filter(|asked| asked.ttl.is_some()) {
            asked.lease.update(|state, _| state.unanswered(&cause));
        }
        let now = self.context.backend.now();
        let deadline = self.context.command_deadline;
        self.schedule(batch, |asked, plan| {
            let again = schedule::retry(sent, now, asked.lease.ttl(), deadline);
            plan.unanswered(asked.due, again)
        });
        let labels = batch.iter().map(|asked| asked.lease.shown_key().label);
        telemetry::renewal_unanswered(labels, &cause);
    }

    fn schedule<'a>(
        self: &Arc<Self>,
        leases: impl IntoIterator<Item = &'a Requested>,
        due: impl Fn(&Requested, &mut Plan) -> Moment,
    ) {
        // Looked at outside of the table's lock: a waker that hears of a loss may drop other leases.
        let held: Vec<_> = leases.into_iter().filter(|asked| asked.lease.may_renew()).collect();
        self.change(|agenda| {
            for asked in held {
                if let Some(Scheduled { plan, .. }) = agenda.get_mut(&asked.id) {
                    let due = due(asked, plan);
                    agenda.schedule(&asked.id, due);
                }
            }
        });
    }
}

type Answered<'a> = (&'a Requested, Renewed);

fn sorted(
    batch: &[Requested],
    outcomes: Vec<Result<Renewed, Fault>>,
) -> (Vec<Answered<'_>>, impl Iterator<Item = (Fault, Vec<Requested>)> + use<>) {
    let mut answered = Vec::with_capacity(batch.len());
    let mut failed = BTreeMap::new();
    for (asked, outcome) in batch.iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => answered.push((asked, outcome)),
            Err(fault) => {
                let alike = failed.entry(fault.message.clone());
                alike.or_insert_with(|| (fault, Vec::new())).1.push(asked.clone());
            }
        }
    }
    (answered, failed.into_values())
}

/// Ends the leases that were lost, and logs each outcome. It comes last: a user's subscriber that panics at one of
/// these events keeps no other lease from being renewed.
fn report(answered: &[Answered<'_>], sent: Moment) {
    for (asked, outcome) in answered {
        if *outcome != Renewed::Held {
            asked.answered(sent, *outcome);
        }
    }
    for (asked, outcome) in answered.iter().filter(|(asked, _)| asked.ttl.is_some()) {
        let Requested { lease, .. } = asked;
        telemetry::renewed(lease.shown_key(), lease.fencing_token(), *outcome);
    }
}

impl Requested {
    fn answered(&self, sent: Moment, outcome: Renewed) {
        let lease = &self.lease;
        lease.answered(sent, self.ttl, outcome);
    }
}

impl Agent for RenewalTask {
    type Key = u64;
    type Item = Scheduled;

    fn worklist(&self) -> &Worklist<u64, Scheduled> {
        &self.worklist
    }

    fn capacity(&self) -> usize {
        MAX_BATCH
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.renewal_runtime.spawn(task));
    }

    fn perform(self: &Arc<Self>, due: Vec<u64>) {
        for (patience, batch) in self.batches(&due) {
            let span = telemetry::renewing(batch.len());
            self.spawn(Arc::clone(self).renew(patience, batch).instrument(span));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};
    use std::thread;

    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::core::backend::{AcquireReply, Attempt};
    use crate::core::background::background;
    use crate::core::memory::Slow;
    use crate::core::process::clock::{skip, timer_on, tokio_time};
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Options;
    use crate::core::types::reporting::Reporting;

    struct DropsLease(Arc<RenewalTask>, u64);

    impl Wake for DropsLease {
        fn wake(self: Arc<Self>) {
            drop(self.0.worklist.look(|agenda| agenda.remove(&self.1)));
        }
    }

    fn attempt(key: &'static str, millis: u64) -> Arc<Attempt> {
        let ttl = Ttl::new("expire", Duration::from_millis(millis)).unwrap();
        Arc::new(Attempt::drawn(LockKey::from_static(key), ttl))
    }

    fn lease(context: &Arc<BackendContext>, attempt: &Arc<Attempt>, renew: bool) -> Lease {
        let options = Options { ttl: attempt.ttl, renew, ..Options::default() };
        Lease::granted(Arc::clone(attempt), &options, Arc::clone(context))
    }

    /// Goal: over a slow link, a lease that no answer reaches in time is renewed all the same. Method: each answer
    /// comes long after the next try was sent.
    #[tokio::test(start_paused = true)]
    async fn late_answers_alone_renew_a_lease() {
        let slow = Slow::open();
        let backend = Arc::new(Arc::clone(&slow));
        let context = BackendContext::new(backend, Duration::from_secs(1), Reporting::default());
        let (context, attempt) = (Arc::new(context), attempt("k", 3_000));
        let granted = context.backend.try_acquire(Arc::clone(&attempt)).await.unwrap();
        assert!(matches!(granted, AcquireReply::Granted(_)));
        let lease = lease(&context, &attempt, true);
        let patience = schedule::patience(lease.ttl(), context.command_deadline);
        slow.renewal_takes.store(900, Relaxed);
        assert!(2 * patience < Duration::from_millis(900));
        let task = RenewalTask::new(&context, &Handle::current());
        task.schedule_new(&lease, schedule::due(tokio_time(), lease.ttl()));
        timer_on(&Handle::current(), Duration::from_secs(30)).await;
        assert!(lease.is_held());
    }

    /// Goal: a server that answers nothing costs leases at other servers, because they share its command.
    #[tokio::test(start_paused = true)]
    async fn a_silent_server_delays_no_lease_of_another() {
        let slow = Slow::open();
        let backend = Arc::new(Arc::clone(&slow));
        let context =
            Arc::new(BackendContext::new(backend, Duration::from_secs(1), Reporting::default()));
        let attempts = [attempt("silent", 3_000), attempt("another", 3_000)];
        slow.silent.set(attempts[0].slot).unwrap();
        let task = RenewalTask::new(&context, &Handle::current());
        let mut leases = Vec::new();
        for attempt in &attempts {
            let granted = context.backend.try_acquire(Arc::clone(attempt)).await.unwrap();
            assert!(matches!(granted, AcquireReply::Granted(_)));
            let lease = lease(&context, attempt, true);
            task.schedule_new(&lease, schedule::due(tokio_time(), lease.ttl()));
            leases.push(lease);
        }
        timer_on(&Handle::current(), Duration::from_secs(30)).await;
        let are_held: Vec<_> = leases.iter().map(Lease::is_held).collect();
        assert_eq!(are_held, [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_makes_no_lease_longer() {
        let context = Arc::new(BackendContext::in_memory());
        let attempt = attempt("k", 10_000);
        context.backend.try_acquire(Arc::clone(&attempt)).await.unwrap();
        let lease = lease(&context, &attempt, false);
        let task = RenewalTask::new(&context, &Handle::current());
        task.schedule_new(&lease, tokio_time().after(Duration::from_secs(3_600)));
        timer_on(&Handle::current(), Duration::from_secs(5)).await;
        task.check_all(&|_| true, Cause::Connected);
        timer_on(&Handle::current(), Duration::from_secs(2)).await;
        assert!(lease.is_held() && lease.remaining() <= Duration::from_secs(3));
        assert_eq!(task.worklist.look(|agenda| agenda.next_due()), None, "it is left alone");
    }

    /// Goal: a waker that is notified of a loss may drop other leases at once, also when the loss is found while a
    /// renewal is scheduled again. Method: the first lease has ended by then, and its waker drops the second.
    #[tokio::test(start_paused = true)]
    async fn a_loss_is_reported_outside_of_the_table() {
        let context = Arc::new(BackendContext::in_memory());
        let lease = |key, millis| lease(&context, &attempt(key, millis), false);
        let (ended, other) = (lease("ended", 20), lease("other", 10_000));
        let background = background().unwrap();
        let task = RenewalTask::new(&context, &background);
        let due = tokio_time().after(Duration::from_secs(3_600));
        let id = task.schedule_new(&ended, due);
        let other = task.schedule_new(&other, due);
        let waker = Waker::from(Arc::new(DropsLease(Arc::clone(&task), other)));
        let lost = ended.clone();
        let mut lost = Box::pin(async move { lost.lost().await });
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let sent = tokio_time();
        skip(ended.remaining());
        let ttl = Some(Ttl::DEFAULT);
        let batch = vec![Requested { id, lease: ended, due: Due::Renewal, ttl, rest: None }];
        let (done, is_done) = mpsc::channel();
        let (settling, paused) = (Arc::clone(&task), Handle::current());
        thread::spawn(move || {
            let _paused = paused.enter();
            settling.retry(&batch, sent, Fault::no_answer("memory://", Duration::ZERO));
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(10)).expect("no deadlock");
        assert_eq!(task.worklist.look(|agenda| agenda.len()), 1);
    }
}
