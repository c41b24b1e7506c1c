//! Servers that cannot have locks, or not now: each is named by its cause, in every shape of a function,
//! and nothing is left there.

mod servers;

use lockable_runtime::LockErrorKind;
use std::thread;

use lockable_runtime::__internals::fence_counter;
use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Server, cluster};
use tracing::Level;

pub(crate) use self::servers::run_for_ever;
use self::servers::{
    Unready, busy, clusterdown, loaded, loading, loading_server, misconf, node, replica, sentinel,
    set_at_start, without,
};
pub(super) use self::servers::{fail_to_save, saving};
use super::newcomer_to;
use crate::events;
use crate::runtimes::one_thread;
use crate::support::{KEY, Runs, acl_rights, ample, connect_ample};

/// A server in a state in which no lock can be acquired there.
struct State {
    name: &'static str,
    /// What the message says.
    words: &'static [&'static str],
    is_refused: bool,
    start: fn() -> Unready,
}

const STATES: [State; 10] = [
    state("sentinel", &["this is a Sentinel", "write `redis-sentinel://"], REFUSED, sentinel),
    state("node", &["one node of a cluster", "write `redis-cluster://"], REFUSED, node),
    state("eval", &["'EVAL'", "released safely"], REFUSED, || without("EVAL")),
    state("replica", &["this server is a replica", "redis://127.0.0.1:1/0"], REFUSED, replica),
    state("loading", &["LOADING", "loads its data"], PASSING, loading),
    state("busy", &["BUSY", "SCRIPT KILL"], PASSING, busy),
    state("noreplicas", &["NOREPLICAS", "min-replicas-to-write"], PASSING, || {
        set_at_start("min-replicas-to-write", "1", "0")
    }),
    state("misconf", &["MISCONF", "cannot save"], PASSING, misconf),
    state("clusterdown", &["CLUSTERDOWN", "few nodes of the cluster agree"], PASSING, clusterdown),
    state("oom", &["OOM", "maxmemory"], PASSING, || set_at_start("maxmemory", "1", "0")),
];

const fn state(
    name: &'static str,
    words: &'static [&'static str],
    is_refused: bool,
    start: fn() -> Unready,
) -> State {
    State { name, words, is_refused, start }
}

/// What does not pass by itself.
const REFUSED: bool = true;
const PASSING: bool = false;

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
        let locks = ample(&server.url()).connect_lazy().unwrap();
        let (runs, busy) = (Runs::default(), Runs::default());
        let call = Call { locks: &locks, name: self.name, runs, busy };
        call.all(self);
        if let Some(mend) = unready.mend {
            mend(server);
            let key = one_thread().block_on(async_result(&call)).unwrap();
            assert_eq!((&key, call.runs.count()), (&format!("disLock:unready:{}", self.name), 1));
            assert_eq!(server.admin().keys("*ock*"), [fence_counter(&key).unwrap()]);
        } else if self.name != "sentinel" {
            for server in &unready.servers {
                assert_eq!(server.admin().keys("*"), [""; 0], "{}", self.name);
            }
        }
    }

    fn judge(&self, error: &LockError) {
        let text = error.to_string();
        assert!(
            error.is_unavailable() && (error.kind() == LockErrorKind::Refused) == self.is_refused,
            "{error:?}"
        );
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
            let says_busy = logged.iter().any(|logged| logged.fields.contains("another holder"));
            assert!(!says_busy, "{logged:#?}");
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
    let locker = ample(&server.url()).connect_lazy().unwrap();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_unavailable());
    loaded(&server);
    pair_by_names(&server, &locker).await;
}

#[tokio::test]
async fn a_server_out_of_memory_caches_the_scripts() {
    let server = Server::builder().config("maxmemory", "1").start();
    let locker = connect_ample(&server.url()).await;
    server.admin().command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    pair_by_names(&server, &locker).await;
}

/// No script is sent whole.
async fn pair_by_names(server: &Server, locker: &Locker) {
    locker.lock("k").try_run(async {}).await.unwrap();
    let admin = server.admin();
    admin.reset_statistics();
    locker.lock("other").run(async {}).await.unwrap();
    assert_eq!((admin.command_calls("eval"), admin.command_calls("evalsha")), (0, 2));
}

/// Then the whole texts are sent.
#[tokio::test]
async fn a_server_without_names_of_scripts_has_locks() {
    let Unready { servers, .. } = without("EVALSHA");
    let locker = ample(&servers[0].url()).connect().await.unwrap();
    for _ in 0..2 {
        locker.lock("k").run(async {}).await.unwrap();
    }
    assert_eq!(servers[0].admin().keys("disLock:*"), [""; 0]);
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
            let error = ample(&url).connect().await.unwrap_err();
            assert!(
                error.kind() == LockErrorKind::Refused && error.to_string().contains("cluster"),
                "{error}"
            );
        }
        assert_eq!(server.admin().keys("*"), [""; 0]);
    }
}

/// A URL that names a database fails before the server is asked what it is.
#[tokio::test]
async fn a_server_without_databases_is_refused_in_words() {
    let sentinel = Server::builder().sentinel().start();
    let node = Server::builder().config("cluster-enabled", "yes").start();
    let refusal = async |server: &Server| {
        let url = format!("{}/3", server.url());
        ample(&url).connect().await.unwrap_err()
    };
    for (server, words) in [(&sentinel, "Sentinel"), (&node, "database")] {
        let error = refusal(server).await;
        assert!(
            error.kind() == LockErrorKind::Refused && error.to_string().contains(words),
            "{error}"
        );
    }
    let Unready { servers, mend } = busy();
    let error = refusal(&servers[0]).await;
    assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error}");
    mend.unwrap()(&servers[0]);
}

/// Goal: a cluster that is given another shard while locks are in use says so in words, too.
/// Method: the slot of a lock goes to a node that comes later.
#[tokio::test]
async fn a_server_without_its_slots_says_so() {
    let one = cluster::start(&Server::builder(), 1).remove(0);
    let locker = connect_ample(&one.url()).await;
    let other = newcomer_to(&one);
    let (admin, newcomer) = (one.admin(), other.admin());
    let id = newcomer.command::<String>(&["CLUSTER", "MYID"]);
    let slot = admin.command::<u16>(&["CLUSTER", "KEYSLOT", KEY]).to_string();
    for admin in [&newcomer, &admin] {
        admin.command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("`redis-cluster://"), "{error}");
}
