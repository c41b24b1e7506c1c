//! A server that keeps a file of its writes, and starts again with all of them, or without the last ones.

use std::fs::{File, OpenOptions};
use std::path::Path;

use lockable_tests::{Admin, Server, wait};

use crate::support::{KEY, LIMIT, connect_ample};
use crate::waiting::support::{is_served_last, queued, waiter};

/// A lock that is renewed and one that is not stay with their holders, and so does the place of a waiter.
#[tokio::test]
async fn a_restart_with_all_data_costs_no_lock() {
    let server = append_only();
    let (locker, other) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    let renewed = locker.lock("renewed").renew().acquire().await.unwrap();
    let guard = locker.lock("k").acquire().await.unwrap();
    let waiter = waiter(&other);
    queued(&server, 1).await;
    let owners = |admin: &Admin| ["disLock:renewed", KEY].map(|key| admin.get(key));
    let before = owners(&server.admin());
    server.restart();
    let admin = server.admin();
    loaded(&admin).await;
    let left = admin.pttl("disLock:renewed");
    assert_eq!(owners(&admin), before);
    // The first call opens another connection, over which all leases are checked.
    assert!(other.lock("renewed").try_acquire().await.unwrap_err().is_busy());
    locker.lock("first").run(async {}).await.unwrap();
    wait::until_async(LIMIT, async || admin.pttl("disLock:renewed") > left).await;
    assert!(renewed.lease().is_held() && guard.lease().is_held());
    renewed.release().await.unwrap();
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

/// Goal: the holder of a lock that the file has not kept is stopped, and what it wrote can be told from what comes
/// later; other holders keep theirs.
/// Method: the server is killed, and its file cut off in the middle of the grant.
#[tokio::test]
async fn a_cut_file_stops_the_last_holder_and_tokens_rise() {
    let server = append_only();
    let locker = connect_ample(&server.url()).await;
    let kept = locker.lock("kept").renew().acquire().await.unwrap();
    let file = file_of(&server);
    let length = file.metadata().unwrap().len();
    let lost = locker.lock("k").renew().acquire().await.unwrap();
    server.kill();
    assert!(file.metadata().unwrap().len() > length + HALF_A_COMMAND);
    file.set_len(length + HALF_A_COMMAND).unwrap();
    server.restart();
    loaded(&server.admin()).await;
    let next = connect_ample(&server.url()).await.lock("k").acquire().await.unwrap();
    assert!(next.lease().fencing_token() > lost.lease().fencing_token());
    locker.lock("first").run(async {}).await.unwrap();
    assert!(wait::ends(lost.lease().lost()).await.is_lost());
    assert!(lost.release().await.unwrap_err().is_lost());
    next.release().await.unwrap();
    assert!(kept.lease().is_held());
    kept.release().await.unwrap();
}

/// A server that reads its file answers already.
async fn loaded(admin: &Admin) {
    let is_loaded = async || admin.info("persistence").contains("\r\nloading:0\r\n");
    wait::until_async(LIMIT, is_loaded).await;
}

/// As many bytes as a server that starts takes for a write that it did not finish.
const HALF_A_COMMAND: u64 = 10;

fn append_only() -> Server {
    Server::builder().config("appendonly", "yes").config("appendfsync", "always").start()
}

/// The file to which the server appends what it writes.
fn file_of(server: &Server) -> File {
    let (_, directory) = server.admin().command::<(String, String)>(&["CONFIG", "GET", "dir"]);
    let path = Path::new(&directory).join("appendonlydir/appendonly.aof.1.incr.aof");
    OpenOptions::new().write(true).open(path).unwrap()
}
