//! A TCP proxy between a client and a server, which counts and which makes the network fail.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Handle};
use tokio::sync::watch;
use tokio::time;

use crate::port::Port;
use crate::server::Server;
use crate::wait;

mod addresses;
mod control;
mod pump;
pub(crate) mod traffic;

use control::{Control, Direction, Hold};
use traffic::{ConnectionTraffic, Traffic};

/// A proxy on a free port of 127.0.0.1, with a thread and a runtime of its own.
///
/// **Round trips.** A round trip starts with a command that comes from the client when every earlier
/// command of its connection has its reply; a reply is there as soon as the proxy passes it on.
/// So a pipeline is one round trip, however many segments carry it, and two tasks that share a
/// connection at the same moment share a round trip. Commands that subscribe are not waited for:
/// each of them is a round trip of its own.
///
/// **Commands.** Commands are counted when they come from the client, also when they are held back
/// then. Both counts need plain RESP; on a TLS connection they stay at zero.
///
/// **Faults.** A fault is on as soon as the call that asked for it returns. Connections that the
/// proxy accepts later are later connections. When the server cannot be reached, the proxy accepts
/// and closes at once.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Shared,
    handle: Handle,
    /// `None` after the drop has joined it.
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of a server's plain port.
    pub fn start(server: &Server) -> Self {
        Self::to(server.addr())
    }

    /// Starts a proxy in front of any address.
    pub fn to(upstream: SocketAddr) -> Self {
        let shared = Shared::default();
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be built");
        let handle = runtime.handle().clone();
        let listener = Listener { port: Port::reserve(), upstream, shared: shared.clone() };
        let addr = listener.port.addr();
        let thread = thread::Builder::new()
            .name("harness-proxy".to_owned())
            .spawn(move || runtime.block_on(listener.serve()))
            .expect("a thread can start");
        let proxy = Self { addr, shared, handle, thread: Some(thread) };
        proxy.wait_blocking(SWITCH_LIMIT, "the proxy listens", |traffic| traffic.is_listening);
        proxy
    }

    /// A proxy in front of each of these servers of a group. They name each other by the addresses of the proxies, so
    /// that a client which comes through one of them never leaves them.
    pub(crate) fn in_front_of(servers: impl Iterator<Item = SocketAddr>) -> Vec<Self> {
        let servers: Vec<_> = servers.collect();
        let proxies: Vec<_> = servers.iter().map(|server| Self::to(*server)).collect();
        let port = |addr: SocketAddr| addr.port().to_string();
        let pairs = servers.iter().zip(&proxies);
        let ports: Arc<[_]> =
            pairs.map(|(server, proxy)| (port(*server), port(proxy.addr()))).collect();
        for proxy in &proxies {
            proxy.shared.control.send_modify(|control| control.ports = Arc::clone(&ports));
        }
        proxies
    }

    /// Where the proxy listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The proxy's URL without a user, a password and a database.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// How many connections were accepted, all of which a hold or a cut of the open ones covers.
    pub fn accepted(&self) -> usize {
        self.shared.control.borrow().accepted
    }

    /// How many of them are open.
    pub fn open(&self) -> usize {
        let traffic = self.shared.traffic.borrow();
        traffic.connections.iter().filter(|connection| connection.is_open()).count()
    }

    /// How many round trips all connections took together.
    pub fn round_trips(&self) -> u64 {
        let traffic = self.shared.traffic.borrow();
        traffic.connections.iter().map(ConnectionTraffic::round_trips).sum()
    }

    /// How many commands of a name have come on all connections together.
    pub fn commands(&self, name: &str) -> u64 {
        self.shared.traffic.borrow().commands(name)
    }

    /// Reads the counters of one connection; the first one accepted is 0.
    pub fn connection<T>(&self, number: usize, read: impl FnOnce(&ConnectionTraffic) -> T) -> T {
        read(&self.shared.traffic.borrow().connections[number])
    }

    /// Holds back what clients send, on every connection there is and will be.
    ///
    /// A client that closes its side does not take back what it has sent: as in a slow network, it
    /// reaches the server when it is released.
    pub fn hold_requests(&self) {
        self.shared.control.send_modify(|control| control.requests = Hold::All);
    }

    /// Holds back what clients send on the connections that are open now; later ones pass freely.
    pub fn hold_open_requests(&self) {
        let below = |control: &mut Control| control.requests = Hold::Below(control.accepted);
        self.shared.control.send_modify(below);
    }

    /// Lets go what was held back of the clients' bytes, and holds back no more.
    pub fn release_requests(&self) {
        self.shared.control.send_modify(|control| control.requests = Hold::None);
    }

    /// Holds back what the server sends, on every connection there is and will be.
    pub fn hold_replies(&self) {
        self.shared.control.send_modify(|control| control.replies = Hold::All);
    }

    /// Holds back what the server sends on the connections that are open now.
    pub fn hold_open_replies(&self) {
        let below = |control: &mut Control| control.replies = Hold::Below(control.accepted);
        self.shared.control.send_modify(below);
    }

    /// Lets go what was held back of the server's bytes, and holds back no more.
    pub fn release_replies(&self) {
        self.shared.control.send_modify(|control| control.replies = Hold::None);
    }

    /// Holds back what the server sends on connections that have subscribed, now or later.
    pub fn hold_messages(&self) {
        self.hold_answers_to("SUBSCRIBE");
    }

    /// Lets go what was held back of the messages, and holds back no more.
    pub fn release_messages(&self) {
        self.release_answers();
    }

    /// Holds back what the server sends on connections on which a command of this name has come, now or later:
    /// the answer to it, and all that follows.
    pub fn hold_answers_to(&self, command: &'static str) {
        self.shared.control.send_modify(|control| control.answers_to = Some(command));
    }

    /// Lets go what was held back of those answers, and holds back no more.
    pub fn release_answers(&self) {
        self.shared.control.send_modify(|control| control.answers_to = None);
    }

    /// Closes the open connections on both sides; what was held back on them is lost.
    pub fn cut(&self) {
        self.shared.control.send_modify(|control| control.cut_below = control.accepted);
        let below = self.shared.control.borrow().cut_below;
        self.wait_blocking(SWITCH_LIMIT, "the connections are cut", move |traffic| {
            traffic.connections[..below].iter().all(|connection| !connection.is_open())
        });
    }

    /// Closes the open connections towards the client alone.
    ///
    /// The client finds its connection gone, while requests that are held back still reach the
    /// server when they are released.
    pub fn hang_up(&self) {
        self.shared.control.send_modify(|control| control.hung_up_below = control.accepted);
    }

    /// Ends the open connections towards the client in the middle of what the server sends next.
    pub fn cut_off(&self) {
        self.shared.control.send_modify(|control| control.cut_off_below = control.accepted);
    }

    /// Refuses new connections, as a machine without a server does. Open ones continue.
    pub fn refuse(&self) {
        self.shared.control.send_modify(|control| control.is_refusing = true);
        self.wait_blocking(SWITCH_LIMIT, "the proxy refuses", |traffic| !traffic.is_listening);
        // A process that is being started has a copy of the socket until it runs its program.
        wait::until(SWITCH_LIMIT, || std::net::TcpStream::connect(self.addr()).is_err());
    }

    /// Accepts new connections and closes them at once, as a machine does whose server is down
    /// behind a balancer. They count as accepted; open ones continue.
    pub fn turn_away(&self) {
        self.shared.control.send_modify(|control| control.is_turning_away = true);
    }

    /// Adds a latency in both directions. Zero ends it.
    ///
    /// The bandwidth stays as it is.
    pub fn delay(&self, delay: Duration) {
        self.shared.control.send_modify(|control| control.delay = delay);
    }

    /// Accepts new connections again.
    pub fn accept(&self) {
        self.shared.control.send_modify(|control| {
            control.is_refusing = false;
            control.is_turning_away = false;
        });
        self.wait_blocking(SWITCH_LIMIT, "the proxy listens", |traffic| traffic.is_listening);
    }

    /// Sends later connections to another server, as an address does that moves in a failover. Open
    /// ones continue with theirs.
    pub fn redirect(&self, server: &Server) {
        self.shared.control.send_modify(|control| control.upstream = Some(server.addr()));
    }

    /// Makes the replica of a server the primary, and the server its replica, behind this address.
    pub fn fail_over(&self, old: &Server, new: &Server) {
        // What the replica has not received yet would be lost.
        old.admin().wait_for_replica();
        self.redirect(new);
        new.admin().promote();
        old.admin().follow(new.addr());
    }

    /// Passes commands of this name on under one that no server knows, so that the server refuses them
    /// and quotes their arguments; `None` ends it.
    pub fn misspell(&self, command: Option<&'static str>) {
        self.shared.control.send_modify(|control| control.misspelt = command);
    }

    /// Waits until a request is being held back.
    ///
    /// This and the other waits panic when `limit` has passed, in real time whatever tokio's clock
    /// says. They work from every runtime.
    ///
    /// # Cancel safety
    ///
    /// They change nothing, so they can be dropped at any point.
    pub async fn wait_held(&self, limit: Duration) {
        self.wait(limit, "a request is held back", |traffic| {
            traffic.holds_any(Direction::Requests)
        })
        .await;
    }

    /// Waits until a reply is being held back, so the server has run its command.
    pub async fn wait_reply_held(&self, limit: Duration) {
        self.wait(limit, "a reply is held back", |traffic| traffic.holds_any(Direction::Replies))
            .await;
    }

    /// Waits until `count` commands of a name have come, since the proxy's start.
    pub async fn wait_for_command(&self, name: &str, count: u64, limit: Duration) {
        let name = name.to_owned();
        let what = format!("{count} times {name}");
        self.wait(limit, &what, move |traffic| traffic.commands(&name) >= count).await;
    }

    /// [`wait_for_command`](Self::wait_for_command) for a test without a runtime.
    pub fn wait_for_command_blocking(&self, name: &str, count: u64, limit: Duration) {
        let name = name.to_owned();
        let what = format!("{count} times {name}");
        self.wait_blocking(limit, &what, move |traffic| traffic.commands(&name) >= count);
    }

    /// The wait itself runs on the proxy's runtime, whose clock is never paused.
    async fn wait(&self, limit: Duration, what: &str, condition: impl Condition) {
        let waiting = self.handle.spawn(self.shared.reaches(limit, condition));
        let is_reached = waiting.await.expect("the proxy outlives its waits");
        assert!(is_reached, "{}", self.missed(limit, what));
    }

    fn wait_blocking(&self, limit: Duration, what: &str, condition: impl Condition) {
        let (report, outcome) = channel();
        let waiting = self.shared.reaches(limit, condition);
        self.handle.spawn(async move { report.send(waiting.await) });
        let is_reached = outcome.recv().expect("the proxy outlives its waits");
        assert!(is_reached, "{}", self.missed(limit, what));
    }

    fn missed(&self, limit: Duration, what: &str) -> String {
        let traffic = self.shared.traffic.borrow();
        format!("not within {limit:?}: {what}; passed so far: {traffic:#?}")
    }
}

impl Drop for Proxy {
    /// Ends the runtime with its thread, and so closes every connection.
    fn drop(&mut self) {
        self.shared.control.send_modify(|control| control.is_closed = true);
        let thread = self.thread.take().expect("it is joined once");
        let outcome = thread.join();
        assert!(outcome.is_ok() || thread::panicking(), "the proxy panicked");
    }
}

/// The task that accepts; the listening socket is there only while connections are welcome.
struct Listener {
    port: Port,
    upstream: SocketAddr,
    shared: Shared,
}

impl Listener {
    async fn serve(self) {
        let mut control = self.shared.control.subscribe();
        while self.may_listen(&mut control).await {
            let socket = TcpListener::bind(self.port.addr()).await;
            self.listen(socket.expect("the port is reserved"), &mut control).await;
        }
    }

    /// Waits until connections are welcome; `false` when the proxy is dropped first.
    async fn may_listen(&self, control: &mut watch::Receiver<Control>) -> bool {
        let wanted = control.wait_for(|control| control.is_closed || !control.is_refusing).await;
        !wanted.expect("the sender is shared with this task").is_closed
    }

    async fn listen(&self, socket: TcpListener, control: &mut watch::Receiver<Control>) {
        self.shared.traffic.send_modify(|traffic| traffic.is_listening = true);
        loop {
            tokio::select! {
                biased;
                _stop = control.wait_for(|control| control.is_closed || control.is_refusing) => break,
                accepted = socket.accept() => self.take(accepted),
            }
        }
        drop(socket);
        self.shared.traffic.send_modify(|traffic| traffic.is_listening = false);
    }

    /// The counters come before the number, so that every number below `accepted` has counters.
    fn take(&self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        let (client, _) = accepted.expect("a test has file descriptors left");
        self.shared.traffic.send_modify(|traffic| {
            traffic.connections.push(ConnectionTraffic::opened());
        });
        let (number, upstream) = {
            let control = self.shared.control.borrow();
            (control.accepted, control.upstream.unwrap_or(self.upstream))
        };
        self.shared.control.send_modify(|control| control.accepted += 1);
        tokio::spawn(pump::carry(client, upstream, number, self.shared.clone()));
    }
}

/// The test writes `control` and the connections read it; the connections write `traffic` and the
/// test reads it. Both can be waited on from any runtime.
#[derive(Clone, Debug, Default)]
struct Shared {
    control: Arc<watch::Sender<Control>>,
    traffic: Arc<watch::Sender<Traffic>>,
}

impl Shared {
    fn count(&self, number: usize, change: impl FnOnce(&mut ConnectionTraffic)) {
        self.traffic.send_modify(|traffic| change(&mut traffic.connections[number]));
    }

    /// Like [`count`](Self::count), for a change that may turn out to be none.
    fn count_if(&self, number: usize, change: impl FnOnce(&mut ConnectionTraffic) -> bool) {
        self.traffic.send_if_modified(|traffic| change(&mut traffic.connections[number]));
    }

    fn reaches(
        &self,
        limit: Duration,
        condition: impl Condition,
    ) -> impl Future<Output = bool> + Send + 'static {
        let mut traffic = self.traffic.subscribe();
        async move { time::timeout(limit, traffic.wait_for(condition)).await.is_ok() }
    }
}

/// What a wait waits for.
trait Condition: Fn(&Traffic) -> bool + Send + 'static {}

impl<F: Fn(&Traffic) -> bool + Send + 'static> Condition for F {}

/// How long the proxy's own thread may take for what a test asked of it.
const SWITCH_LIMIT: Duration = Duration::from_secs(10);
