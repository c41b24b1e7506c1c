//! Servers that share the keys among them, as the nodes of a cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::admin::Admin;
use crate::proxy::Proxy;
use crate::server::{Server, ServerBuilder, host};
use crate::shared::Shared;
use crate::wait;

mod builder;
mod failures;
mod members;
mod moves;
mod slots;
mod tool;
mod view;

pub use builder::ClusterBuilder;
pub use slots::{SLOTS, Shard, slot};
pub use tool::has_tool;

use view::{LIMIT, View};

/// Starts `shards` servers, each with its part of the slots; returns when all know of all.
pub fn start(builder: &ServerBuilder, shards: usize) -> Vec<Server> {
    let cluster = Cluster::builder().servers(builder.clone()).shards(shards).replicas(0).steady();
    cluster.start().nodes.into_iter().map(|node| node.server).collect()
}

/// Masters, each with its part of the slots, and their replicas, all on free ports of 127.0.0.1.
///
/// They end when this value is dropped, as every [`Server`] does.
#[derive(Debug)]
pub struct Cluster {
    /// Those that were masters at the start, then the replicas of each in turn, and then those that may join.
    nodes: Vec<Node>,
    shards: usize,
}

#[derive(Debug)]
struct Node {
    server: Server,
    /// Another one each time it joins.
    id: Mutex<String>,
    /// Whether the others know it.
    is_member: AtomicBool,
}

impl Cluster {
    /// Starts three masters and three replicas with nothing special about them.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Prepares servers with settings of their own.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// Three masters and three replicas that several tests of this process use at the same time, each for
    /// keys with a prefix of its own. No test may harm them.
    pub fn shared() -> Arc<Self> {
        static SHARED: Shared<Cluster> = Shared::unstarted();
        SHARED.get(|| Self::builder().steady().start())
    }

    /// The URL without a user and a password, with every node as a seed.
    pub fn url(&self) -> String {
        self.url_of(self.servers())
    }

    /// The same URL with a user and a password; the user may be empty.
    pub fn url_with(&self, user: &str, password: &str) -> String {
        self.url().replacen("://", &format!("://{user}:{password}@"), 1)
    }

    /// The URL without a user and a password, with these nodes as the seeds.
    pub fn url_of<'a>(&self, seeds: impl IntoIterator<Item = &'a Server>) -> String {
        self.url_to(seeds.into_iter().map(Server::service_host))
    }

    /// The same URL, with a proxy in front of each node that was there at the start as the seeds.
    pub fn url_through(&self, stub_nodes: &[Proxy]) -> String {
        let is_first = |(_, node): &(&Proxy, &Node)| node.is_member();
        let stub_nodes = stub_nodes.iter().zip(&self.nodes).filter(is_first);
        self.url_to(stub_nodes.map(|(stub_node, _)| host(stub_node.addr(), self.is_tls())))
    }

    fn url_to(&self, seeds: impl Iterator<Item = String>) -> String {
        let scheme = if self.is_tls() { "rediss-cluster" } else { "redis-cluster" };
        format!("{scheme}://{}", seeds.collect::<Vec<_>>().join(","))
    }

    fn is_tls(&self) -> bool {
        self.nodes[0].server.is_tls()
    }

    /// A proxy in front of each node, also of those that may join, for one client: it gets to all through them.
    pub fn stub_nodes(&self) -> Vec<Proxy> {
        Proxy::in_front_of(self.nodes.iter().map(|node| node.server.service_addr()))
    }

    /// All nodes: those that were masters at the start, then the replicas, and then one that has joined.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.members().map(|node| &node.server)
    }

    /// The nodes that were masters at the start, each with slots behind those of the one before.
    pub fn first_masters(&self) -> impl Iterator<Item = &Server> {
        self.servers().take(self.shards)
    }

    /// The nodes that run and are masters, as they say themselves.
    pub fn masters(&self) -> impl Iterator<Item = &Server> {
        let is_master = |server: &&Server| is_master(&server.admin());
        self.running().map(|node| &node.server).filter(is_master)
    }

    /// The master of a key's slot, when all nodes that answer name the same.
    ///
    /// The name is that in the server, with all prefixes.
    pub fn master_of(&self, name: &str) -> &Server {
        self.agreed(slot(name), |_| true)
    }

    /// A replica of the master of a key's slot that runs.
    pub fn replica_of(&self, name: &str) -> &Server {
        self.replica_of_node(self.node(self.master_of(name)))
    }

    /// The master of a key's slot, when all nodes that answer name another one than `before`.
    pub fn other_than(&self, name: &str, before: &Server) -> &Server {
        self.agreed(slot(name), |server| server.addr() != before.addr())
    }

    /// A name that begins like this and belongs to a slot of this master.
    pub fn name_at(&self, master: &Server, start: &str) -> String {
        let view = View::of(&master.admin());
        let id = self.node(master).id();
        let is_there = |name: &String| view.owner(slot(name)) == Some(&*id);
        let mut names = (0..).map(|number: u32| format!("{start}{number}"));
        names.find(is_there).expect("a master has slots")
    }

    /// Waits until all nodes that run know each other, have the same masters for all slots, and these have
    /// replicas which follow them.
    pub fn wait_until_healthy(&self) {
        let healthy = wait::poll(LIMIT, || self.flaw().is_none().then_some(()));
        assert!(healthy.is_some(), "{}", self.flaw().unwrap_or_default());
    }

    fn replica_of_node(&self, master: &Node) -> &Server {
        let replica = || {
            let view = View::of(&self.running().next()?.server.admin());
            self.running().find(|node| view.master_of(&node.id()) == Some(&*master.id()))
        };
        &wait::poll(LIMIT, replica).expect("the master has a replica").server
    }

    /// Waits until all nodes that answer name the same master of the slot, of which `condition` holds.
    fn agreed(&self, slot: u16, condition: impl Fn(&Server) -> bool) -> &Server {
        let named = || {
            let views: Vec<_> = self.running().map(|node| View::of(&node.server.admin())).collect();
            let mut owners = views.iter().map(|view| view.owner(slot));
            let first = owners.next()??;
            let all_agree = owners.all(|owner| owner == Some(first));
            let server = &self.nodes.iter().find(|node| node.id() == first)?.server;
            (all_agree && condition(server)).then_some(server)
        };
        wait::poll(LIMIT, named).unwrap_or_else(|| {
            let logs: Vec<_> = self.servers().map(Server::log).collect();
            panic!("the nodes do not agree on such a master:\n{}", logs.join("\n"))
        })
    }

    fn members(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_member())
    }

    fn running(&self) -> impl Iterator<Item = &Node> {
        self.members().filter(|node| node.server.is_running())
    }

    fn node(&self, server: &Server) -> &Node {
        let is_it = |node: &&Node| node.server.addr() == server.addr();
        self.nodes.iter().find(is_it).expect("the server is a node of this cluster")
    }

    /// `None` of one that shakes hands, whose name is not known yet, and of one that has left.
    fn member_of(&self, id: &str) -> Option<&Node> {
        self.members().find(|node| node.id() == id)
    }
}

/// Whether it takes itself for a master.
fn is_master(admin: &Admin) -> bool {
    admin.info("replication").contains("role:master")
}

impl Node {
    fn of(server: Server) -> Self {
        let node = Self { id: Mutex::default(), server, is_member: AtomicBool::new(true) };
        node.learn_id();
        node
    }

    fn learn_id(&self) {
        *self.id.lock().unwrap() = self.admin().command(&["CLUSTER", "MYID"]);
    }

    fn id(&self) -> String {
        self.id.lock().unwrap().clone()
    }

    fn is_member(&self) -> bool {
        self.is_member.load(Ordering::SeqCst)
    }

    fn admin(&self) -> Admin {
        self.server.admin()
    }
}
