//! The load of the article on queued locks: a thousand requests, a hundred at a time, by fifty processes.

use lockable_tests::Server;

use crate::{stock, work};

#[test]
fn a_thousand_queued_requests_leave_a_thousand() {
    let server = Server::start();
    let admin = server.admin();
    admin.set("stock", "2000");
    work(env!("CARGO_BIN_EXE_queue_worker"), 50, &[&server.url(), "2", "10"]);
    assert_eq!(stock(&admin), 1_000);
}
