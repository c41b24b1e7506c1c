//! Requests that arrive twice, the second time when the lease has been made longer: it stays as long.

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
async fn a_question_leaves_an_extended_permit_as_long_as_it_is() {
    let (server, verbs) = server_and_verbs();
    let (admin, permit) = (server.admin(), "p:{export}#1");
    let attempt = verbs.attempt_for_permit("p:{export}", 3, LEASE).unwrap();
    let ask = async || matches!(verbs.enqueue(&attempt).await.unwrap(), Place::Granted(..));
    assert!(ask().await && !is_long(&admin, permit));
    lengthen(&admin, permit);
    assert!(ask().await && is_long(&admin, permit));
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
