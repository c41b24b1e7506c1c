//! Listeners at a replica, which its master does not count.

use std::io::{Read, Write};
use std::net::TcpStream;

use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::{Cluster, Server};

use crate::support::{LIMIT, connect};

/// Goal: a waiter that a hand-off passes over hears of no grant. It would be a second holder, with the fencing
/// token of the first.
/// Method: it listens at the replica, as one does that has subscribed while the master was failed over. What the
/// test publishes arrives there, though the master counts no one; nothing of the hand-off comes before it.
#[tokio::test]
async fn a_waiter_at_a_replica_hears_of_no_grant() {
    let cluster = Cluster::builder().shards(1).replicas(1).start();
    let master = cluster.master_of("any");
    let (locker, admin) = (connect(&cluster.url()).await, master.admin());
    let guard = locker.lock("k").acquire().await.unwrap();
    let fence = admin.keys("lockable:fence:*").remove(0);
    let tag = fence.strip_prefix("lockable:fence:").unwrap();
    let channel = format!("lockable:grant:{ORIGIN}:{tag}");
    let mut listener = Listener::at(cluster.replica_of("any"), &channel);
    let entry = format!("30000 {ORIGIN}.7");
    admin.command::<u64>(&["RPUSH", "lockable:queue:{disLock:k}", &entry]);
    guard.release().await.unwrap();
    assert_eq!(admin.get("disLock:k"), None);
    assert_eq!(admin.command::<u64>(&["SPUBLISH", &channel, LAST]), 0);
    let heard = listener.heard_until(LAST);
    assert!(!heard.contains("disLock:k"), "{heard}");
    is_clean_everywhere(&cluster).await;
}

const ORIGIN: &str = "0123456789abcdef";
const LAST: &str = "this is the last message";

/// A client that has subscribed to a channel.
struct Listener(TcpStream);

impl Listener {
    fn at(server: &Server, channel: &str) -> Self {
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "SSUBSCRIBE {channel}\r\n").unwrap();
        let mut listener = Self(stream);
        listener.heard_until(":1\r\n");
        listener
    }

    /// All that the server has sent since the last call, up to this text.
    fn heard_until(&mut self, end: &str) -> String {
        let (mut heard, mut buffer) = (String::new(), [0; 1 << 12]);
        while !heard.contains(end) {
            let count = self.0.read(&mut buffer).unwrap();
            assert!(count > 0, "the server has closed the connection: {heard}");
            heard += &String::from_utf8_lossy(&buffer[..count]);
        }
        heard
    }
}
