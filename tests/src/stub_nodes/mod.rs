//! Stub nodes in front of servers, which answer in their place what nodes of a cluster answer.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener as Listener;
use tokio::task::JoinSet;

use crate::dice::Dice;
use crate::port::Port;
use crate::server::Server;

mod answers;
mod carry;
mod disorder;
mod garble;
mod plan;

pub use answers::{Answer, Cue, Hold, Host};
use disorder::Draw;
pub use disorder::{Disorder, Share};
pub use garble::Garble;
use plan::{Kind, Plan};

/// Stub nodes in front of servers of which each has all slots: so which node has a slot, and what a node answers, is
/// up to the test.
///
/// A stub node sends a command that is about another stub node's slot there, by `MOVED`, unless `ASKING` came before it,
/// and says in `CLUSTER SLOTS` which stub node has which slots. It passes everything else on, but for the commands for
/// which the test has another [`Answer`]. Commands of a connection are answered in their order.
///
/// The stub nodes are tasks of the runtime that they are opened on, and close with it, or when this is dropped. They speak
/// plain RESP.
#[derive(Debug)]
pub struct StubNodes {
    plan: SharedPlan,
    ports: Vec<Port>,
    /// Dropped, it ends them.
    _serving: JoinSet<()>,
}

type SharedPlan = Arc<Mutex<Plan>>;

/// One stub node.
#[derive(Clone, Debug)]
struct StubNode {
    number: usize,
    server: SocketAddr,
    plan: SharedPlan,
}

impl StubNodes {
    /// Opens a stub node in front of each server. The first has all slots but the last one of each other.
    pub fn open<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Self {
        let servers: Vec<_> = servers.into_iter().map(Server::addr).collect();
        let ports: Vec<_> = servers.iter().map(|_| Port::reserve()).collect();
        let addrs = ports.iter().map(Port::addr).collect();
        let plan = Arc::new(Mutex::new(Plan::new(addrs)));
        let mut serving = JoinSet::new();
        for (number, (port, server)) in ports.iter().zip(servers).enumerate() {
            let listener = TcpListener::bind(port.addr()).expect("the port is reserved");
            listener.set_nonblocking(true).expect("every socket has this option");
            let listener = Listener::from_std(listener).expect("there is a runtime");
            let stub_node = StubNode { number, server, plan: Arc::clone(&plan) };
            serving.spawn(stub_node.serve(listener));
        }
        Self { plan, ports, _serving: serving }
    }

    /// Opens a stub node that answers `CROSSSLOT` to a command about keys of several slots, and passes all else on,
    /// as some proxies do in front of a cluster.
    pub fn of_one_slot_each(server: &Server) -> Self {
        Self::open_as(Kind::OneSlotEach, server)
    }

    /// Opens a stub node that passes everything on, unless the test says otherwise.
    pub fn before(server: &Server) -> Self {
        Self::open_as(Kind::Server, server)
    }

    fn open_as(kind: Kind, server: &Server) -> Self {
        let stub_nodes = Self::open([server]);
        stub_nodes.plan().kind = kind;
        stub_nodes
    }

    /// The URL of the cluster, with all stub nodes as seeds.
    pub fn url(&self) -> String {
        let addrs: Vec<_> = self.ports.iter().map(|port| port.addr().to_string()).collect();
        format!("redis-cluster://{}", addrs.join(","))
    }

    /// The URL of a stub node as a server by itself.
    pub fn url_of(&self, stub_node: usize) -> String {
        format!("redis://{}", self.addr(stub_node))
    }

    /// Where a stub node is.
    pub fn addr(&self, stub_node: usize) -> SocketAddr {
        self.ports[stub_node].addr()
    }

    /// These slots are at this stub node from now on.
    pub fn assign(&self, slots: impl IntoIterator<Item = u16>, stub_node: usize) {
        let mut plan = self.plan();
        slots.into_iter().for_each(|slot| plan.owners[usize::from(slot)] = stub_node);
    }

    /// How the stub nodes name themselves in `CLUSTER SLOTS` and `MOVED` from now on.
    pub fn name_hosts(&self, host: Host) {
        self.plan().host = host;
    }

    /// Whether a stub node takes commands of other stub nodes' slots behind `ASKING`, as it does unless this is called.
    pub fn take_asking(&self, stub_node: usize, takes: bool) {
        let mut plan = self.plan();
        plan.importing.retain(|other| *other != stub_node);
        if takes {
            plan.importing.push(stub_node);
        }
    }

    /// The stub node answers this to the next commands of this cue, as often as the cue says, from the latest that the
    /// test has asked for on.
    pub fn answer(&self, stub_node: usize, cue: Cue, answer: Answer) {
        self.plan().scenes.insert(0, (stub_node, cue, answer));
    }

    /// Takes the latest such answer back.
    pub fn take_back(&self) {
        self.plan().scenes.remove(0);
    }

    /// Garbles a share of the replies and messages from now on, as the seed says: in one of these ways.
    pub fn garble(&self, seed: u64, share: Share, kinds: &[Disorder]) {
        let (dice, kinds) = (Dice::new(seed), kinds.to_vec());
        self.plan().draw = Some(Draw { dice, kinds, share, garbled: Vec::new() });
    }

    /// Ends that; gives what was garbled, and in which ways.
    pub fn end_garbling(&self) -> Vec<Disorder> {
        self.plan().draw.take().map(|draw| draw.garbled).unwrap_or_default()
    }

    /// Forgets what the test has asked for, and what has come.
    pub fn reset(&self) {
        self.plan().reset();
    }

    /// How many such commands have come to a stub node, the number that the cue says aside.
    pub fn count(&self, stub_node: usize, cue: &Cue) -> usize {
        let plan = self.plan();
        plan.seen.iter().filter(|(of, command)| *of == stub_node && cue.is_of(command)).count()
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        locked(&self.plan)
    }
}

fn locked(plan: &SharedPlan) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}
