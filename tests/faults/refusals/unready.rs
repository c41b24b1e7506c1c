//! Servers that cannot have locks, or not now: each is named by its cause, in every shape of a function,
//! and nothing is left there.

mod servers;

use std::thread;

use lockable_runtime::__internals::fence_counter;
use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Server, ServerBuilder, cluster, wait};
use tracing::Level;

use self::servers::{
    Unready, busy, clusterdown, loaded, loading, loading_server, misconf, replica, run_for_ever,
    sentinel, set_at_start, without,
};
use crate::events;
use crate::runtimes::one_thread;
use crate::support::{KEY, LIMIT, Runs, acl_rights, connect, patient};

/// A server in a state in which no lock can be acquired there.
struct State {
    name: &'static str,
    /// What the message says.
    words: &'static [&'static str],
    is_refused: bool,
    start: fn() -> Unready,
}

const STATES: [State; 11] = [
    refused("sentinel", &["this is a Sentinel", "write `redis-sentinel://"], sentinel),
    refused("shard", &["one node of a cluster of 2 shards", "write `redis-cluster://"], || {
        Unready::for_good(cluster::start(&Server::builder(), 2))
    }),
    refused("eval", &["'EVAL'", "released safely"], || without("EVAL")),
    refused("evalsha", &["'EVALSHA'", "released safely"], || without("EVALSHA")),
    refused("replica", &["this server is a replica", "redis://127.0.0.1:1/0"], replica),
    passing("loading", &["LOADING", "loads its data"], loading),
    passing("busy", &["BUSY", "SCRIPT KILL"], busy),
    passing("noreplicas", &["NOREPLICAS", "min-replicas-to-write"], || {
        set_at_start("min-replicas-to-write", "1", "0")
    }),
    passing("misconf", &["MISCONF", "cannot save"], misconf),
    passing("clusterdown", &["CLUSTERDOWN", "too few nodes of the cluster agree"], clusterdown),
    passing("oom", &["OOM", "maxmemory"], || set_at_start("maxmemory", "1", "0")),
];

const fn refused(
    name: &'static str,
    words: &'static [&'static str],
    start: fn() -> Unready,
) -> State {
    State { name, words, is_refused: true, start }
}

const fn passing(
    name: &'static str,
    words: &'static [&'static str],
    start: fn() -> Unready,
) -> State {
    State { name, words, is_refused: false, start }
}

#[test]
fn a_server_that_cannot_lock_is_never_busy() {
    events::listen();
    let failed: Vec<_> = thread::scope(|scope| {
        let run = |state: &'static State| (state.name, scope.spawn(|| state.try_all_shapes()));
        let running: Vec<_> = STATES.iter().map(run).collect();
        let ended = running.into_iter().map(|(name, thread)| (name, thread.join()));
        ended.filter_map(|(name, outcome)| outcome.is_err().then_some(name)).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
}

impl State {
    fn try_all_shapes(&self) {
        let unready = (self.start)();
        let server = &unready.servers[0];
        let locks = patient(&server.url()).connect_lazy().unwrap();
        let call =
            Call { locks: &locks, name: self.name, runs: Runs::default(), busy: Runs::default() };
        call.all(self);
        if let Some(mend) = unready.mend {
            mend(server);
            let key = one_thread().block_on(async_result(&call)).unwrap();
            assert_eq!((key, call.runs.count()), (format!("disLock:unready:{}", self.name), 1));
            assert_eq!(
                server.admin().keys("*ock*"),
                [fence_counter(&format!("disLock:unready:{}", self.name)).unwrap()]
            );
        } else if self.name != "sentinel" {
            for server in &unready.servers {
                assert_eq!(server.admin().keys("*"), [""; 0], "{}", self.name);
            }
        }
    }

    fn judge(&self, error: &LockError) {
        let text = error.to_string();
        assert!(error.is_unavailable() && error.is_refused() == self.is_refused, "{error:?}");
        assert!(self.words.iter().all(|words| text.contains(words)), "{text}");
        assert!(!text.contains("another holder"), "{text}");
    }
}

/// What the functions need, and what they do.
struct Call<'a> {
    locks: &'a Locker,
    name: &'static str,
    runs: Runs,
    busy: Runs,
}

/// The same functions, async or not.
macro_rules! shapes {
    ($($asyncness:ident)?: $unit:ident, $unit_skips:ident, $option:ident, $result:ident, $result_skips:ident) => {
        #[distributed_lock(key("unready:{}", call.name), locker = call.locks, on_busy = call.busy.add())]
        $($asyncness)? fn $unit(call: &Call<'_>) {
            call.runs.add();
        }

        #[distributed_lock(key("unready:{}", call.name), locker = call.locks, on_busy = skip)]
        $($asyncness)? fn $unit_skips(call: &Call<'_>) {
            call.runs.add();
        }

        #[distributed_lock(
            key("unready:{}", call.name),
            locker = call.locks,
            on_busy = { call.busy.add(); None }
        )]
        $($asyncness)? fn $option(call: &Call<'_>) -> Option<()> {
            call.runs.add();
            Some(())
        }

        #[distributed_lock(
            key("unready:{}", call.name),
            locker = call.locks,
            on_busy = { call.busy.add(); Ok(String::new()) },
            guard = lock
        )]
        $($asyncness)? fn $result(call: &Call<'_>) -> Result<String, LockError> {
            call.runs.add();
            Ok(lock.key().to_string())
        }

        #[distributed_lock(key("unready:{}", call.name), locker = call.locks, on_busy = skip)]
        $($asyncness)? fn $result_skips(call: &Call<'_>) -> Result<(), LockError> {
            call.runs.add();
            Ok(())
        }
    };
}

shapes!(async: async_unit, async_unit_skips, async_option, async_result, async_result_skips);
shapes!(: unit, unit_skips, option, result, result_skips);

impl Call<'_> {
    /// Every shape twice: what the first call left behind would make the second one find it.
    fn all(&self, state: &State) {
        let runtime = one_thread();
        for round in 1..=2 {
            runtime.block_on(self.all_async(state));
            unit(self);
            unit_skips(self);
            assert_eq!(option(self), None);
            state.judge(&result(self).unwrap_err());
            state.judge(&result_skips(self).unwrap_err());
            assert_eq!((self.runs.count(), self.busy.count()), (0, 0), "{}", self.name);
            let logged = events::about(&format!("disLock:unready:{}", self.name));
            let errors = logged.iter().filter(|logged| logged.level == Level::ERROR).count();
            assert_eq!(errors, 6 * round, "{logged:#?}");
            assert!(
                !logged.iter().any(|logged| logged.fields.contains("another holder")),
                "{logged:#?}"
            );
        }
    }

    async fn all_async(&self, state: &State) {
        async_unit(self).await;
        async_unit_skips(self).await;
        assert_eq!(async_option(self).await, None);
        state.judge(&async_result(self).await.unwrap_err());
        state.judge(&async_result_skips(self).await.unwrap_err());
    }
}

/// Goal: a server that was loading when it was connected to does not get whole scripts for ever.
#[tokio::test]
async fn a_connection_to_a_loading_server_is_retired() {
    let server = loading_server();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_unavailable());
    loaded(&server);
    pair_by_names(&server, &locker).await;
}

#[tokio::test]
async fn a_server_out_of_memory_caches_the_scripts() {
    let server = Server::builder().config("maxmemory", "1").start();
    let locker = connect(&server.url()).await;
    server.admin().command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    pair_by_names(&server, &locker).await;
}

/// No script is sent whole.
async fn pair_by_names(server: &Server, locker: &Locker) {
    locker.lock("k").try_run(async {}).await.unwrap().unwrap();
    let admin = server.admin();
    admin.reset_statistics();
    locker.lock("other").run(async {}).await.unwrap();
    assert_eq!((admin.command_calls("eval"), admin.command_calls("evalsha")), (0, 2));
}

/// Goal: a user who may ask neither what the server is nor for its cluster is refused all the same.
/// Method: each connection tries keys of its own, so some lie with this node, whichever it is.
#[tokio::test]
async fn least_rights_suffice_to_refuse_one_node_of_several() {
    let rules = acl_rights().join(" ");
    let builder = Server::builder().user("app", &format!("on >secret {rules}"));
    for server in cluster::start(&builder, 2) {
        for _ in 0..8 {
            let url = server.url_with("app", "secret", 0);
            let error = Locker::connect(&url).await.unwrap_err();
            assert!(error.is_refused() && error.to_string().contains("cluster"), "{error}");
        }
        assert_eq!(server.admin().keys("*"), [""; 0]);
    }
}

#[tokio::test]
async fn a_cluster_of_one_shard_has_locks() {
    let servers = cluster::start(&Server::builder(), 1);
    connect(&servers[0].url()).await.lock("k").try_run(async {}).await.unwrap().unwrap();
}

/// A URL that names a database fails before the server is asked what it is.
#[tokio::test]
async fn a_server_without_databases_is_refused_in_words() {
    let started = |builder: ServerBuilder| builder.start();
    let cases = [
        (started(Server::builder().sentinel()), "Sentinel"),
        (started(Server::builder().config("cluster-enabled", "yes")), "database"),
    ];
    for (server, words) in cases {
        let error = Locker::connect(&format!("{}/3", server.url())).await.unwrap_err();
        assert!(error.is_refused() && error.to_string().contains(words), "{error}");
    }
    let server = Server::builder().config("busy-reply-threshold", "10").start();
    let script = run_for_ever(&server);
    let error = Locker::connect(&format!("{}/3", server.url())).await.unwrap_err();
    assert!(error.is_unavailable() && !error.is_refused(), "{error}");
    server.admin().command::<()>(&["SCRIPT", "KILL"]);
    script.join().unwrap();
}

/// Goal: a cluster that is given another shard while locks are in use is refused in words, too.
/// Method: the slot of a lock goes to a node that comes later.
#[tokio::test]
async fn a_server_without_its_slots_is_refused() {
    let one = cluster::start(&Server::builder(), 1).remove(0);
    let locker = connect(&one.url()).await;
    let other = Server::builder().config("cluster-enabled", "yes").start();
    let (admin, newcomer) = (one.admin(), other.admin());
    let (host, port) = (one.addr().ip().to_string(), one.addr().port().to_string());
    newcomer.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", "2"]);
    newcomer.command::<()>(&["CLUSTER", "MEET", &host, &port]);
    let id = newcomer.command::<String>(&["CLUSTER", "MYID"]);
    let knows = || admin.command::<String>(&["CLUSTER", "NODES"]).contains(&id);
    wait::until_async(LIMIT, async || knows()).await;
    let slot = admin.command::<u16>(&["CLUSTER", "KEYSLOT", KEY]).to_string();
    for admin in [&newcomer, &admin] {
        admin.command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("2 shards"), "{error}");
}
