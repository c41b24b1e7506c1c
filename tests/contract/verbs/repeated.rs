//! Requests that arrive twice: what a lock has of its lease stays, and becomes no less than what is answered.

use std::sync::mpsc::channel;
use std::time::Duration;

use lockable_runtime::__internals::{Place, Verbs};
use lockable_tests::{Admin, Server};

use crate::fixture::LIMIT;

const LEASE: Duration = Duration::from_secs(60);

fn server_and_verbs() -> (Server, Verbs) {
    let server = Server::start();
    let verbs = Verbs::open_impatient(&server.url(), LIMIT).unwrap();
    (server, verbs)
}

fn lengthen(admin: &Admin, key: &str) {
    assert_eq!(admin.command::<i64>(&["PEXPIRE", key, "600000"]), 1, "no one has `{key}`");
}

fn is_long(admin: &Admin, key: &str) -> bool {
    admin.pttl(key) > 300_000
}

#[tokio::test]
async fn a_query_leaves_an_extended_permit_as_long_as_it_is() {
    let (server, verbs) = server_and_verbs();
    let (admin, permit) = (server.admin(), "p:{export}#1");
    let attempt = verbs.attempt_for_permit("p:{export}", 3, LEASE).unwrap();
    let ask = async || matches!(verbs.enqueue(&attempt).await.unwrap(), Place::Granted(..));
    assert!(ask().await && !is_long(&admin, permit));
    lengthen(&admin, permit);
    assert!(ask().await && is_long(&admin, permit));
}

/// Goal: a call counts on a whole lease of a lock that is reserved for it for a second.
/// Method: one release has kept the lock, because the call waited, and another one of the same hold has it as the next.
#[tokio::test]
async fn a_release_gives_the_one_it_is_kept_for_a_whole_lease() {
    let (server, mut verbs) = server_and_verbs();
    let (admin, (wake, woken)) = (server.admin(), channel());
    verbs.listen(wake);
    let [held, next] = [(); 2].map(|()| verbs.attempt("k", LEASE, None).unwrap());
    verbs.acquire(&held).await.unwrap().unwrap();
    assert!(matches!(verbs.enqueue(&next).await.unwrap(), Place::Queued(_)));
    verbs.release(&held, None, Duration::ZERO).await.unwrap();
    assert_eq!(woken.recv_timeout(LIMIT).unwrap(), ("k".to_owned(), next.owner().to_owned()));
    assert!((0..=1_000).contains(&admin.pttl("k")));
    let (_, granted) = verbs.release(&held, Some(&next), Duration::ZERO).await.unwrap();
    let (owner, first, ttl) = granted.expect("the lock is its own");
    assert_eq!((owner.as_str(), ttl), (next.owner(), LEASE));
    let left = admin.pttl("k");
    assert!(Duration::from_millis(left.try_into().unwrap()) > LEASE / 2, "{left}");
    // Whatever is asked once more, it is the same lock with newer tokens.
    let Place::Granted((_, second, _)) = verbs.enqueue(&next).await.unwrap() else {
        panic!("the lock is its own")
    };
    assert!(second[0] > first[1], "{second:?} after {first:?}");
    verbs.release(&next, None, Duration::ZERO).await.unwrap();
    assert_eq!(admin.get("k"), None);
}

#[tokio::test]
async fn a_transfer_leaves_an_extended_lock_as_long_as_it_is() {
    let (server, verbs) = server_and_verbs();
    let admin = server.admin();
    let from = verbs.attempt("k", LEASE, None).unwrap();
    let to = from.ticket(LEASE).unwrap();
    verbs.acquire(&from).await.unwrap().unwrap();
    let transfer = async || format!("{:?}", verbs.transfer(&from, &to).await.unwrap());
    assert_eq!(transfer().await, "Held");
    lengthen(&admin, "k");
    assert_eq!(transfer().await, "Held");
    assert!(is_long(&admin, "k"));
}
