//! A holder that is paused until its lease is over, and then continues as if nothing had been.

use lockable_tests::{Admin, Peer, Server};

use super::{assert_fenced, stored, texts, write};
use crate::support::{KEY, WORKER, connect_ample, freed};

#[tokio::test]
async fn a_holder_paused_past_its_lease_cannot_write() {
    let (_server, admin, late) = write_after_a_pause(&[]).await;
    assert!(late.reply.starts_with("FENCED"), "{}", late.reply);
    assert!(late.reply.contains(&late.token) && late.reply.contains(&late.newer), "{}", late.reply);
    assert_eq!(stored(&admin), texts("newer", &late.newer));
    assert_fenced(write(&admin, &late.token, "later"), &late.token, &late.newer);
}

/// The same goes wrong without the guard, so the other test proves something.
#[tokio::test]
async fn without_a_guard_the_late_write_is_taken() {
    let (_server, admin, late) = write_after_a_pause(&["--without-fence"]).await;
    assert_eq!(late.reply, "done");
    assert_eq!(stored(&admin), texts("late", &late.newer));
}

/// What the process that was paused has said.
struct Late {
    token: String,
    reply: String,
    /// The token of the one who wrote meanwhile.
    newer: String,
}

/// Goal: a write by a holder that does not know that its lease is over.
/// Method: another process holds the lock and is paused. The lease is ended at the server, and the test acquires and
/// writes. Only then the process continues, and gets the order to write.
async fn write_after_a_pause(more: &[&str]) -> (Server, Admin, Late) {
    let server = Server::start();
    let (admin, url) = (server.admin(), server.url());
    let arguments = [&["late_writer", &url, "k"], more].concat();
    let mut holder = Peer::start(WORKER, arguments);
    let token = holder.hear();
    holder.pause();
    assert!(admin.command::<bool>(&["PEXPIRE", KEY, "1"]));
    freed(&server).await;
    let next = connect_ample(&url).await.lock("k").acquire().await.unwrap();
    let newer = next.lease().fencing_token().to_string();
    assert!(newer.parse::<u64>().unwrap() > token.parse().unwrap(), "{newer} after {token}");
    write(&admin, &newer, "newer").unwrap();
    holder.resume();
    let reply = holder.ask("write");
    holder.finish();
    (server, admin, Late { token, reply, newer })
}
