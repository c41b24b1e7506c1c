//! Processes of their own, each with many tasks, sell from one stock.

use std::iter::repeat_with;

use lockable_tests::{Admin, Peer, Server};

mod queue;

#[test]
fn eight_processes_lose_no_sale_and_tokens_rise() {
    let server = Server::start();
    let admin = server.admin();
    sell(&server, &admin, &[]);
    assert_eq!(stock(&admin), STOCK - SALES);
    let left = admin.keys("*");
    assert_eq!(left, ["lockable:fence:{0Z2}", "stock", "tokens"]);
    let tokens: Vec<u64> = admin.command(&["LRANGE", "tokens", "0", "-1"]);
    assert_eq!(tokens.len() as u64, SALES);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

/// Goal: the same work goes wrong without the lock, so the other tests prove something.
/// Method: the last write has the right number only if every sale began after the one before had
/// ended. But each process starts its tasks together, and a task that waits in its sale lets the
/// next one read the same stock.
#[test]
fn without_the_lock_the_same_processes_lose_sales() {
    let server = Server::start();
    let admin = server.admin();
    sell(&server, &admin, &["--without-lock"]);
    let missing = STOCK - stock(&admin);
    assert!(missing < SALES, "all of {SALES} sales were counted");
    assert_eq!(admin.keys("*"), ["stock"]);
}

const STOCK: u64 = 10_000;
const PROCESSES: usize = 8;
const TASKS: u64 = 6;
const SALES_OF_A_TASK: u64 = 6;
const SALES: u64 = PROCESSES as u64 * TASKS * SALES_OF_A_TASK;

fn sell(server: &Server, admin: &Admin, more: &[&str]) {
    admin.set("stock", &STOCK.to_string());
    let (url, tasks, sales) = (server.url(), TASKS.to_string(), SALES_OF_A_TASK.to_string());
    let arguments = [&["stock", &url, &tasks, &sales], more].concat();
    let said = work(PROCESSES, &arguments);
    assert_eq!(said, ["done"; PROCESSES]);
}

/// Lets all processes begin at the same moment; returns what each says at its end.
fn work(count: usize, arguments: &[&str]) -> Vec<String> {
    let worker = || Peer::start(env!("CARGO_BIN_EXE_worker"), arguments);
    let mut workers: Vec<Peer> = repeat_with(worker).take(count).collect();
    for worker in &workers {
        assert_eq!(worker.hear(), "ready");
    }
    for worker in &mut workers {
        worker.say("go");
    }
    let end = |worker: Peer| {
        let said = worker.hear();
        worker.finish();
        said
    };
    workers.into_iter().map(end).collect()
}

fn stock(admin: &Admin) -> u64 {
    admin.get("stock").unwrap().parse().unwrap()
}
