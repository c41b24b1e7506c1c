//! Keeps leases alive while their locks are held, and looks after all of them when a connection
//! was opened.
//!
//! See "How is a lease renewed?" in DESIGN.md.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tracing::Instrument;

use crate::backend::{Fault, Link, Question, Renewal, Renewed};
use crate::lease::{Lease, Loss, schedule};
use crate::telemetry;
use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::worker::agenda::Agenda;
use crate::worker::{Agent, Worklist, attend};

/// So many leases are renewed by one command. The server does nothing else meanwhile: about half a
/// millisecond, measured by the test of ten thousand renewed locks.
const BATCH: usize = 256;

/// The held locks of one locker.
pub(crate) struct Renewals {
    link: Arc<Link>,
    /// One for each runtime that renews: the background's alone, where the backend is a server.
    tasks: Mutex<Vec<(Id, Arc<RenewalTask>)>>,
}

impl Renewals {
    pub(crate) fn new(link: Arc<Link>) -> Arc<Self> {
        let renewals = Arc::new(Self { link, tasks: Mutex::default() });
        let weak = Arc::downgrade(&renewals);
        renewals.link.backend.when_connected(Box::new(move || {
            if let Some(renewals) = Weak::upgrade(&weak) {
                renewals.check_all();
            }
        }));
        renewals
    }

    /// Looks after this lease until the answer is dropped; renews it, too, where it is asked to.
    pub(crate) fn keep(
        self: &Arc<Self>,
        lease: &Lease,
        care: RenewalMode,
        due: Option<Moment>,
        home: &Handle,
    ) -> Registration {
        let task = self.task(home);
        let id = task.keep(lease, care, due);
        Registration { task, id, _renewals: Arc::clone(self) }
    }

    /// The leases of a lock that are looked after.
    pub(crate) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        let is_of_key = |tracked: &&Tracked| tracked.lease.key() == key;
        let leases = |agenda: &mut Agenda<u64, Tracked>| -> Vec<Lease> {
            agenda.items().filter(is_of_key).map(|tracked| tracked.lease.clone()).collect()
        };
        let tasks = self.all_tasks();
        tasks.iter().flat_map(|task| task.worklist.look(leases)).collect()
    }

    fn task(&self, home: &Handle) -> Arc<RenewalTask> {
        let mut tasks = self.tasks();
        if let Some((_, task)) = tasks.iter().find(|(id, _)| *id == home.id()) {
            return Arc::clone(task);
        }
        // Those of runtimes that have ended look after nothing any more.
        tasks.retain(|(_, task)| !task.worklist.look(|agenda| agenda.is_empty()));
        let task = Arc::new(RenewalTask {
            link: Arc::clone(&self.link),
            home: home.clone(),
            next_id: AtomicU64::new(0),
            checked: Mutex::default(),
            worklist: Worklist::default(),
        });
        tasks.push((home.id(), Arc::clone(&task)));
        task
    }

    /// After a connection was opened every lease is checked at once: the server may have lost it.
    /// Connections that open one right after the other share a check, a moment later.
    fn check_all(&self) {
        self.all_tasks().iter().for_each(RenewalTask::check_all);
    }

    /// Each to be asked outside of the table's lock.
    fn all_tasks(&self) -> Vec<Arc<RenewalTask>> {
        self.tasks().iter().map(|(_, task)| Arc::clone(task)).collect()
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<(Id, Arc<RenewalTask>)>> {
        // Every change is one insertion or removal, so a panic elsewhere leaves it sound.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is done for a lease, besides looking at it when a connection was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenewalMode {
    /// It was granted for less than was asked for, until it is renewed once.
    pub(crate) claims: bool,
    pub(crate) renews: bool,
}

/// A lease that is looked after for as long as this lives.
pub(crate) struct Registration {
    task: Arc<RenewalTask>,
    id: u64,
    /// A guard may outlive its locker, and is told of connections that came back all the same.
    _renewals: Arc<Renewals>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Outside of the table's lock: the lease may be the last to know its locker.
        let _lease: Option<Tracked> = self.task.worklist.look(|agenda| agenda.remove(&self.id));
    }
}

/// The leases that are renewed on one runtime.
struct RenewalTask {
    link: Arc<Link>,
    home: Handle,
    next_id: AtomicU64,
    /// When all leases were, or will be, checked at once; never before the first connection.
    checked: Mutex<Option<Moment>>,
    worklist: Worklist<u64, Tracked>,
}

#[derive(Clone)]
struct Tracked {
    lease: Lease,
    care: RenewalMode,
}

impl Tracked {
    fn ttl(&self) -> Ttl {
        self.lease.ttl()
    }

    /// How long the lease is as the backend knows it now.
    fn pace(&self) -> Ttl {
        if self.care.claims { self.ttl().provisional() } else { self.ttl() }
    }

    fn is_kept(&self) -> bool {
        self.care.claims || self.care.renews
    }

    fn request(&self, now: Moment) -> Renewal {
        Renewal::new(self.lease.attempt(), self.is_kept().then_some(self.ttl()), now)
    }
}

/// Leases that are renewed by one command.
type Batch = Vec<(u64, Tracked)>;

/// An outcome for each lease of a batch, or what failed all of them.
type Answer = Result<Vec<Result<Renewed, Fault>>, Fault>;

impl RenewalTask {
    fn keep(self: &Arc<Self>, lease: &Lease, care: RenewalMode, due: Option<Moment>) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let tracked = Tracked { lease: lease.clone(), care };
        self.change(|agenda| drop(agenda.insert(id, tracked, due)));
        id
    }

    fn check_all(self: &Arc<Self>) {
        let due = self.next_check();
        self.change(|agenda| agenda.schedule_all(due));
    }

    fn next_check(&self) -> Moment {
        // One assignment, so a panic elsewhere leaves it sound.
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let next = schedule::check(*checked, self.link.backend.now());
        *checked.insert(next)
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Agenda<u64, Tracked>)) {
        if let ((), true) = self.worklist.change(change) {
            drop(self.home.spawn(attend(Arc::clone(self))));
        }
    }

    /// Those of the due leases that are held, in batches that one command can take.
    ///
    /// A batch waits for its answer as long as its shortest lease may, so leases of very different
    /// lengths go apart.
    fn batches(&self, due: &[u64]) -> Vec<(Duration, Batch)> {
        let tracked = self.worklist.look(|agenda| {
            let found = due.iter().filter_map(|id| Some((*id, agenda.get_mut(id)?.clone())));
            found.collect::<Batch>()
        });
        let mut alike: BTreeMap<u32, (Duration, Batch)> = BTreeMap::new();
        for (id, tracked) in tracked.into_iter().filter(|(_, tracked)| tracked.lease.is_held()) {
            let patience = schedule::patience(tracked.pace(), self.link.command_deadline);
            let class = patience.as_nanos().checked_ilog2().unwrap_or_default();
            let (shortest, batch) = alike.entry(class).or_insert((patience, Vec::new()));
            *shortest = patience.min(*shortest);
            batch.push((id, tracked));
        }
        alike.into_values().collect()
    }

    /// Takes the answer into account, in time or late; a lease whose renewal was not answered is
    /// neither renewed nor lost.
    fn settle(self: &Arc<Self>, batch: &Batch, sent: Moment, answer: Answer) {
        let outcomes = match answer {
            Ok(outcomes) => outcomes,
            Err(fault) => return self.retry(batch, sent, fault),
        };
        let (mut answered, mut failed) = (Vec::with_capacity(batch.len()), BTreeMap::new());
        for (one, outcome) in batch.iter().zip(outcomes) {
            match outcome {
                Ok(outcome) => {
                    settle_one(&one.1, sent, outcome);
                    answered.push(one);
                }
                Err(fault) => {
                    // Those that failed alike are told of together.
                    let alike = failed.entry(fault.message.clone());
                    alike.or_insert_with(|| (fault, Batch::new())).1.push(one.clone());
                }
            }
        }
        self.claimed(&answered);
        let renewed = answered.into_iter().filter(|(_, tracked)| tracked.care.renews);
        self.schedule(renewed, |tracked| schedule::due(sent, tracked.ttl()));
        for (fault, batch) in failed.into_values() {
            self.retry(&batch, sent, fault);
        }
    }

    /// What was answered is claimed, or lost.
    fn claimed(self: &Arc<Self>, answered: &[&(u64, Tracked)]) {
        let claims = answered.iter().filter(|(_, tracked)| tracked.care.claims);
        self.worklist.look(|agenda| {
            for (id, _) in claims {
                if let Some(tracked) = agenda.get_mut(id) {
                    tracked.care.claims = false;
                }
            }
        });
    }

    /// Those that are only looked at, too: somebody had a reason to ask.
    fn retry(self: &Arc<Self>, batch: &Batch, sent: Moment, fault: Fault) {
        let hide =
            |fault: Fault, (_, tracked): &(u64, Tracked)| fault.shown(tracked.lease.shown_key());
        let fault = batch.iter().fold(fault, hide);
        telemetry::renewal_unanswered(batch.len(), &fault.message);
        let cause = Arc::new(LockError::from(fault));
        for (_, tracked) in batch.iter().filter(|(_, tracked)| tracked.is_kept()) {
            tracked.lease.unanswered(&cause);
        }
        let now = self.link.backend.now();
        let due = |tracked: &Tracked| {
            schedule::retry(sent, now, tracked.pace(), self.link.command_deadline)
        };
        self.schedule(batch.iter(), due);
    }

    /// Makes those of the leases due again that go on.
    fn schedule<'a>(
        self: &Arc<Self>,
        leases: impl Iterator<Item = &'a (u64, Tracked)>,
        due: impl Fn(&Tracked) -> Moment,
    ) {
        let held = leases.filter(|(_, tracked)| tracked.lease.is_held());
        // Looked at outside of the table's lock: whoever is told of a loss may let go of other leases.
        let dues: Vec<_> = held.map(|(id, tracked)| (*id, due(tracked))).collect();
        self.change(|agenda| dues.iter().for_each(|(id, due)| agenda.schedule(id, *due)));
    }

    async fn renew(self: Arc<Self>, patience: Duration, batch: Batch) {
        // Before the request enters any queue: the new deadline counts from here.
        let sent = self.link.backend.now();
        let requests = batch.iter().map(|(_, tracked)| tracked.request(sent)).collect();
        let mut question = self.link.question(self.link.backend.renew(requests));
        let answer = question.answer_within(patience).await;
        self.settle(&batch, sent, answer);
        self.await_late_answer(batch, sent, question).await;
    }

    /// A late answer still says how long the lock is held, or that it is not.
    async fn await_late_answer(
        self: &Arc<Self>,
        batch: Batch,
        sent: Moment,
        mut question: Question<'_, Vec<Result<Renewed, Fault>>>,
    ) {
        let late = question.late_answer(self.link.command_deadline).await;
        if let Some(Ok(outcomes)) = late {
            // Those that failed are tried again already.
            let answered = batch.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
            let (batch, outcomes): (Batch, Vec<_>) = answered.unzip();
            self.settle(&batch, sent, Ok(outcomes));
        }
    }
}

fn settle_one(tracked: &Tracked, sent: Moment, outcome: Renewed) {
    if tracked.is_kept() {
        let lease = &tracked.lease;
        telemetry::renewed(lease.shown_key(), lease.fencing_token(), outcome);
    }
    match (outcome, tracked.is_kept()) {
        (Renewed::Held, true) => tracked.lease.renewed(sent, tracked.ttl()),
        // Only looked at: its end stays where it was.
        (Renewed::Held, false) => {}
        (Renewed::Absent, _) => tracked.lease.refused(Loss::Absent),
        (Renewed::Taken, _) => tracked.lease.refused(Loss::Taken),
    }
}

impl Agent for RenewalTask {
    type Key = u64;
    type Item = Tracked;

    fn worklist(&self) -> &Worklist<u64, Tracked> {
        &self.worklist
    }

    fn link(&self) -> &Link {
        &self.link
    }

    fn capacity(&self) -> usize {
        BATCH
    }

    fn perform(self: &Arc<Self>, due: Vec<u64>) {
        for (patience, batch) in self.batches(&due) {
            let span = telemetry::renewing(batch.len());
            drop(self.home.spawn(Arc::clone(self).renew(patience, batch).instrument(span)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};
    use std::thread;

    use super::*;
    use crate::backend::Attempt;
    use crate::background::Background;
    use crate::types::clock::tokio_time;
    use crate::types::options::Terms;
    use crate::types::token::FencingToken;

    const WATCH: RenewalMode = RenewalMode { claims: false, renews: false };

    /// Lets go of another lease when it is woken.
    struct LetGo(Mutex<Option<Registration>>);

    impl Wake for LetGo {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }

    /// Goal: who is told of a loss may let go of other leases at once, also when it is found while
    /// a renewal is planned again.
    /// Method: the first lease has ended by then, and its waker drops the second.
    #[test]
    fn a_loss_is_told_outside_of_the_table_of_leases() {
        let link = Arc::new(Link::in_memory());
        let renewals = Renewals::new(Arc::clone(&link));
        let lease = |key, millis| {
            let ttl = Ttl::new("expire", Duration::from_millis(millis)).unwrap();
            let attempt = Arc::new(Attempt::new(LockKey::from_static(key), ttl, None).unwrap());
            let (token, link) = (FencingToken::new(1), Arc::clone(&link));
            Lease::new(attempt, token, (tokio_time(), ttl), &Terms::new(ttl), link)
        };
        let (ended, other) = (lease("ended", 20), lease("other", 10_000));
        let background = Background::start().unwrap();
        let kept = renewals.keep(&ended, WATCH, None, background.handle());
        let other = renewals.keep(&other, WATCH, None, background.handle());
        let task = Arc::clone(&kept.task);
        let waker = Waker::from(Arc::new(LetGo(Mutex::new(Some(other)))));
        let lost = ended.clone();
        let mut lost = Box::pin(async move { lost.lost().await });
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let sent = tokio_time();
        let end = sent.after(ended.remaining());
        while tokio_time() < end {
            thread::park_timeout(Duration::from_millis(1));
        }
        let batch = vec![(
            kept.id,
            Tracked { lease: ended, care: RenewalMode { claims: false, renews: true } },
        )];
        let (done, is_done) = mpsc::channel();
        let settling = Arc::clone(&task);
        thread::spawn(move || {
            settling.retry(&batch, sent, Fault::no_answer("memory://", Duration::ZERO));
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(10)).expect("nobody waits for himself");
        assert_eq!(task.worklist.look(|agenda| agenda.len()), 1);
    }
}
