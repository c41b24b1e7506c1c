//! A simulated connection: requests arrive in their order, and so do replies, unless it breaks.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};

use super::life::Life;
use super::mix::{ConnectionKind, Way};
use super::world::{Refused, Request, World};
use crate::core::backend::{Fault, Reply};
use crate::core::process::clock::{Moment, tokio_time};

/// As in the real backend.
const UNANSWERED_LIMIT: u32 = 3;

/// Runs in the process when a reply arrives.
type Deliver = Box<dyn FnOnce() + Send>;

/// Runs in the server.
type Serve = Box<dyn FnOnce() -> Deliver + Send>;

struct Sent {
    arrives: Moment,
    lands_when_cut: bool,
    serve: Serve,
}

pub(super) struct Connection {
    world: Arc<World>,
    life: Arc<Life>,
    requests: mpsc::UnboundedSender<Sent>,
    wire: Arc<Wire>,
    since: Moment,
    is_retired: AtomicBool,
    is_abandoned: AtomicBool,
    unanswered: AtomicU32,
}

struct Wire {
    server: usize,
    connection_kind: ConnectionKind,
    is_cut: AtomicBool,
    loses_requests: AtomicBool,
    loses_replies: AtomicBool,
    cut: Notify,
}

impl Wire {
    fn of(server: usize, connection_kind: ConnectionKind) -> Self {
        let no = || AtomicBool::new(false);
        let (is_cut, loses_requests, loses_replies) = (no(), no(), no());
        Self { server, connection_kind, is_cut, loses_requests, loses_replies, cut: Notify::new() }
    }
}

impl Connection {
    pub(super) fn open(
        world: &Arc<World>,
        life: &Arc<Life>,
        (server, connection_kind): (usize, ConnectionKind),
    ) -> Arc<Self> {
        let (sender, requests) = mpsc::unbounded_channel();
        let wire = Arc::new(Wire::of(server, connection_kind));
        let serving = serve(Arc::clone(world), Arc::clone(life), Arc::clone(&wire), requests);
        drop(tokio::spawn(serving));
        Arc::new(Self {
            world: Arc::clone(world),
            life: Arc::clone(life),
            requests: sender,
            wire,
            since: tokio_time(),
            is_retired: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
        })
    }

    /// # Errors
    /// When the connection breaks.
    pub(super) async fn call<T>(
        &self,
        request: Request,
        reply: Reply<T>,
    ) -> Result<Result<T, Refused>, Fault>
    where
        T: Send + 'static,
    {
        if self.life.is_over() {
            return pending().await;
        }
        if self.wire.is_cut.load(Ordering::Relaxed) {
            return Err(self.broke());
        }
        let (sender, answered) = oneshot::channel();
        let world = Arc::clone(&self.world);
        self.send(Box::new(move || {
            let answered = world.serve(&request, reply);
            Box::new(move || drop(sender.send(answered)))
        }));
        match self.unless_cut(answered).await {
            Some(answered) => {
                self.unanswered.store(0, Ordering::Relaxed);
                Ok(answered)
            }
            None => Err(self.broke()),
        }
    }

    fn broke(&self) -> Fault {
        self.retire();
        Fault::unavailable("the connection broke")
    }

    fn send(&self, serve: Serve) {
        let way = Way { connection_kind: self.wire.connection_kind, is_reply: false };
        let arrives = self.life.runs_at().after(self.world.way(way));
        let lands_when_cut = self.world.roll(|dice| dice.chance(500));
        // The server reads for as long as there is a sender.
        drop(self.requests.send(Sent { arrives, lands_when_cut, serve }));
    }

    /// None if the connection breaks; pending for ever if the answer was lost.
    async fn unless_cut<T>(&self, answer: oneshot::Receiver<T>) -> Option<T> {
        let mut answer = pin!(async {
            match answer.await {
                Ok(answer) => answer,
                Err(_) => pending().await,
            }
        });
        let mut cut = pin!(self.broken());
        let first = poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => cut.as_mut().poll(cx).map(|()| None),
        });
        let first = first.await;
        // The process hears of neither while it does not run.
        self.life.until(tokio_time()).await;
        first
    }

    async fn broken(&self) {
        let mut cut = pin!(self.wire.cut.notified());
        cut.as_mut().enable();
        if !self.wire.is_cut.load(Ordering::Relaxed) {
            cut.await;
        }
    }

    /// Breaks: what is under way may be lost, and all that wait for an answer get an error.
    pub(super) fn cut(&self) {
        self.retire();
        self.wire.is_cut.store(true, Ordering::Relaxed);
        self.wire.cut.notify_waiters();
    }

    /// No reply arrives any more, and perhaps no request.
    pub(super) fn silence(&self) {
        let loses_requests = self.world.roll(|dice| dice.chance(500));
        self.wire.loses_requests.store(loses_requests, Ordering::Relaxed);
        self.wire.loses_replies.store(true, Ordering::Relaxed);
    }

    /// A call gave up on a reply after that time.
    pub(super) fn unanswered(&self, waited: Duration) {
        let is_older = tokio_time().since(self.since) >= waited;
        if is_older && self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_LIMIT {
            self.retire();
        }
    }

    /// Its server was left: later answers are discarded.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.cut();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }
}

/// The server's end, which continues when the process stops or dies.
async fn serve(
    world: Arc<World>,
    life: Arc<Life>,
    wire: Arc<Wire>,
    mut requests: mpsc::UnboundedReceiver<Sent>,
) {
    let (replies, arriving) = mpsc::unbounded_channel();
    drop(tokio::spawn(deliver(Arc::clone(&world), life, arriving)));
    while let Some(Sent { arrives, lands_when_cut, serve }) = requests.recv().await {
        world.read_by_server(wire.server, arrives).await;
        let is_cut = wire.is_cut.load(Ordering::Relaxed);
        if (is_cut && !lands_when_cut) || wire.loses_requests.load(Ordering::Relaxed) {
            world.count("requests lost");
            continue;
        }
        let delivery = serve();
        if is_cut || wire.loses_replies.load(Ordering::Relaxed) {
            world.count("replies lost");
            continue;
        }
        let way = Way { connection_kind: wire.connection_kind, is_reply: true };
        drop(replies.send((tokio_time().after(world.way(way)), delivery)));
    }
}

async fn deliver(
    world: Arc<World>,
    life: Arc<Life>,
    mut arriving: mpsc::UnboundedReceiver<(Moment, Deliver)>,
) {
    while let Some((arrives, deliver)) = arriving.recv().await {
        life.until(arrives).await;
        world.in_any_order().await;
        deliver();
    }
}
