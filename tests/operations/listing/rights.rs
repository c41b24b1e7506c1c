//! The rights of readers and operators, and what fails where one is missing.

use lockable_runtime::LockErrorKind;
use std::collections::BTreeSet;
use std::future::pending;

use lockable_runtime::admin::{Forced, Revoked};
use lockable_runtime::{LockError, Locker};
use lockable_tests::cluster::slot;
use lockable_tests::{Admin, Cluster, Server};

use crate::support::{LIMIT, LONG, builder, connect, until};

/// What can be looked at.
const LOOKS: [&str; 7] = ["clock", "count", "holder", "listening", "locks", "processes", "queue"];

/// What fails without a right.
fn without(right: &str) -> &'static [&'static str] {
    match right {
        "%R~disLock:*" | "+getrange" | "+pttl" | "+llen" => &["holder", "locks"],
        "%R~lockable:*" => &["holder", "listening", "locks", "queue"],
        "+scan" => &["locks"],
        "+lrange" => &["listening", "queue"],
        "+dbsize" => &["count"],
        "+time" => &["clock"],
        "+client|list" => &["processes"],
        "+pubsub|numsub" | "+pubsub|shardnumsub" => &["listening"],
        "+select" | "+cluster|slots" => &LOOKS,
        other => panic!("`{other}` is a right for nothing"),
    }
}

/// The documented line of that number, word by word, for a user of this name.
fn line(number: usize, user: &str) -> Vec<String> {
    let text = include_str!("../../../lockable-runtime/acl_operators.md");
    words_of(text, number, user)
}

/// The rights among the words of the app's line.
fn rights_of_app(number: usize) -> Vec<String> {
    let mut words = words_of(include_str!("../../../lockable-runtime/acl.md"), number, "app");
    words.retain(|word| is_right(word));
    words
}

fn words_of(text: &str, number: usize, user: &str) -> Vec<String> {
    let line = text.lines().filter(|line| line.starts_with("ACL SETUSER ")).nth(number).unwrap();
    let mut words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
    user.clone_into(&mut words[2]);
    words
}

fn is_right(word: &str) -> bool {
    word.starts_with(['+', '%', '~', '&'])
}

fn set(admin: &Admin, line: &[String]) {
    admin.command::<()>(&line.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A lock `k` that is held, and waited for.
async fn busy(url: &str) -> (Locker, tokio::task::JoinHandle<Result<(), LockError>>) {
    let holder = connect(url).await;
    let call = tokio::spawn(holder.lock("k").renew().run(pending()));
    until(async || holder.inspect("k").await.unwrap().is_some()).await;
    let waits = connect(url).await;
    drop(tokio::spawn(waits.lock("k").wait(LONG).run(pending::<()>())));
    until(async || holder.admin().queue("k").await.unwrap().len() == 1).await;
    (holder, call)
}

/// What fails of all that a user can look at.
async fn failures(url: &str) -> BTreeSet<&'static str> {
    let admin = builder(url).connect_lazy().unwrap().admin();
    let queue = admin.queue("k").await;
    let listens = queue.as_ref().is_ok_and(|queue| queue[0].is_listening() == Some(true));
    let looks: [(_, Option<LockError>); 6] = [
        ("clock", admin.clock_difference().await.err()),
        ("count", admin.count().await.err()),
        ("holder", admin.holder("k").await.err()),
        ("locks", admin.locks().next().await.unwrap().err()),
        ("processes", admin.processes().await.err()),
        ("queue", queue.err()),
    ];
    let failed = looks.into_iter().filter_map(|(name, error)| {
        if let Some(error) = &error {
            assert!(error.kind() == LockErrorKind::Refused, "{name}: {error:?}");
            let shown = error.to_string();
            // A user who cannot connect at all needs other advice.
            let connects = !["'select'", "'cluster|slots'"].iter().any(|it| shown.contains(it));
            let is_advised = shown.contains("who looks at locks needs `%R~disLock:* ");
            assert!(is_advised || !connects, "{shown}");
        }
        error.map(|_| name)
    });
    failed.chain((!listens).then_some("listening")).collect()
}

/// Takes each of these rights away from the user of a line, one at a time.
async fn each_is_needed(
    whole: &[String],
    is_tried: impl Fn(&str) -> bool,
    set: impl Fn(&[String]),
    url: &str,
) {
    for right in whole.iter().filter(|word| is_right(word) && is_tried(word)) {
        let line: Vec<_> = whole.iter().filter(|word| *word != right).cloned().collect();
        set(&line);
        let failed = failures(url).await;
        assert_eq!(failed, without(right).iter().copied().collect(), "{right}");
    }
}

#[tokio::test]
async fn each_right_of_a_reader_is_needed() {
    let server = Server::start();
    let (_holder, _call) = busy(&server.url_with("default", "", 1)).await;
    let admin = server.admin();
    set(&admin, &line(0, "reader"));
    let url = server.url_with("reader", "secret", 1);
    assert!(failures(&url).await.is_empty());
    // The client introduces itself, where a server lets it.
    let refused: Vec<Vec<redis::Value>> = admin.command(&["ACL", "LOG"]);
    let objects = refused.iter().map(|entry| redis::from_redis_value(entry[7].clone()).unwrap());
    let others: Vec<String> = objects.filter(|object| object != "client|setinfo").collect();
    assert_eq!(others, [""; 0], "nothing else is tried");
    let lock = Locker::connect(&url).await.unwrap_err();
    assert!(lock.kind() == LockErrorKind::Refused, "a reader cannot lock: {lock}");
    let url = server.url_with("poor", "secret", 1);
    each_is_needed(&line(0, "poor"), |_| true, |line| set(&admin, line), &url).await;
}

#[tokio::test]
async fn each_right_of_a_reader_is_needed_in_a_cluster() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let (_holder, _call) = busy(&cluster.url()).await;
    let set = |line: &[String]| cluster.servers().for_each(|node| set(&node.admin(), line));
    set(&line(1, "reader"));
    assert!(failures(&cluster.url_with("reader", "secret")).await.is_empty());
    let url = cluster.url_with("poor", "secret");
    each_is_needed(&line(1, "poor"), |right| right != "+asking", set, &url).await;
    // The lock is at the other node already.
    let name = "disLock:k";
    let to = cluster.masters().find(|it| it.addr() != cluster.master_of(name).addr()).unwrap();
    cluster.begin_move(slot(name), to);
    assert!(cluster.move_key(name).unwrap());
    for (line_of, may_ask) in [(line(1, "reader"), true), (line(1, "poor"), false)] {
        let line: Vec<_> =
            line_of.iter().filter(|word| may_ask || *word != "+asking").cloned().collect();
        set(&line);
        let locker = builder(&cluster.url_with(&line[2], "secret"));
        let holder = locker.connect_lazy().unwrap().admin().holder("k").await;
        assert_eq!(holder.is_ok_and(|lock| lock.is_some()), may_ask);
    }
    cluster.end_move(slot(name)).unwrap();
}

/// Such a user may not ask for the size of the cluster: the keys of other nodes say what it is.
#[tokio::test]
async fn a_reader_of_one_node_is_refused_with_its_clusters_url() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let node = cluster.first_masters().next().unwrap();
    set(&node.admin(), &line(0, "reader"));
    let admin = builder(&node.url_with("reader", "secret", 0)).connect_lazy().unwrap().admin();
    let listed = admin.locks().next().await.unwrap().unwrap_err();
    for error in [listed, admin.holder("k").await.unwrap_err()] {
        let shown = error.to_string();
        assert!(
            error.kind() == LockErrorKind::Refused && shown.contains("one node of a cluster"),
            "{shown}"
        );
        assert!(shown.contains(&format!("write `redis-cluster://{}`", node.addr())), "{shown}");
    }
}

#[tokio::test]
async fn each_right_of_an_operator_is_needed() {
    let server = Server::start();
    let (_holder, call) = busy(&server.url_with("default", "", 1)).await;
    let admin = server.admin();
    let url = |user| server.url_with(user, "secret", 1);
    let app = rights_of_app(0);
    assert!(app.iter().all(|right| line(2, "operator").contains(right)));
    // The others are needed for locks: `tests/faults` takes each of them away.
    let is_more = |right: &str| app.iter().all(|it| it != right);
    each_is_needed(&line(2, "poor"), is_more, |line| set(&admin, line), &url("poor")).await;
    set(&admin, &line(2, "operator"));
    assert!(failures(&url("operator")).await.is_empty());
    operates(&url("operator"), call).await;
}

#[tokio::test]
async fn an_operator_of_a_cluster_can_do_everything() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let (_holder, call) = busy(&cluster.url()).await;
    assert!(rights_of_app(2).iter().all(|right| line(3, "operator").contains(right)));
    for node in cluster.servers() {
        set(&node.admin(), &line(3, "operator"));
    }
    assert!(failures(&cluster.url_with("operator", "secret")).await.is_empty());
    operates(&cluster.url_with("operator", "secret"), call).await;
}

/// Asks the holder to stop, and takes the lock away from the next one.
async fn operates(url: &str, call: tokio::task::JoinHandle<Result<(), LockError>>) {
    let admin = connect(url).await.admin();
    let asked = async || {
        let held = admin.holder("k").await.unwrap().unwrap();
        // Its process listens a second after it has the lock.
        matches!(admin.revoke(&held, "tried", LIMIT).await.unwrap(), Revoked::Released { .. })
    };
    until(asked).await;
    assert!(call.await.unwrap().unwrap_err().is_revoked());
    until(async || admin.holder("k").await.unwrap().is_some()).await;
    let held = admin.holder("k").await.unwrap().unwrap();
    assert_eq!(admin.force_release(&held, "tried").await.unwrap(), Forced::Released);
}
