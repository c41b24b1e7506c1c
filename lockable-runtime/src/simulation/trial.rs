//! One seed: processes whose calls want the same locks, and faults; then calm, in which everything has to end.

use std::collections::BTreeMap;
use std::mem;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::client::Client;
use super::dice::Dice;
use super::faults::{cut, deafen, fail_over, move_slot, refuse, soon};
use super::history::Record;
use super::keys::{GATE, KEYS, PERMITS, lock_key, permits_key};
use super::life::{Gate, sleep};
use super::mix::{Fault, Mix, class};
use super::order::Order;
use super::panics::panics;
use super::process::Process;
use super::subscription::forge;
use super::worker::Worker;
use super::world::World;
use crate::core::acquire::{Acquirer, Tried, acquire};
use crate::core::backend::BackendContext;
use crate::core::process::clock::{tokio_time, within};
use crate::core::process::seeded::Seeded;
use crate::core::types::options::Options;
use crate::core::types::permit::Permits;
use crate::core::types::reporting::Reporting;

const PROCESSES: usize = 3;

/// Between two looks for a lock that no call uses.
const LOOK: Duration = Duration::from_millis(50);

/// How often it is calm in one seed.
const ROUNDS: u32 = 4;

/// In each step every fault may strike one process.
const STEP: Duration = Duration::from_millis(10);

/// The bound of a wait once it is calm: for the calls before it, and for late messages.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The same after faults: also for the leases of killed processes, stopped processes, and silent connections.
const LONGEST_WAIT_AFTER_FAULTS: Duration = Duration::from_secs(20);

/// Until then the releases in the background have ended: the last lease, and the tries until then.
const SETTLED: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) violations: Vec<String>,
    pub(super) events: Vec<String>,
    pub(super) hash: u64,
    /// Once it was calm.
    pub(super) longest_wait: Duration,
}

pub(super) fn run(seed: u64, duration: Duration, record: Record) -> Outcome {
    let former = panics();
    let outcome = catch_unwind(|| run_to_end(seed, duration, record));
    let mut outcome = outcome.unwrap_or_default();
    if panics() > former {
        outcome.violations.push("a task panicked".to_owned());
    }
    outcome
}

fn run_to_end(seed: u64, duration: Duration, record: Record) -> Outcome {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (outcome, _until_the_end) = runtime.block_on(async {
        let seeded = Seeded::start(seed);
        (Trial::new(seed, record).run(duration).await, seeded)
    });
    // What is left in it is dropped, which may draw numbers as well.
    drop(runtime);
    outcome
}

struct Trial {
    world: Arc<World>,
    members: Vec<Member>,
    started: usize,
    holds: Arc<AtomicU64>,
}

struct Member {
    process: Arc<Process>,
    acquirer: Arc<Acquirer>,
    workers: JoinSet<()>,
}

impl Member {
    fn work(&mut self, holds: &Arc<AtomicU64>) {
        for number in 0..self.process.world.mix.workers {
            let worker = Worker {
                number: usize::try_from(number).unwrap(),
                process: Arc::clone(&self.process),
                acquirer: Arc::clone(&self.acquirer),
                holds: Arc::clone(holds),
            };
            let life = Arc::clone(&self.process.life);
            drop(self.workers.spawn(async move {
                let number = worker.number;
                Gate::new(&life, number, worker.work()).await;
            }));
        }
    }
}

impl Trial {
    fn new(seed: u64, record: Record) -> Self {
        let (mut dice, mut late_dice) = (Dice::of(seed), Dice::of(!seed));
        let mix = Mix::draw(class(seed), &mut dice, &mut late_dice);
        let world = World::new(mix, dice, late_dice, record);
        world.note(|_| format!("seed {seed}: {:?}", world.mix));
        let holds = Arc::new(AtomicU64::new(1));
        let mut trial = Self { world, members: Vec::new(), started: 0, holds };
        for _ in 0..PROCESSES {
            let member = trial.start();
            trial.members.push(member);
        }
        trial
    }

    fn start(&mut self) -> Member {
        self.started += 1;
        let process = Process::new(self.started, &self.world);
        let backend = Arc::new(Client(Arc::clone(&process)));
        let deadline = Duration::from_millis(self.world.mix.command_deadline);
        let context = BackendContext::new(backend, deadline, Reporting::default());
        let context = context.staged(Arc::new(Order(Arc::clone(&process))));
        let acquirer = Acquirer::new(Arc::new(context)).unwrap();
        Member { process, acquirer, workers: JoinSet::new() }
    }

    async fn run(mut self, duration: Duration) -> Outcome {
        let mut longest_wait = Duration::ZERO;
        for _ in 0..ROUNDS {
            longest_wait = self.round(duration / ROUNDS).await.max(longest_wait);
        }
        let mut history = self.world.history.lock().unwrap();
        Outcome {
            hash: history.hash(),
            counts: mem::take(&mut history.counts),
            violations: mem::take(&mut history.violations),
            events: mem::take(&mut history.events),
            longest_wait,
        }
    }

    /// Calls and faults, then calm, in which everything has to end; returns how long the last call took once it was
    /// calm.
    async fn round(&mut self, duration: Duration) -> Duration {
        self.world.set_calm(false);
        self.members.iter_mut().for_each(|member| member.work(&self.holds));
        let end = tokio_time().after(duration);
        let mut next_look = tokio_time();
        while tokio_time() < end {
            sleep(STEP).await;
            if tokio_time() >= next_look {
                next_look = tokio_time().after(LOOK);
                self.look_for_idle();
                self.world.look_for_old_tickets();
            }
            self.strike();
        }
        self.world.note(|_| "calm".to_owned());
        self.world.set_calm(true);
        let longest_wait = self.last_call().await;
        self.settle().await;
        self.look_at_the_end();
        self.sweep().await;
        longest_wait
    }

    /// Waits until the background is done.
    async fn settle(&self) {
        let end = tokio_time().after(SETTLED);
        if self.world.mix.is_mild() {
            let leases_end = tokio_time().after(SETTLED / 3);
            while tokio_time() < leases_end {
                sleep(LOOK).await;
                self.look_for_idle();
            }
        }
        sleep(end.since(tokio_time())).await;
    }

    fn look_for_idle(&self) {
        if !self.world.mix.is_mild() {
            return;
        }
        for key in KEYS {
            let owner = self.world.owner(key).filter(|_| !self.waits_for_others(key));
            if self.world.rules().idle_for_long(key, owner.as_deref()) {
                self.world.violation(|names| {
                    let owner = names.of_all(owner);
                    format!("{key}: {owner} has had the lock for long without a call")
                });
            }
        }
    }

    /// Whether a call has the lock that waits for other locks.
    fn waits_for_others(&self, key: &'static str) -> bool {
        let holds = |member: &Member| !member.acquirer.leases(&lock_key(key)).is_empty();
        self.world.mix.may_hold_idle() && self.members.iter().any(holds)
    }

    fn strike(&mut self) {
        let world = Arc::clone(&self.world);
        for (fault, chance) in &world.mix.faults {
            if world.roll(|dice| dice.chance(*chance)) {
                let struck = world.roll(|dice| dice.below(self.members.len() as u64));
                self.strike_one(*fault, usize::try_from(struck).unwrap());
            }
        }
    }

    fn strike_one(&mut self, fault: Fault, index: usize) {
        let (world, process) = (Arc::clone(&self.world), Arc::clone(&self.members[index].process));
        world.count(fault.name());
        world.note(|_| format!("{} of p{}", fault.name(), process.number));
        match fault {
            Fault::Cut => cut(&process),
            Fault::Silence => process.connections().iter().for_each(|open| open.silence()),
            Fault::Stop => process.life.stop_until(soon(&world, &[800, 800, 800, 5_000])),
            Fault::Block => process.life.block_until(soon(&world, &[100, 3_000])),
            Fault::Kill => self.kill(index),
            Fault::Unsubscribe => process.broken.notify_one(),
            Fault::Deafen => drop(tokio::spawn(deafen(process))),
            Fault::Stall => world.any_server().stall_until(soon(&world, &[3_000])),
            Fault::Forge => forge(&process, world.struck_key()),
            Fault::Refuse => refuse(&world),
            Fault::FailOver => fail_over(&world),
            Fault::Move => move_slot(&world),
            Fault::Flush => {
                world.flush();
                for member in &self.members {
                    cut(&member.process);
                    member.process.broken.notify_one();
                }
            }
            Fault::Delete => world.delete(world.struck_key()),
            Fault::Revoke => world.revoke(world.struck_key()),
            Fault::Force => world.force(world.struck_key()),
        }
    }

    /// Another process takes its place.
    fn kill(&mut self, index: usize) {
        let mut replacement = self.start();
        replacement.work(&self.holds);
        let killed = mem::replace(&mut self.members[index], replacement);
        killed.process.life.end();
        let is_noticed = self.world.roll(|dice| dice.chance(500));
        if is_noticed {
            killed.process.broken.notify_one();
        } else {
            // Its host is away: the server sends to a connection that no process reads.
            let after = self.world.roll(|dice| dice.millis_below(5_000));
            drop(tokio::spawn(async move {
                sleep(after).await;
                killed.process.broken.notify_one();
            }));
        }
    }

    /// Returns how long the last call takes. Calls that are not served are counted once.
    async fn last_call(&mut self) -> Duration {
        let calm = tokio_time();
        let is_mild = self.world.mix.is_mild();
        let limit = if is_mild { LONGEST_WAIT } else { LONGEST_WAIT_AFTER_FAULTS };
        let all_ended = async {
            for member in &mut self.members {
                while let Some(ended) = member.workers.join_next().await {
                    ended.unwrap();
                }
            }
        };
        if within(|| sleep(limit), all_ended).await.is_none() {
            for Member { process, workers, .. } in &self.members {
                if !workers.is_empty() {
                    let (number, count) = (process.number, workers.len());
                    self.world.violation(|_| format!("p{number} has {count} calls without an end"));
                }
            }
        }
        tokio_time().since(calm)
    }

    /// Without calls no lock, line, queue entry or task may be left.
    fn look_at_the_end(&self) {
        let world = &self.world;
        for key in KEYS {
            if let Some(owner) = world.owner(key) {
                world.violation(|names| format!("{key}: {} still has the lock", names.of(&owner)));
            }
            for place in world.queue(key) {
                self.look_at_place(key, &place);
            }
            if world.is_elsewhere(key) {
                world.violation(|_| format!("{key}: a part of it is at a server without its slot"));
            }
        }
        for Member { process, acquirer, .. } in &self.members {
            let (number, work) = (process.number, acquirer.open_work());
            let waiting: usize = KEYS.iter().map(|key| acquirer.waiting(&lock_key(key))).sum();
            if waiting > 0 || work > 0 {
                world.violation(|_| format!("p{number} has {waiting} waiters, and {work} to do"));
            }
        }
    }

    /// A queue entry may be left by a killed process, or by one whose withdrawal was not answered or came before its
    /// request. It stays until the lock is handed to it.
    fn look_at_place(&self, key: &str, place: &str) {
        let world = &self.world;
        let is_alive = self.members.iter().any(|member| member.process.owns(place));
        world.count(if is_alive { "places left" } else { "places left by the dead" });
        if !world.rules().may_be_left(place) {
            world.violation(|names| format!("{key}: the place of {} is left", names.of(place)));
        }
    }

    /// A newcomer takes each lock until no queue entry is left; then the stores are empty.
    async fn sweep(&mut self) {
        let is_left = |key: &&str| !self.world.queue(key).is_empty();
        let left: Vec<_> = KEYS.into_iter().filter(is_left).collect();
        if left.is_empty() {
            return;
        }
        let newcomer = self.start();
        for key in left {
            while !self.world.queue(key).is_empty() {
                let any = Permits::OneOf(u32::try_from(self.world.mix.permits).unwrap());
                let is_plain = permits_key(key) == key || key == KEYS[GATE];
                let (name, permits) =
                    if is_plain { (key, Permits::OneLock) } else { (PERMITS, any) };
                let options = Options { permits, ..Options::default() };
                let call = acquire(&newcomer.acquirer, lock_key(name), &options, tokio_time());
                let granted = within(|| sleep(LONGEST_WAIT_AFTER_FAULTS), call).await;
                let Some(Ok(Tried::Granted(guard))) = granted else {
                    return self.world.violation(|_| format!("{key}: a newcomer is not served"));
                };
                drop(guard.release().await);
            }
        }
        sleep(SETTLED).await;
        self.look_at_the_end();
    }
}
