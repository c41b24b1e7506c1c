//! A simulated process: its two connections, which are opened when they are needed and replaced when they
//! broke, as `backend/redis/topology/connections.rs` does.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::connection::Connection;
use super::life::{Life, polled_worker, sleep};
use super::mix::{Lane, Way};
use super::world::World;
use crate::backend::{Events, Fault, Reply, Times};
use crate::types::clock::{tokio_time, within};
use crate::types::token::Origin;

/// As the default of the real backend.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

pub(super) struct Process {
    pub(super) number: usize,
    pub(super) world: Arc<World>,
    pub(super) life: Arc<Life>,
    pub(super) times: Times,
    openings: Mutex<[Option<Arc<Opening>>; 2]>,
    /// What the process is reported to.
    pub(super) events: OnceLock<Weak<dyn Events>>,
    subscription: Mutex<Subscription>,
    /// Notified when the subscription is confirmed.
    pub(super) confirmed: Notify,
    /// Notified when the subscription breaks.
    pub(super) broken: Notify,
}

/// The one subscription of a process.
#[derive(Default)]
pub(super) struct Subscription {
    pub(super) is_started: bool,
    pub(super) is_confirmed: bool,
    /// Whether no message arrives, although the server sends them.
    pub(super) is_deaf: bool,
    /// All that it ever had.
    pub(super) origins: BTreeSet<Origin>,
}

/// The answer to a request.
pub(super) struct Asked<T> {
    pub(super) answer: T,
    /// The server's clock when it answered.
    pub(super) server_time: u64,
    /// Whether the request was sent twice.
    pub(super) is_second: bool,
}

/// A connection that is being opened, or is open.
#[derive(Default)]
struct Opening {
    connection: OnceLock<Arc<Connection>>,
    opened: Notify,
}

/// The connection of the runtime that polls.
fn lane() -> Lane {
    if polled_worker().is_some() { Lane::Caller } else { Lane::Background }
}

impl Process {
    pub(super) fn new(number: usize, world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            number,
            world: Arc::clone(world),
            life: Arc::default(),
            times: Times::default(),
            openings: Mutex::default(),
            events: OnceLock::new(),
            subscription: Mutex::default(),
            confirmed: Notify::new(),
            broken: Notify::new(),
        })
    }

    /// Sends a request; once more, on a new connection, when its own broke.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        what: &'static str,
        request: impl Fn() -> Reply<T>,
    ) -> Result<Asked<T>, Fault> {
        let asked = |(answer, server_time), is_second| Asked { answer, server_time, is_second };
        let connection = self.ready().await?;
        let first = self.call(&connection, what, request()).await;
        if first.is_err() && connection.is_retired() {
            let connection = self.ready().await?;
            self.world.count("requests repeated");
            return Ok(asked(self.call(&connection, what, request()).await?, true));
        }
        Ok(asked(first?, false))
    }

    async fn call<T: Send + 'static>(
        &self,
        connection: &Connection,
        what: &'static str,
        reply: Reply<T>,
    ) -> Result<(T, u64), Fault> {
        let (world, number) = (Arc::clone(&self.world), self.number);
        let lane = lane();
        world.note(|_| format!("p{number} sends {what} ({lane:?})"));
        let served = Box::pin(async move {
            let answer = reply.await;
            world.note(|names| {
                let shown = world.shown(names);
                format!("server: p{number} {what} ({lane:?}): {shown}")
            });
            answer
        });
        let answered = connection.call(served).await;
        let outcome = if answered.is_ok() { "is answered" } else { "broke" };
        self.world.note(|_| format!("p{number} {what} ({lane:?}) {outcome}"));
        answered
    }

    /// The connection of the caller, opened by the first that comes.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<Arc<Connection>, Fault> {
        let opening = self.opening(lane());
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

    fn opening(self: &Arc<Self>, lane: Lane) -> Arc<Opening> {
        let mut openings = self.openings();
        if let Some(opening) =
            openings[lane as usize].as_ref().filter(|opening| opening.is_usable())
        {
            return Arc::clone(opening);
        }
        // Where one broke, the others are opened again as well.
        let broke = openings.iter().flatten().any(|opening| !opening.is_usable());
        for opening in openings.iter_mut() {
            drop(opening.take_if(|opening| broke && opening.connection.get().is_some()));
        }
        let opening = Arc::<Opening>::default();
        openings[lane as usize] = Some(Arc::clone(&opening));
        drop(tokio::spawn(Arc::clone(self).open(lane, Arc::clone(&opening))));
        opening
    }

    async fn open(self: Arc<Self>, lane: Lane, opening: Arc<Opening>) {
        self.reach_server(lane).await;
        self.reach_process(lane).await;
        self.times.forget();
        drop(opening.connection.set(Connection::open(&self.world, &self.life, lane)));
        opening.opened.notify_waiters();
        if let Some(events) = self.events.get().and_then(Weak::upgrade) {
            events.on_connected(&|_| true);
        }
    }

    /// Ends when the server does what the process asks for now.
    pub(super) async fn reach_server(&self, lane: Lane) {
        self.life.until(tokio_time()).await;
        let way = self.world.way(Way { lane, is_reply: false });
        self.world.read_by_server(tokio_time().after(way)).await;
    }

    /// Ends when the process hears of that.
    pub(super) async fn reach_process(&self, lane: Lane) {
        let way = self.world.way(Way { lane, is_reply: true });
        self.life.until(tokio_time().after(way)).await;
    }

    /// The next call shall not join what this one gave up.
    fn forget(&self, opening: &Arc<Opening>) {
        for other in self.openings().iter_mut() {
            drop(other.take_if(|other| Arc::ptr_eq(other, opening)));
        }
    }

    /// Whether an owner token is that of a waiter of this process.
    pub(super) fn owns(&self, owner: &str) -> bool {
        self.subscription().origins.iter().any(|origin| origin.is_of(owner))
    }

    pub(super) fn subscription(&self) -> MutexGuard<'_, Subscription> {
        self.subscription.lock().unwrap()
    }

    /// The calling task gave up on an answer after that time.
    pub(super) fn unanswered(&self, waited: Duration) {
        let opening = self.openings()[lane() as usize].clone();
        if let Some(connection) = opening.as_ref().and_then(|opening| opening.connection.get()) {
            connection.unanswered(waited);
        }
    }

    /// The open connections, which may be retired.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let openings = self.openings();
        openings.iter().flatten().filter_map(|opening| opening.connection.get().cloned()).collect()
    }

    fn openings(&self) -> MutexGuard<'_, [Option<Arc<Opening>>; 2]> {
        self.openings.lock().unwrap()
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
