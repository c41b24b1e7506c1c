//! Doors in front of servers, which answer in their place what nodes of a cluster answer.

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

/// Doors in front of servers of which each has all slots: so which node has a slot, and what a node answers, is
/// up to the test.
///
/// A door sends a command that is about another door's slot there, by `MOVED`, unless `ASKING` came before it,
/// and says in `CLUSTER SLOTS` which door has which slots. It passes everything else on, but for the commands for
/// which the test has another [`Answer`]. Commands of a connection are answered in their order.
///
/// The doors are tasks of the runtime that they are opened on, and close with it, or when this is dropped. They speak
/// plain RESP.
#[derive(Debug)]
pub struct Doors {
    plan: SharedPlan,
    ports: Vec<Port>,
    /// Dropped, it ends them.
    _serving: JoinSet<()>,
}

type SharedPlan = Arc<Mutex<Plan>>;

/// One door.
#[derive(Clone, Debug)]
struct Door {
    number: usize,
    server: SocketAddr,
    plan: SharedPlan,
}

impl Doors {
    /// Opens a door in front of each server. The first has all slots but the last one of each other.
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
            let door = Door { number, server, plan: Arc::clone(&plan) };
            serving.spawn(door.serve(listener));
        }
        Self { plan, ports, _serving: serving }
    }

    /// Opens a door that answers `CROSSSLOT` to a command about keys of several slots, and passes all else on,
    /// as some proxies do in front of a cluster.
    pub fn of_one_slot_each(server: &Server) -> Self {
        Self::open_as(Kind::OneSlotEach, server)
    }

    /// Opens a door that passes everything on, unless the test says otherwise.
    pub fn before(server: &Server) -> Self {
        Self::open_as(Kind::Server, server)
    }

    fn open_as(kind: Kind, server: &Server) -> Self {
        let doors = Self::open([server]);
        doors.plan().kind = kind;
        doors
    }

    /// The URL of the cluster, with all doors as seeds.
    pub fn url(&self) -> String {
        let addrs: Vec<_> = self.ports.iter().map(|port| port.addr().to_string()).collect();
        format!("redis-cluster://{}", addrs.join(","))
    }

    /// The URL of a door as a server by itself.
    pub fn url_of(&self, door: usize) -> String {
        format!("redis://{}", self.addr(door))
    }

    /// Where a door is.
    pub fn addr(&self, door: usize) -> SocketAddr {
        self.ports[door].addr()
    }

    /// These slots are at this door from now on.
    pub fn assign(&self, slots: impl IntoIterator<Item = u16>, door: usize) {
        let mut plan = self.plan();
        slots.into_iter().for_each(|slot| plan.owners[usize::from(slot)] = door);
    }

    /// How the doors name themselves in `CLUSTER SLOTS` and `MOVED` from now on.
    pub fn name_hosts(&self, host: Host) {
        self.plan().host = host;
    }

    /// Whether a door takes commands of other doors' slots behind `ASKING`, as it does unless this is called.
    pub fn take_asking(&self, door: usize, takes: bool) {
        let mut plan = self.plan();
        plan.importing.retain(|other| *other != door);
        if takes {
            plan.importing.push(door);
        }
    }

    /// The door answers this to the next commands of this cue, as often as the cue says, from the latest that the
    /// test has asked for on.
    pub fn answer(&self, door: usize, cue: Cue, answer: Answer) {
        self.plan().scenes.insert(0, (door, cue, answer));
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

    /// How many such commands have come to a door, the number that the cue says aside.
    pub fn count(&self, door: usize, cue: &Cue) -> usize {
        let plan = self.plan();
        plan.seen.iter().filter(|(of, command)| *of == door && cue.is_of(command)).count()
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        locked(&self.plan)
    }
}

fn locked(plan: &SharedPlan) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}
