//! What there is on servers alone: other programs' keys, connections that break, and names of connections.

use lockable_runtime::LockErrorKind;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use lockable_runtime::HolderKind;
use lockable_runtime::Locker;
use lockable_runtime::admin::{Forced, Process};
use lockable_tests::{Admin, ConnectionTraffic, Proxy, Sentinels, Server, clock, long_form};
use tokio::task::JoinSet;

use super::{all, names};
use crate::support::{LIMIT, LONG, builder, connect, start, statistic, until};

#[tokio::test]
async fn companion_keys_are_no_locks() {
    let server = Server::start();
    let locker = builder(&server.url()).prefix("").connect().await.unwrap();
    let _guard = locker.lock("a").acquire().await.unwrap();
    let admin = server.admin();
    admin.command::<()>(&["RPUSH", "lockable:queue:{a}", "1000 0123456789abcdef.1"]);
    assert_eq!(admin.keys("lockable:*").len(), 2);
    assert_eq!(names(&locker).await, ["a"]);
    // A prefix may begin as the namespace does.
    let near = builder(&server.url()).prefix("lockable:").connect().await.unwrap();
    let _other = near.lock("order:7").acquire().await.unwrap();
    assert_eq!(names(&near).await, ["order:7"]);
    assert_eq!(names(&locker).await, ["a", "lockable:order:7"]);
    let shop = builder(&server.url()).prefix("").namespace("shop");
    let listed = names(&shop.connect().await.unwrap()).await;
    assert_eq!(listed.len(), 5, "they are another namespace's: {listed:?}");
}

#[tokio::test]
async fn what_other_programs_wrote_is_listed_as_such() {
    let (_server, locker, admin) = start().await;
    admin.command::<()>(&["SET", "disLock:theirs", "8f14e45f", "PX", "60000"]);
    admin.command::<()>(&["RPUSH", "disLock:list", "1"]);
    admin.set("disLock:ours", "0123456789abcdef.7 wrong clock");
    admin.command::<()>(&["RPUSH", "lockable:queue:{disLock:list}", "x"]);
    admin.set("disLock:a}b", "no lock can have this key");
    admin.set("disLock:", "nor this one");
    let found = all(locker.admin().locks()).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["list", "ours", "theirs"]);
    let kinds = found.values().map(|lock| lock.holder().kind());
    let expected = [HolderKind::NoLock, HolderKind::Exclusive, HolderKind::Foreign];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    let old = found["ours"].holder();
    assert_eq!((old.process(), old.held_since()), ("012345".parse().ok(), None));
    assert_eq!((old.request_id(), old.remaining()), (Some("wrong clock"), None));
    assert!(found["theirs"].holder().remaining().is_some());
    assert_eq!(found["list"].queued(), 1);
    // Alone, it is no error either.
    let list = locker.admin().holder("list").await.unwrap().unwrap();
    assert_eq!(list.holder().kind(), HolderKind::NoLock);
    assert!(locker.inspect("list").await.unwrap_err().kind() == LockErrorKind::WrongType);
    let error = locker.admin().force_release(&list, "why").await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::WrongType && error.key() == Some("disLock:list"),
        "{error}"
    );
}

/// Goal: what has the prefix by chance costs the one who lists no memory, and any value can be taken away.
#[tokio::test]
async fn a_value_of_any_size_and_form_is_a_lock() {
    let (_server, locker, admin) = start().await;
    let operator = locker.admin();
    let long = "x".repeat(3_000_000);
    for key in ["disLock:long", "disLock:other"] {
        admin.set(key, &long);
    }
    let set = "redis.call('SET', 'disLock:bytes', '\\255\\254abc')";
    admin.command::<()>(&["EVAL", set, "0"]);
    admin.set("disLock:empty", "");
    let before = statistic(&admin, SENT);
    let found = all(operator.locks()).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["bytes", "empty", "long", "other"]);
    assert!(statistic(&admin, SENT) - before < 100_000);
    for (name, lock) in &found {
        assert_eq!(lock.holder().kind(), HolderKind::Foreign, "{name}");
        let alone = operator.holder(name).await.unwrap().unwrap().holder().id();
        assert_eq!(locker.inspect(name).await.unwrap().unwrap().id(), alone);
        // A listing reads the beginning, which says who it is.
        assert_eq!(alone, lock.holder().id(), "{name}");
    }
    for name in ["long", "bytes"] {
        let pause = operator.force_pause(&found[name], Duration::from_secs(60), "tried").await;
        assert_eq!(pause.unwrap_err().kind(), LockErrorKind::InvalidOption, "{name}");
    }
    let whole = operator.holder("long").await.unwrap().unwrap();
    admin.command::<()>(&["APPEND", "disLock:long", "x"]);
    assert_eq!(operator.force_release(&whole, "tried").await.unwrap(), Forced::Changed);
    admin.command::<()>(&["APPEND", "disLock:empty", "now"]);
    admin.set("disLock:other", "short");
    for (name, lock) in &found {
        let forced = operator.force_release(lock, "tried").await.unwrap();
        let is_same = ["bytes", "long"].contains(&name.as_str());
        let expected = if is_same { Forced::Released } else { Forced::Changed };
        assert_eq!(forced, expected, "{name}");
        assert_eq!(operator.holder(name).await.unwrap().is_none(), is_same, "{name}");
    }
}

/// Goal: a mark of ours is taken off no value of another library.
/// Method: each value gets a `+` in front of it before its lock is taken away, alone and with many others.
#[tokio::test]
async fn another_librarys_value_with_a_plus_is_another_value() {
    let (_server, locker, admin) = start().await;
    let operator = locker.admin();
    let names: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let set = |mark: &str| {
        for name in &names {
            admin.set(&format!("disLock:{name}"), &format!("{mark}abc"));
        }
    };
    set("");
    let found = all(operator.locks()).await;
    set("+");
    let paused = operator.force_pause(&found["0"], LONG, "tried").await.unwrap();
    assert_eq!(paused, Forced::Changed);
    let mut taking = JoinSet::new();
    for lock in found.into_values() {
        let operator = operator.clone();
        taking.spawn(async move { operator.force_release(&lock, "tried").await.unwrap() });
    }
    assert_eq!(taking.join_all().await, [Forced::Changed; 20]);
    assert_eq!(all(operator.locks()).await.len(), names.len());
}

/// The bytes that the server has sent to its clients.
const SENT: &str = "total_net_output_bytes";

#[tokio::test]
async fn an_entry_that_no_process_listens_to_says_so() {
    let (_server, locker, admin) = start().await;
    let queue = "lockable:queue:{disLock:a}";
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    let gone = format!("1000 0a1b2c0123456789.{now}0123456789 gone");
    admin.command::<()>(&["RPUSH", queue, &gone, "1000 fedcba9876543210.7", "else"]);
    let waiters = locker.admin().queue("a").await.unwrap();
    let [gone, old, other] = &waiters[..] else { panic!("{waiters:?}") };
    assert_eq!(gone.process().unwrap().to_string(), "0a1b2c");
    assert_eq!((gone.request_id(), gone.is_listening()), (Some("gone"), Some(false)));
    assert!(gone.waiting_since().is_some());
    assert_eq!((old.process(), old.is_listening()), ("fedcba".parse().ok(), Some(false)));
    assert_eq!((other.process(), other.is_listening()), (None, None));
    admin.command::<()>(&["DEL", queue]);
    admin.set(queue, "no queue");
    assert!(locker.admin().queue("a").await.is_err());
}

/// A cursor is good for one run of one server, so the listing begins again.
#[tokio::test]
async fn a_listing_survives_a_broken_connection() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let locker = connect(&proxy.url()).await;
    locks(&server.admin(), 3_000);
    let mut listing = locker.admin().locks().unthrottled();
    let mut found = Vec::new();
    while let Some(lock) = listing.next().await.transpose().unwrap() {
        if [500, 1_500].contains(&found.len()) {
            proxy.cut();
        }
        found.push(lock.name().to_owned());
    }
    assert!(proxy.accepted() >= 3);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 3_000);
    server.kill();
    let error = locker.admin().locks().next().await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

/// Makes that many locks of other processes.
pub(super) fn locks(admin: &Admin, count: usize) {
    let make = "for i = 1, ARGV[1] do redis.call('SET', 'disLock:order:' .. i, \
                '0123456789abcdef.1750000000000001', 'PX', 600000) end";
    admin.command::<()>(&["EVAL", make, "0", &count.to_string()]);
}

/// Method: the server is asked the same as the store in memory.
#[tokio::test]
async fn a_glob_means_the_same_on_a_server_and_in_memory() {
    let server = Server::start();
    let (locker, memory) = (connect(&server.url()).await, connect("memory://").await);
    let mut held = Vec::new();
    for name in ["ab", "a*b", "[x]", "x-y", "\\", "a\\b", "^", "]", "-", "aXbXc", "\u{e9}", "a?"] {
        held.push(locker.lock(name).acquire().await.unwrap());
        held.push(memory.lock(name).acquire().await.unwrap());
    }
    let written = r"* ** ? ?? ??? *b a*b* a\*b \\ \ [x] \[x] [[]x] [ [^ [] [^] *[ x[-]y [\]] [^a]* [a-c]?
        [c-a]? [a-]* [^a-x]* [\ a[*?]* *é ?é *X*X*";
    let mut globs: Vec<_> = written.split_whitespace().map(str::to_owned).collect();
    globs.push(String::new());
    // Some more that no one writes.
    let parts = ["a", "b", "*", "?", "[", "]", "^", "-", "\\", "x"];
    let mut number: usize = 7;
    for _ in 0..long_form(200, 10_000) {
        let length = 1 + number % 6;
        let part = |_| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            parts[(number >> 33) % parts.len()]
        };
        globs.push((0..length).map(part).collect());
    }
    for glob in globs {
        let listed =
            async |locker: &Locker| all(locker.admin().locks().unthrottled().matching(&glob)).await;
        let (there, here) = (listed(&locker).await, listed(&memory).await);
        assert!(there.keys().eq(here.keys()), "{glob:?}: {there:?} {here:?}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_an_error_in_time() {
    let server = Server::start();
    let hurried = Locker::builder().url(server.url()).command_deadline(Duration::from_millis(300));
    let admin = hurried.connect_lazy().unwrap().admin();
    // On a machine that stalls, no answer comes in time either.
    let answers = async || admin.holder("a").await.is_ok_and(|lock| lock.is_none());
    until(answers).await;
    server.pause();
    let asked = tokio::time::timeout(LIMIT, admin.holder("a"));
    assert!(asked.await.expect("it ends in time").unwrap_err().is_unavailable());
    server.resume();
    until(answers).await;
    until(async || admin.locks().next().await.is_none()).await;
}

#[tokio::test]
async fn the_difference_of_the_clocks_is_known() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let admin = connect(&server.url()).await.admin();
    let difference = async || admin.clock_difference().await.unwrap().unwrap();
    assert!(difference().await < LIMIT);
    let hour = Duration::from_secs(3_600);
    server.set_clock_back(hour);
    // Some servers read the clock once a second only.
    until(async || difference().await.abs_diff(hour) < LIMIT).await;
}

/// Goal: a new primary is listed from its start, because another's cursor means nothing to it.
#[tokio::test]
async fn a_listing_survives_a_failover() {
    let sentinels = Sentinels::start();
    let locker = connect(&sentinels.url()).await;
    assert_eq!(locker.admin().processes().await.unwrap().len(), 1);
    locks(&sentinels.primary().admin(), 2_000);
    sentinels.primary().admin().wait_for_replica();
    let mut listing = locker.admin().locks().unthrottled();
    let mut found = Vec::new();
    while let Some(lock) = listing.next().await.transpose().unwrap() {
        if found.len() == 500 {
            sentinels.fail_over();
        }
        found.push(lock.name().to_owned());
    }
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>().len(), 2_000);
}

#[tokio::test]
async fn each_connection_has_the_name_of_its_process() {
    let server = Server::start();
    let shop = builder(&server.url()).service_name("shop").connect().await.unwrap();
    let other = builder(&server.url()).service_name("cron").connect().await.unwrap();
    // A lease that is renewed has a connection of its own.
    let _guard = shop.lock("a").renew().acquire().await.unwrap();
    let renewed = async || shop.admin().processes().await.unwrap();
    until(async || renewed().await.iter().any(|process| process.connections() >= 2)).await;
    let processes = other.admin().processes().await.unwrap();
    let services: Vec<_> = processes.iter().map(Process::service).collect();
    assert_eq!(services, ["cron", "shop"]);
    assert_eq!(processes[0].id(), processes[1].id());
    assert!(processes[0].address().unwrap().starts_with("127.0.0.1:"));
    let list: String = server.admin().command(&["CLIENT", "LIST"]);
    let name = format!("name=lockable:{}:shop@", processes[1].id());
    assert!(list.matches(&name).count() >= 2, "{list}");
    drop(other);
    until(async || renewed().await.len() == 1).await;
}

/// The naming goes with the handshake.
#[tokio::test]
async fn a_name_costs_no_round_trip() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let _locker = connect(&proxy.url()).await;
    let (hellos, names) = (proxy.commands("HELLO"), proxy.commands("CLIENT"));
    assert!(hellos >= 1 && names >= 1, "{hellos} {names}");
    let trips = proxy.connection(0, ConnectionTraffic::round_trips);
    assert_eq!(trips, 3, "the handshake, and two for the probe of the server");
    server.admin().command::<()>(&["ACL", "SETUSER", "default", "-client|setname"]);
    let other = Proxy::start(&server);
    let locker = connect(&other.url()).await;
    let refused = other.connection(0, ConnectionTraffic::round_trips);
    assert_eq!(refused, trips, "a refusal costs none either");
    assert!(locker.admin().processes().await.unwrap().len() <= 1);
}
