//! Servers in every state in which they cannot have locks.

use std::fs;
use std::path::Path;
use std::thread::{self, JoinHandle};

use lockable_tests::{Server, cluster, wait};

use crate::support::LIMIT;

/// The servers, and what ends their state; it stays for good where nothing does.
pub(super) struct Unready {
    pub(super) servers: Vec<Server>,
    pub(super) mend: Option<Mend>,
}

type Mend = Box<dyn FnOnce(&Server)>;

impl Unready {
    fn for_good(servers: Vec<Server>) -> Self {
        Self { servers, mend: None }
    }

    fn until(server: Server, mend: impl FnOnce(&Server) + 'static) -> Self {
        Self { servers: vec![server], mend: Some(Box::new(mend)) }
    }
}

pub(super) fn sentinel() -> Unready {
    Unready::for_good(vec![Server::builder().sentinel().start()])
}

pub(super) fn node() -> Unready {
    Unready::for_good(cluster::start(&Server::builder(), 2))
}

/// A server whose operator has taken a command away.
pub(super) fn without(command: &str) -> Unready {
    let name = format!("{command} \"\"");
    Unready::for_good(vec![Server::builder().config("rename-command", &name).start()])
}

/// A server with a setting that keeps locks from being acquired, until it is set to something else.
pub(super) fn set_at_start(name: &'static str, value: &str, mended: &'static str) -> Unready {
    let server = Server::builder().config(name, value).start();
    Unready::until(server, move |server| {
        server.admin().command::<()>(&["CONFIG", "SET", name, mended]);
    })
}

pub(super) fn loading() -> Unready {
    let server = loading_server();
    Unready::until(server, loaded)
}

/// A server that takes its time for each of many keys, and answers between them.
pub(super) fn loading_server() -> Server {
    let plain = Server::builder().config("rdbcompression", "no").config("key-load-delay", "10000");
    let server = plain.config("loading-process-events-interval-bytes", "1024").start();
    let admin = server.admin();
    let fill = "for n = 1, 5000 do redis.call('SET', 'filler:' .. n, string.rep('x', 1100)) end";
    admin.command::<()>(&["EVAL", fill, "0"]);
    admin.command::<()>(&["SAVE"]);
    server.restart();
    assert!(server.admin().info("persistence").contains("\nloading:1"), "there was time to load");
    server
}

pub(super) fn loaded(server: &Server) {
    let admin = server.admin();
    admin.command::<()>(&["CONFIG", "SET", "key-load-delay", "0"]);
    wait::until(LIMIT, || admin.info("persistence").contains("\nloading:0"));
}

/// While a script runs too long the server answers with refusals only.
pub(super) fn busy() -> Unready {
    let server = Server::builder().config("busy-reply-threshold", "10").start();
    let script = run_for_ever(&server);
    Unready::until(server, move |server| {
        server.admin().command::<()>(&["SCRIPT", "KILL"]);
        script.join().unwrap();
    })
}

pub(crate) fn run_for_ever(server: &Server) -> JoinHandle<()> {
    let (admin, caller) = (server.admin(), server.admin());
    let script =
        thread::spawn(move || drop(caller.try_command(&["EVAL", "while true do end", "0"])));
    wait::until(LIMIT, || {
        admin.try_command(&["PING"]).is_err_and(|error| error.code() == Some("BUSY"))
    });
    script
}

/// A replica that takes writes, while its primary is away.
pub(super) fn replica() -> Unready {
    let replica = Server::builder().config("replica-read-only", "no");
    let server = replica.config("replica-serve-stale-data", "no").start();
    server.admin().command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    Unready::until(server, |server| server.admin().promote())
}

/// A server that finds a directory where it is to save its data.
pub(super) fn misconf() -> Unready {
    let server = saving();
    fail_to_save(&server);
    Unready::until(server, |server| {
        server.admin().command::<()>(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    })
}

/// A server that may save its data.
pub(in crate::refusals) fn saving() -> Server {
    Server::builder().config("save", "3600 1000000").start()
}

/// From now on it refuses writes.
pub(in crate::refusals) fn fail_to_save(server: &Server) {
    let admin = server.admin();
    let (_, directory) = admin.command::<(String, String)>(&["CONFIG", "GET", "dir"]);
    fs::create_dir(Path::new(&directory).join("dump.rdb")).unwrap();
    admin.command::<()>(&["BGSAVE"]);
    wait::until(LIMIT, || admin.info("persistence").contains("rdb_last_bgsave_status:err"));
}

/// A node that has no slots yet.
pub(super) fn clusterdown() -> Unready {
    let server = Server::builder().config("cluster-enabled", "yes").start();
    Unready::until(server, |server| {
        let admin = server.admin();
        admin.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        let is_up = || admin.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        wait::until(LIMIT, is_up);
    })
}
