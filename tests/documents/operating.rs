//! What the guide explains to the operators of a server.

use std::fs;
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Server, wait};
use tokio::task::JoinHandle;

use crate::{files, read, root};

const GUIDE: &str = "lockable-runtime/guide/operating.md";

const LIMIT: Duration = Duration::from_secs(60);

/// Goal: the guide explains every name in a server, and none lasts longer than it says.
/// Method: one process holds a lock and another one waits for it, which makes every name there is.
#[tokio::test]
async fn the_guide_lists_every_name_in_redis() {
    let server = Server::start();
    let admin = server.admin();
    let waited = Waited::start(&server).await;
    let (guide, mut keys) = (read(GUIDE), admin.keys("*"));
    let channels = admin.command::<Vec<String>>(&["PUBSUB", "CHANNELS"]);
    keys.sort();
    let names: Vec<_> = keys.iter().chain(&channels).map(|name| general(name)).collect();
    let all = [
        "<lock key>",
        "lockable:fence:{<three letters or digits>}",
        "lockable:queue:{<lock key>}",
        "lockable:grant:<16 hex digits>",
    ];
    assert_eq!(names, all);
    for name in names {
        let is_in_row = |row: &str| row.starts_with('|') && row.contains(&format!("`{name}` |"));
        assert!(guide.lines().any(is_in_row), "{name} is not in the table");
    }
    let lives: Vec<_> = keys.iter().map(|key| admin.pttl(key)).collect();
    for (life, most) in lives.iter().zip([10_000, 600_000, 30_000]) {
        assert!((1..=most).contains(life), "{keys:?} live for {lives:?}");
    }
    waited.end().await;
}

/// Goal: a page on what the log says that no event says any more.
#[test]
fn the_events_of_the_page_on_production_exist() {
    let code = files(&root().join("lockable-runtime/src"));
    let code = code.into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
    let code: Vec<_> = code.map(|path| fs::read_to_string(path).unwrap()).collect();
    let page = read("lockable-runtime/guide/production.md");
    let table = page.split("# What the log says").nth(1).unwrap();
    let table = table.split("# What errors say").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<_> = rows.filter(|event| *event != "the event says").collect();
    assert!(rows.len() > 10, "{rows:?}");
    for event in rows {
        let alternatives = event.split(", or: ").flat_map(|one| one.split(['…', ';', ':']));
        let parts = alternatives.map(str::trim).filter(|part| part.len() > 8);
        for part in parts {
            assert!(code.iter().any(|code| code.contains(part)), "no event says `{part}`");
        }
    }
}

/// A lock, and one who waits for it.
struct Waited {
    holder: LockGuard,
    waiter: JoinHandle<Result<LockGuard, LockError>>,
}

impl Waited {
    /// The lockers are two, as if they were two processes.
    async fn start(server: &Server) -> Self {
        let patient = || Locker::builder().command_deadline(LIMIT).connect_deadline(LIMIT);
        let connect = async || patient().url(server.url()).connect().await.unwrap();
        let (one, other) = (connect().await, connect().await);
        let holder = one.lock("order:7").acquire().await.unwrap();
        let waiter = tokio::spawn(other.lock("order:7").wait(LIMIT).acquire());
        let admin = server.admin();
        wait::until_async(LIMIT, async || !admin.keys("lockable:queue:*").is_empty()).await;
        Self { holder, waiter }
    }

    /// Releases the lock, which is handed off to the waiter, and then frees it.
    async fn end(self) {
        self.holder.release().await.unwrap();
        self.waiter.await.unwrap().unwrap().release().await.unwrap();
    }
}

/// The name with what differs from lock to lock, and from process to process, as the guide writes it.
fn general(name: &str) -> String {
    match name.strip_prefix("lockable:grant:") {
        Some(digits) if digits.len() == 16 => "lockable:grant:<16 hex digits>".to_owned(),
        _ => {
            let name = name.replace("{4EB}", "{<three letters or digits>}");
            name.replace("disLock:order:7", "<lock key>")
        }
    }
}
