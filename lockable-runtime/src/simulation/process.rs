//! A simulated process: two connections to each server, opened and replaced as `redis/topology/connections.rs` does,
//! and what it knows of the servers.

use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::connection::Connection;
use super::keys::{SLOTS, slot_owner};
use super::life::{Life, polled_worker, sleep};
use super::mix::{ConnectionKind, Way};
use super::news::{Hears, News};
use super::nodes::Part;
use super::server::{Does, Refusal};
use super::slot_owners::Topology;
use super::world::{Refused, Request, World};
use crate::core::backend::epochs::Epoch;
use crate::core::backend::epochs::Epochs;
use crate::core::backend::{Events, Fault, Reply, Revocation};
use crate::core::memory::Memory;
use crate::core::process::clock::{Moment, tokio_time, within};
use crate::core::types::owner::Origin;
use crate::core::types::slot::Slot;
use crate::redis::{Before, LatestReleases};

const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// As in `redis/route/hops.rs`.
const MAX_REDIRECTS: u32 = 5;

/// As there, where a slot moves.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Process {
    pub(super) number: usize,
    pub(super) world: Arc<World>,
    pub(super) life: Arc<Life>,
    /// Two of each server.
    openings: Mutex<[Option<Arc<Opening>>; 4]>,
    /// All connections to the servers in use: replaced ones may have a reply under way.
    opened: Mutex<Vec<Weak<Connection>>>,
    known: Mutex<Known>,
    pub(super) latest_releases: LatestReleases,
    pub(super) events: OnceLock<(Origin, Weak<dyn Events>)>,
    subscription: Mutex<Subscription>,
    epochs: Arc<Epochs>,
    pub(super) confirmed: Notify,
    pub(super) broken: Notify,
}

/// What the process knows of the slots.
struct Known {
    slot_owners: [usize; SLOTS],
    /// The number of changes of the primary.
    epoch: u64,
}

#[derive(Default)]
pub(super) struct Subscription {
    pub(super) is_confirmed: bool,
    pub(super) is_deaf: bool,
    pub(super) is_started: bool,
}

impl Hops {
    fn are_none(&self) -> bool {
        self.redirects == 0 && !self.has_broken
    }
}

#[derive(Clone)]
pub(super) struct Ask {
    pub(super) what: &'static str,
    pub(super) slot: Slot,
    pub(super) does: Does,
    pub(super) part: Option<Part>,
}

pub(super) struct Asked<T> {
    pub(super) answer: T,
    pub(super) sent: Moment,
    /// Over once the server is left.
    pub(super) epoch: Option<Arc<Epoch>>,
    pub(super) before: Before<T>,
}

pub(super) enum NoAnswer {
    Fault(Fault),
    /// The slot moves, so the request has to be sent in parts.
    Moves,
}

impl NoAnswer {
    pub(super) fn fault(self) -> Fault {
        match self {
            Self::Fault(fault) => fault,
            Self::Moves => unreachable!("the server has all keys"),
        }
    }
}

impl From<Fault> for NoAnswer {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

#[derive(Default)]
struct Hops {
    redirects: u32,
    has_broken: bool,
    asks: Option<usize>,
}

/// A connection that is open or being opened.
#[derive(Default)]
struct Opening {
    connection: OnceLock<Arc<Connection>>,
    opened: Notify,
}

fn connection_kind() -> ConnectionKind {
    if polled_worker().is_some() { ConnectionKind::Caller } else { ConnectionKind::Background }
}

impl Process {
    pub(super) fn new(number: usize, world: &Arc<World>) -> Arc<Self> {
        let process = Arc::new(Self {
            number,
            world: Arc::clone(world),
            life: Arc::default(),
            openings: Mutex::default(),
            opened: Mutex::default(),
            known: Mutex::new(Known::now(world)),
            latest_releases: LatestReleases::default(),
            events: OnceLock::new(),
            subscription: Mutex::default(),
            epochs: Arc::default(),
            confirmed: Notify::new(),
            broken: Notify::new(),
        });
        let hears: Arc<dyn Hears> = Arc::<Self>::clone(&process);
        world.add(&hears);
        process
    }

    /// Sends a request to the server of its slot, and follows redirects, as `Router::send` in `redis/route/mod.rs`.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        ask: Ask,
        request: impl Fn(&Arc<Memory>) -> Reply<T>,
    ) -> Result<Asked<T>, NoAnswer> {
        let mut before = Before::Nothing;
        let mut hops = Hops::default();
        loop {
            let asks = hops.asks.take();
            let server = asks.unwrap_or_else(|| self.server_of(ask.slot));
            let connection = self.ready(server).await?;
            let Ask { what, slot, does, part } = ask.clone();
            let is_asking = asks.is_some();
            let at = tokio_time();
            let sent =
                Request { what, server, slot_owner: slot_owner(slot), does, part, is_asking };
            let answer = self.call(&connection, sent, request(self.world.store(server))).await;
            before = match answer {
                Ok(Ok(answer)) if !connection.is_abandoned() => {
                    let epoch = Some(Arc::new(self.epochs.current()));
                    return Ok(Asked { answer, sent: at, epoch, before });
                }
                Ok(Ok(answer)) => Before::Left(answer),
                _ if connection.is_abandoned() => self.repeated(Before::Unknown),
                Ok(Err(refused)) => {
                    let is_first = matches!(before, Before::Nothing) && hops.are_none();
                    self.follow(refused, &ask, &connection, &mut hops, is_first).await?;
                    before
                }
                Err(_) if connection.is_retired() && !mem::replace(&mut hops.has_broken, true) => {
                    self.repeated(Before::Unknown)
                }
                Err(fault) => return Err(fault.into()),
            };
        }
    }

    fn repeated<T>(&self, before: Before<T>) -> Before<T> {
        self.world.count("requests repeated");
        before
    }

    async fn follow(
        &self,
        refused: Refused,
        ask: &Ask,
        connection: &Connection,
        hops: &mut Hops,
        is_first: bool,
    ) -> Result<(), NoAnswer> {
        match refused {
            Refused::Moved(server) => self.learn_slot_owner(ask.slot, server),
            Refused::Asks(server) => hops.asks = Some(server),
            Refused::Moves => return Err(NoAnswer::Moves),
            Refused::HalfDone => return Err(Fault::unavailable("OOM of the counter").into()),
            Refused::ByServer(Refusal::ReadOnly) => {
                connection.retire();
                if !mem::replace(&mut hops.has_broken, true) {
                    return Ok(());
                }
                return Err(refusal(is_first).into());
            }
            Refused::ByServer(_) => return Err(refusal(is_first).into()),
        }
        hops.redirects += 1;
        match hops.redirects {
            1 | 2 => {}
            3..=MAX_REDIRECTS => sleep(SHORTEST_PAUSE).await,
            _ => return Err(Fault::unavailable("redirected in a circle").into()),
        }
        Ok(())
    }

    async fn call<T: Send + 'static>(
        &self,
        connection: &Connection,
        request: Request,
        reply: Reply<T>,
    ) -> Result<Result<T, Refused>, Fault> {
        let (world, number) = (Arc::clone(&self.world), self.number);
        let connection_kind = connection_kind();
        let Request { what, server, .. } = request;
        world.note(|_| format!("p{number} sends {what} ({connection_kind:?}) to s{server}"));
        let served = Box::pin(async move {
            let answer = reply.await;
            world.note(|names| {
                let shown = world.shown(names);
                format!("s{server}: p{number} {what} ({connection_kind:?}): {shown}")
            });
            answer
        });
        let answered = connection.call(request, served).await;
        self.world.note(|_| {
            let outcome = match &answered {
                Ok(Ok(_)) => "is answered".to_owned(),
                Ok(Err(refused)) => format!("is refused: {refused:?}"),
                Err(_) => "broke".to_owned(),
            };
            format!("p{number} {what} ({connection_kind:?}) {outcome}")
        });
        answered
    }

    pub(super) fn server_of(&self, slot: Slot) -> usize {
        self.known().slot_owners[slot_owner(slot)]
    }

    /// The number of changes of the primary that the process knows.
    pub(super) fn epoch(&self) -> u64 {
        self.known().epoch
    }

    /// The servers from which grants may come.
    pub(super) fn servers(&self) -> Vec<usize> {
        match self.world.mix.topology {
            Topology::Slots => vec![0, 1],
            Topology::One | Topology::Failover => vec![self.known().slot_owners[0]],
        }
    }

    fn learn_slot_owner(&self, slot: Slot, server: usize) {
        let is_news =
            mem::replace(&mut self.known().slot_owners[slot_owner(slot)], server) != server;
        if is_news && let Some(events) = self.events() {
            events.on_connected(&|other| other == slot);
        }
    }

    /// Learns the primary from the Sentinels.
    pub(super) fn learn_primary(self: &Arc<Self>) {
        let now = Known::now(&self.world);
        let is_news = {
            let mut known = self.known();
            let is_news = known.epoch != now.epoch;
            if is_news {
                *known = now;
            }
            is_news
        };
        if !is_news || self.life.is_over() {
            return;
        }
        self.world.count("failovers last_reply of");
        self.world.note(|_| format!("p{} moves to the next primary", self.number));
        self.epochs.begin(true);
        let left = mem::take(&mut *self.opened.lock().unwrap());
        left.iter().filter_map(Weak::upgrade).for_each(|connection| connection.abandon());
        self.world.untrack(self.number);
        if let Some(events) = self.events() {
            events.on_connected(&|_| true);
        }
        drop(tokio::spawn(Arc::clone(self).move_in()));
        self.broken.notify_one();
    }

    pub(super) fn events(&self) -> Option<Arc<dyn Events>> {
        self.events.get()?.1.upgrade()
    }

    /// All connections to a server break.
    fn leave_server(&self, server: usize) {
        let openings = self.openings()[2 * server..2 * server + 2].to_vec();
        for opening in openings.iter().flatten() {
            if let Some(connection) = opening.connection.get() {
                connection.cut();
            }
        }
        if self.servers() == [server] {
            self.world.untrack(self.number);
            self.broken.notify_one();
        }
    }

    /// Stops what an operator's message names: it is neither polled nor passed on.
    fn hears_of_operator(&self, revocation: &Revocation) {
        let Some(events) = self.events() else { return };
        let held = self.world.rules().held_by(&revocation.owner);
        events.on_revocation(revocation);
        let stopped = held.into_iter().filter(|(_, lease)| !lease.is_held());
        self.world.rules().stopped(&revocation.owner, stopped.map(|(hold, _)| hold));
    }

    /// Another process has changed a lock of this one.
    fn hears_of_change(&self, key: &str) {
        let is_open = self.connections().iter().any(|connection| !connection.is_retired());
        if let Some(events) = self.events().filter(|_| is_open) {
            self.world.count("changes last_reply");
            events.on_changed(key);
        }
    }

    /// All slots of this one have left a server, which ends the subscription to their channels.
    fn hears_of_move(&self, slot: Slot) {
        if let Some(events) = self.events() {
            events.on_resubscribed(&|other| other == slot);
        }
    }

    /// The connection of the caller; calls share its opening.
    pub(super) async fn ready(self: &Arc<Self>, server: usize) -> Result<Arc<Connection>, Fault> {
        let opening = self.opening(server, connection_kind());
        if let Some(connection) = opening.connection.get() {
            return Ok(Arc::clone(connection));
        }
        let opened = within(|| sleep(CONNECT_DEADLINE), opening.connection()).await;
        opened.ok_or_else(|| {
            self.forget(&opening);
            self.world.count("connections given up");
            Fault::unavailable("could not connect")
        })
    }

    fn opening(self: &Arc<Self>, server: usize, connection_kind: ConnectionKind) -> Arc<Opening> {
        let mut openings = self.openings();
        let of_server = &mut openings[2 * server..2 * server + 2];
        let is_usable = |opening: &&Arc<Opening>| opening.is_usable();
        if let Some(opening) = of_server[connection_kind as usize].as_ref().filter(is_usable) {
            return Arc::clone(opening);
        }
        // Where one broke, the others are opened again as well.
        let broke = of_server.iter().flatten().any(|opening| !opening.is_usable());
        for opening in of_server.iter_mut() {
            drop(opening.take_if(|opening| broke && opening.connection.get().is_some()));
        }
        let opening = Arc::<Opening>::default();
        of_server[connection_kind as usize] = Some(Arc::clone(&opening));
        drop(tokio::spawn(Arc::clone(self).open((server, connection_kind), Arc::clone(&opening))));
        opening
    }

    /// Looks up the primary first.
    async fn open(
        self: Arc<Self>,
        (server, connection_kind): (usize, ConnectionKind),
        opening: Arc<Opening>,
    ) {
        self.reach_server(server, connection_kind).await;
        self.reach_process(connection_kind).await;
        let connection = Connection::open(&self.world, &self.life, (server, connection_kind));
        drop(opening.connection.set(Arc::clone(&connection)));
        self.opened.lock().unwrap().push(Arc::downgrade(&connection));
        opening.opened.notify_waiters();
        self.learn_primary();
        let is_elected = self.world.mix.topology == Topology::Failover;
        if is_elected && self.servers() != [server] {
            // It belongs to an election that is over.
            return connection.abandon();
        }
        if let Some(events) = self.events() {
            events.on_connected(&|slot| self.server_of(slot) == server);
        }
    }

    /// Waits for a message's way to the server.
    pub(super) async fn reach_server(&self, server: usize, connection_kind: ConnectionKind) {
        self.life.until(tokio_time()).await;
        let way = self.world.way(Way { connection_kind, is_reply: false });
        self.world.read_by_server(server, tokio_time().after(way)).await;
    }

    /// Waits for a message's way to the process.
    pub(super) async fn reach_process(&self, connection_kind: ConnectionKind) {
        let way = self.world.way(Way { connection_kind, is_reply: true });
        self.life.until(tokio_time().after(way)).await;
    }

    /// The next call opens another connection.
    fn forget(&self, opening: &Arc<Opening>) {
        for other in self.openings().iter_mut() {
            drop(other.take_if(|other| Arc::ptr_eq(other, opening)));
        }
    }

    /// Whether a waiter of this process has the owner token.
    pub(super) fn owns(&self, owner: &str) -> bool {
        self.events.get().is_some_and(|(origin, _)| origin.is_of(owner))
    }

    pub(super) fn subscription(&self) -> MutexGuard<'_, Subscription> {
        self.subscription.lock().unwrap()
    }

    /// A call gave up on a reply of the slot's server after that time.
    pub(super) fn unanswered(&self, slot: Slot, waited: Duration) {
        let at = 2 * self.server_of(slot) + connection_kind() as usize;
        let opening = self.openings()[at].clone();
        if let Some(connection) = opening.as_ref().and_then(|opening| opening.connection.get()) {
            connection.unanswered(waited);
        }
    }

    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let openings = self.openings();
        openings.iter().flatten().filter_map(|opening| opening.connection.get().cloned()).collect()
    }

    fn openings(&self) -> MutexGuard<'_, [Option<Arc<Opening>>; 4]> {
        self.openings.lock().unwrap()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }
}

/// Only a refusal of the first request shows that nothing was granted.
fn refusal(is_first: bool) -> Fault {
    Fault { proves_absence: is_first, ..Fault::unavailable("the server refuses that") }
}

impl Known {
    fn now(world: &World) -> Self {
        let slot_owners = world.slot_owners();
        let server = |at| slot_owners.slot_owner(at).server;
        Self { slot_owners: std::array::from_fn(server), epoch: slot_owners.epoch }
    }
}

impl Opening {
    fn is_usable(&self) -> bool {
        self.connection.get().is_none_or(|connection| !connection.is_retired())
    }

    async fn connection(&self) -> Arc<Connection> {
        loop {
            let mut opened = pin!(self.opened.notified());
            opened.as_mut().enable();
            if let Some(connection) = self.connection.get() {
                return Arc::clone(connection);
            }
            opened.await;
        }
    }
}

impl Hears for Process {
    fn number(&self) -> usize {
        self.number
    }

    fn life(&self) -> &Life {
        &self.life
    }

    fn is_deaf(&self) -> bool {
        self.subscription().is_deaf
    }

    fn hears(self: Arc<Self>, news: News) {
        match news {
            News::Operator(revocation) => self.hears_of_operator(&revocation),
            News::Changed(key) => self.hears_of_change(key),
            News::Moved(slot) => self.hears_of_move(slot),
            News::Primary => self.learn_primary(),
            News::Left(server) => self.leave_server(server),
        }
    }
}
