//! The world of one seed: the servers, the ways to them, and what is known of all that happens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::yield_now;

use super::dice::Dice;
use super::history::{History, MARKS, Names, Record};
use super::keys::{KEYS, keys_in, known, lock_key, slot, slot_owner_of};
use super::life::sleep_until;
use super::mix::{Mix, Way};
use super::news::{Hears, News};
use super::nodes::{Part, Snapshot};
use super::rules::{Hold, Rules};
use super::server::{Does, Refusal, Server};
use super::slot_owners::{SlotOwner, SlotOwners, Topology};
use super::tickets::{Tickets, is_ticket};
use crate::core::backend::{Attempt, Backend, Reply, Reserved, Revocation, Verb};
use crate::core::memory::Memory;
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::key::LockKey;
use crate::core::types::reason::Reason;
use crate::operators::contract::Operations;

pub(super) struct World {
    pub(super) servers: [Server; 2],
    slot_owners: Mutex<SlotOwners>,
    pub(super) mix: Mix,
    dice: Mutex<Dice>,
    /// Later additions draw from these, so that seeds without them stay the same.
    late_dice: Mutex<Dice>,
    pub(super) history: Mutex<History>,
    rules: Mutex<Rules>,
    tickets: Mutex<Tickets>,
    processes: Mutex<Vec<Weak<dyn Hears>>>,
    /// The locks whose changes a process is notified of, and their owners then.
    tracked: Mutex<BTreeMap<(usize, &'static str), String>>,
    /// How many requests of each attempt for any permit are under way, and whether two ever were.
    requests: Mutex<BTreeMap<String, (u32, bool)>>,
    /// One less than the first fencing token, which differs from run to run.
    fences: OnceLock<u64>,
    /// Whether nothing fails any more, and no call begins.
    is_calm: AtomicBool,
}

/// What a server knows of a request before it serves it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) what: &'static str,
    pub(super) server: usize,
    pub(super) slot_owner: usize,
    pub(super) does: Does,
    /// Of a request with a single key.
    pub(super) part: Option<Part>,
    /// As the process knows.
    pub(super) is_asking: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Moved(usize),
    /// The slot moves there, and this key has.
    Asks(usize),
    /// The slot moves, and not all keys are here.
    Moves,
    ByServer(Refusal),
    /// The lock is taken, and the rest refused.
    HalfDone,
}

impl World {
    pub(super) fn new(mix: Mix, dice: Dice, late_dice: Dice, record: Record) -> Arc<Self> {
        let servers = [Server::new(), Server::new()];
        // One calendar for both.
        servers[1].store.promote(servers[0].store.snapshot(), &servers[0].store);
        Arc::new(Self {
            servers,
            slot_owners: Mutex::new(SlotOwners::new(mix.topology)),
            rules: Mutex::new(Rules::new(&mix)),
            mix,
            dice: Mutex::new(dice),
            late_dice: Mutex::new(late_dice),
            tickets: Mutex::default(),
            history: Mutex::new(History::new(record)),
            processes: Mutex::default(),
            tracked: Mutex::default(),
            requests: Mutex::default(),
            fences: OnceLock::new(),
            is_calm: AtomicBool::new(false),
        })
    }

    pub(super) fn roll<R>(&self, roll: impl FnOnce(&mut Dice) -> R) -> R {
        roll(&mut self.dice.lock().unwrap())
    }

    pub(super) fn roll_late<R>(&self, roll: impl FnOnce(&mut Dice) -> R) -> R {
        roll(&mut self.late_dice.lock().unwrap())
    }

    pub(super) fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap()
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

    pub(super) fn copies_of_message(&self) -> u64 {
        let is_doubled = self.roll(|dice| dice.chance(self.mix.doubled_message));
        if is_doubled {
            self.count("wake-ups doubled");
        }
        1 + u64::from(is_doubled)
    }

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

    /// Shuffles what happens in the same millisecond.
    pub(super) async fn in_any_order(&self) {
        for _ in 0..self.roll(|dice| dice.below(4)) {
            yield_now().await;
        }
    }

    /// Waits until the request arrives, and the server is not stalled.
    pub(super) async fn read_by_server(&self, server: usize, arrives: Moment) {
        sleep_until(|| arrives.max(self.servers[server].stalled_until())).await;
        self.in_any_order().await;
    }

    pub(super) fn store(&self, server: usize) -> &Arc<Memory> {
        &self.servers[server].store
    }

    pub(super) fn any_server(&self) -> &Server {
        let at = match self.mix.topology {
            Topology::One => 0,
            Topology::Failover => self.slot_owners().primary(),
            Topology::Slots => self.roll(|dice| usize::from(dice.chance(500))),
        };
        &self.servers[at]
    }

    pub(super) fn slot_owners(&self) -> MutexGuard<'_, SlotOwners> {
        self.slot_owners.lock().unwrap()
    }

    /// Where a key is, and where its slot moves.
    fn stores_of(&self, key: &str) -> impl Iterator<Item = &Arc<Memory>> {
        let SlotOwner { server, moves_to } = self.slot_owners().slot_owner(slot_owner_of(key));
        [Some(server), moves_to].into_iter().flatten().map(|server| self.store(server))
    }

    pub(super) fn serve<T>(&self, request: &Request, reply: Reply<T>) -> Result<T, Refused> {
        let admitted = self.admit(request);
        match admitted {
            Ok(()) => {}
            Err(Refused::HalfDone) => self.count("requests done by half"),
            Err(Refused::ByServer(_)) => self.count("requests refused"),
            Err(_) => self.count("requests redirected"),
        }
        match admitted {
            Ok(()) => Ok(answer(reply)),
            Err(Refused::HalfDone) => {
                drop(answer(reply));
                Err(Refused::HalfDone)
            }
            Err(refused) => Err(refused),
        }
    }

    fn admit(&self, request: &Request) -> Result<(), Refused> {
        let Request { server, ref part, does, .. } = *request;
        let SlotOwner { server: owner, moves_to } =
            self.slot_owners().slot_owner(request.slot_owner);
        if self.mix.topology == Topology::Slots {
            let is_here = |part: &Part| self.store(server).has(part);
            match (moves_to, part) {
                _ if server != owner => {
                    if !(request.is_asking && moves_to == Some(server)) {
                        return Err(Refused::Moved(owner));
                    }
                }
                (Some(_), None) => return Err(Refused::Moves),
                (Some(to), Some(part)) if !is_here(part) => return Err(Refused::Asks(to)),
                (None | Some(_), _) => {}
            }
        }
        let is_replica = self.is_left(server) && !self.slot_owners().is_failing_over;
        if is_replica && does > Does::Reads {
            return Err(Refused::ByServer(Refusal::ReadOnly));
        }
        match self.servers[server].refusal_of(does) {
            None => Ok(()),
            Some(Refusal::Growth) if self.is_done_by_half(request) => Err(Refused::HalfDone),
            Some(refusal) => Err(Refused::ByServer(refusal)),
        }
    }

    /// Whether the memory is full between the two commands of an acquisition.
    fn is_done_by_half(&self, request: &Request) -> bool {
        request.what == "acquire" && self.roll(|dice| dice.chance(300))
    }

    /// Whether the other server took over from this one.
    pub(super) fn is_left(&self, server: usize) -> bool {
        self.mix.topology == Topology::Failover && self.slot_owners().primary() != server
    }

    /// The owner of a lock in the store, with its marks.
    pub(super) fn owner(&self, key: &str) -> Option<String> {
        let lock_key = lock_key(key);
        self.stores_of(key).find_map(|store| store.holder(&lock_key))
    }

    /// Whether the server without the key's slot has anything of the key.
    pub(super) fn is_elsewhere(&self, key: &str) -> bool {
        let (key, SlotOwner { server, .. }) =
            (lock_key(key), self.slot_owners().slot_owner(slot_owner_of(key)));
        let parts = [Part::Lock(key.clone()), Part::Queue(key)];
        parts.iter().any(|part| self.store(1 - server).has(part))
    }

    pub(super) fn add(&self, process: &Arc<dyn Hears>) {
        let mut processes = self.processes.lock().unwrap();
        processes.retain(|process| process.upgrade().is_some_and(|it| !it.life().is_over()));
        processes.push(Arc::downgrade(process));
    }

    pub(super) fn processes(&self) -> Vec<Arc<dyn Hears>> {
        let processes = self.processes.lock().unwrap();
        let living = processes.iter().filter_map(Weak::upgrade);
        living.filter(|process| !process.life().is_over()).collect()
    }

    /// An operator asks the holder of a lock to stop. A ticket's lock is released: no one is at work.
    pub(super) fn revoke(&self, key: &'static str) {
        match self.owner(key) {
            Some(owner) if is_ticket(&owner) => {
                self.count("tickets of stopped locks");
                self.force(key);
            }
            Some(owner) => self.send(Verb::Revoke, key, owner),
            None => {}
        }
    }

    /// An operator takes a lock away, unless its slot moves.
    pub(super) fn force(&self, key: &'static str) {
        if self.slot_owners().slot_owner(slot_owner_of(key)).moves_to.is_some() {
            return;
        }
        let Some(owner) = self.owner(key) else { return };
        self.lose(key, &owner);
        self.send(Verb::Forced, key, owner.clone());
        for store in self.stores_of(key) {
            answer(store.force(lock_key(key), owner.clone().into_bytes()));
        }
        self.changed(key);
    }

    pub(super) fn delete(&self, key: &'static str) {
        let Some(owner) = self.owner(key) else { return };
        self.lose(key, &owner);
        self.stores_of(key).for_each(|store| store.delete(&lock_key(key)));
        self.changed(key);
    }

    pub(super) fn flush(&self) {
        for key in KEYS {
            if let Some(owner) = self.owner(key) {
                self.lose(key, &owner);
            }
        }
        self.servers.iter().for_each(|server| server.store.flush());
    }

    /// The owner may believe in its lock until its lease ends.
    fn lose(&self, key: &'static str, owner: &str) {
        let owner = owner.trim_start_matches(MARKS);
        let is_heard = self
            .tracked
            .lock()
            .unwrap()
            .iter()
            .any(|((_, tracked), by)| *tracked == key && by == owner);
        self.rules().loses(owner, is_heard);
    }

    fn send(&self, verb: Verb, key: &'static str, owner: String) {
        let (key, reason) = (lock_key(key), Reason::new("an operator"));
        let revocation = Revocation { verb, owner, key, reason };
        for process in self.processes() {
            if process.is_deaf() || self.roll(|dice| dice.chance(self.mix.lost_message)) {
                self.count("messages of operators lost");
                continue;
            }
            let arrives = tokio_time().after(self.message_way());
            let revocation = revocation.clone();
            drop(tokio::spawn(async move {
                process.life().until(arrives).await;
                process.hears(News::Operator(revocation));
            }));
        }
    }

    pub(super) fn tracks(&self, process: usize, key: &LockKey, owner: &str) {
        self.tracked.lock().unwrap().insert((process, known(key)), owner.to_owned());
    }

    /// The connection broke that notifies the process.
    pub(super) fn untrack(&self, process: usize) {
        self.tracked.lock().unwrap().retain(|(of, _), _| *of != process);
    }

    fn changed(&self, key: &'static str) {
        for process in self.processes() {
            if self.tracked.lock().unwrap().remove(&(process.number(), key)).is_none() {
                continue;
            }
            let arrives = tokio_time().after(self.message_way());
            drop(tokio::spawn(async move {
                process.life().until(arrives).await;
                process.hears(News::Changed(key));
            }));
        }
    }

    /// The other server takes over with older data.
    pub(super) fn fail_over(&self, snapshot: Snapshot) {
        let former = self.slot_owners().primary();
        let (old, new) = (self.store(former), self.store(1 - former));
        new.promote(snapshot, old);
        let known: BTreeMap<_, _> =
            new.locks().into_iter().map(|(key, owner, ends)| ((key, owner), ends)).collect();
        for (key, owner, ends) in old.locks() {
            let ends_there = known.get(&(key, owner.clone()));
            if ends_there.is_none_or(|there| *there < ends) {
                self.count("locks lost by a switch");
                self.rules().loses(&owner, false);
            }
        }
        for owner in known.keys().map(|(_, owner)| owner).filter(|owner| is_ticket(owner)) {
            if self.tickets().is_used(owner) {
                self.count("redemptions lost by a switch");
                self.rules().loses(owner, false);
            }
        }
        self.slot_owners().fail_over();
    }

    pub(super) fn migrate(&self, part: &Part, from: usize, to: usize) {
        self.store(from).migrate(part, self.store(to));
    }

    pub(super) fn parts(slot_owner: usize) -> Vec<Part> {
        let locks = keys_in(slot_owner).map(|key| Part::Lock(lock_key(key)));
        // All permits have one queue.
        let queues = keys_in(slot_owner).take(2).map(|key| Part::Queue(lock_key(key)));
        locks.chain(queues).chain([Part::Counter(slot(slot_owner))]).collect()
    }

    pub(super) fn queue(&self, key: &str) -> Vec<String> {
        let lock_key = lock_key(key);
        self.stores_of(key).flat_map(|store| Memory::queue(store, &lock_key)).collect()
    }

    pub(super) fn shown(&self, names: &mut Names) -> String {
        let used = KEYS.map(|key| (key, self.owner(key), self.queue(key)));
        let used =
            used.into_iter().filter(|(_, owner, queue)| owner.is_some() || !queue.is_empty());
        let shown = used.map(|(key, owner, queue)| {
            format!("{key} {}, queue {}", names.of_all(owner), names.of_all(queue))
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    pub(super) fn fence(&self, token: u64) -> u64 {
        token.saturating_sub(*self.fences.get_or_init(|| token - 1))
    }

    pub(super) fn granted(&self, server: usize, key: &LockKey, owner: &str, fence: Reserved) {
        self.takes(server, key, owner);
        self.counted(server, key, owner, fence);
    }

    /// A fencing token was counted for an owner, who may have lost the lock by then where its slot moves.
    pub(super) fn counted(&self, server: usize, key: &LockKey, owner: &str, fence: Reserved) {
        let fence = [fence.first, fence.last()].map(|token| self.fence(token));
        let is_left = self.is_left(server);
        self.confirms(server, owner);
        let broken = self.rules().granted(known(key), owner, fence, is_left);
        if let Some(broken) = broken {
            self.violation(|_| broken);
        }
        let has = |other: &&str| self.owner(other).as_deref() == Some(owner);
        if KEYS.iter().filter(|other| has(other)).count() > 1 {
            let were_two = self.requests.lock().unwrap().get(owner).is_some_and(|(_, two)| *two);
            if were_two && self.mix.topology == Topology::Slots {
                return self.count("permits taken twice while a slot moves");
            }
            self.violation(|names| format!("{key}: {} has two locks", names.of(owner)));
        }
    }

    /// A request for any permit starts. One in parts beside another one may take a second permit: neither sees what the
    /// other takes.
    pub(super) fn begins_request(&self, attempt: &Attempt) {
        if attempt.local_permit.is_some() {
            let mut requests = self.requests.lock().unwrap();
            let (under_way, were_two) =
                requests.entry(attempt.owner.as_ref().to_owned()).or_default();
            *under_way += 1;
            *were_two |= *under_way > 1;
        }
    }

    /// A request for any permit that waits takes one in parts: its queue entry may be granted another one before it
    /// leaves.
    pub(super) fn waits_in_parts(&self, attempt: &Attempt) {
        let mut requests = self.requests.lock().unwrap();
        requests.entry(attempt.owner.as_ref().to_owned()).or_default().1 = true;
    }

    /// A request was answered. One that was abandoned stays under way.
    pub(super) fn ends_request(&self, attempt: &Attempt) {
        let mut requests = self.requests.lock().unwrap();
        if let Some((under_way, _)) = requests.get_mut(attempt.owner.as_ref()) {
            *under_way -= 1;
        }
    }

    pub(super) fn confirms(&self, server: usize, owner: &str) {
        if self.mix.topology == Topology::Failover {
            let is_left = self.is_left(server);
            let epoch = self.slot_owners().epoch;
            let mut rules = self.rules();
            rules.confirms(owner, epoch.saturating_sub(u64::from(is_left)));
            if is_left {
                rules.loses(owner, false);
            }
        }
    }

    /// Whether a server may not know that this hold ended.
    pub(super) fn may_lose(&self, hold: &Hold) -> bool {
        self.mix.topology == Topology::Failover || self.rules().is_lost(&hold.owner)
    }

    /// Whether this hold leaves its lock done for so long.
    pub(super) fn is_done(&self, hold: &Hold, rest: Duration) -> bool {
        let key = lock_key(hold.key);
        let mut found =
            self.stores_of(hold.key).filter_map(|store| answer(store.inspect(key.clone())));
        let Some(found) = found.next() else { return false };
        // The rest is in whole milliseconds.
        let longest = found.remaining.unwrap_or_default() + Duration::from_millis(1);
        found.owner.text().strip_prefix(MARKS) == Some(&hold.owner) && rest <= longest
    }

    pub(super) fn struck_key(&self) -> &'static str {
        self.roll(|dice| if dice.chance(500) { KEYS[0] } else { dice.one_of(&KEYS) })
    }

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

/// The answer of the store in memory, which is ready at once.
pub(super) fn answer<T>(mut reply: Reply<T>) -> T {
    match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => answer,
        Poll::Ready(Err(_)) | Poll::Pending => unreachable!("memory answers at once"),
    }
}
