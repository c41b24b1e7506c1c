//! Wake-ups that someone else has published, who may read the locks and the queues: no more than a request each.

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::{Admin, Proxy, Server, wait};
use rstest::rstest;
use tokio::task::JoinHandle;

use super::support::{
    connect, connect_rechecking, in_queue, is_served_last, listening, origin, owners_in_queue,
    publish, release_last,
};
use crate::support::{KEY, LIMIT, LONG, server_and_proxy};

/// Goal: a forged message starts a body, gives a fencing token, ends a lease or costs a place; or more than a request.
/// Method: a process has a lock and two permits by the queue, and is the first of two that wait for another lock. It gets
/// the message, and then the true wake-up, over the same subscription.
#[rstest]
#[case::of_its_waiter(|it: &Tokens| format!("{}\n{KEY}", it.waiting), 1)]
#[case::of_its_waiter_for_another_lock(|it: &Tokens| format!("{}\n{HELD}", it.waiting), 0)]
#[case::of_its_running_lease(|it: &Tokens| format!("{}\n{HELD}", it.held), 0)]
#[case::of_its_running_lease_of_another_lock(|it: &Tokens| format!("{}\n{KEY}", it.held), 0)]
#[case::of_its_first_permit(|it: &Tokens| format!("{}\n{}", it.permits[0], PERMITS[0]), 0)]
#[case::of_its_latest_permit(|it: &Tokens| format!("{}\n{}", it.permits[1], PERMITS[1]), 0)]
#[case::of_its_first_permit_by_another_number(|it: &Tokens| format!("{}\n{}", it.permits[0], PERMITS[1]), 0)]
#[case::of_none_of_its_attempts(|it: &Tokens| format!("{}.7\n{KEY}", origin(&it.waiting)), 0)]
#[case::of_the_other_waiter(|it: &Tokens| format!("{}\n{KEY}", it.other), 0)]
#[case::of_the_holder(|it: &Tokens| format!("{}\n{KEY}", it.holder), 0)]
#[case::with_a_time_as_well(|it: &Tokens| format!("9\n9\n1000\n{}\n{KEY}", it.waiting), 0)]
#[case::without_a_lock(|it: &Tokens| format!("{}\n", it.waiting), 0)]
#[case::of_no_part(|_: &Tokens| String::new(), 0)]
#[tokio::test]
async fn a_forged_wake_up_costs_at_most_a_request(
    #[case] forge: fn(&Tokens) -> String,
    #[case] requests: u64,
) {
    let scene = Scene::start().await;
    let (admin, token) = (scene.server.admin(), scene.holder.lease().fencing_token());
    let tokens = Tokens::of(&admin);
    let [before, asked] = [admin.command_calls("evalsha"), scene.proxy.commands("EVALSHA")];
    publish(&admin, &tokens.waiting, &forge(&tokens));
    wait::until_async(LIMIT, async || admin.command_calls("evalsha") == before + requests).await;
    assert_eq!(Tokens::of(&admin), tokens);
    assert!(!scene.waiter.is_finished() && scene.holder.lease().is_held());
    scene.holder.release().await.unwrap();
    let next = wait::ends(scene.waiter).await.unwrap();
    assert!(next.lease().fencing_token() > token);
    assert_eq!(scene.proxy.commands("EVALSHA"), asked + requests + 1);
    for guard in scene.running {
        assert!(guard.lease().is_held() && guard.lease().remaining() > LONG / 2);
        guard.release().await.unwrap();
    }
    next.release().await.unwrap();
    is_served_last(&scene.server, scene.other).await;
}

/// Goal: a wake-up that arrives again and again costs a query each time.
/// Method: all arrive before the first query is answered.
#[tokio::test]
async fn a_repeated_wake_up_costs_no_second_query() {
    let (server, proxy) = server_and_proxy();
    let (holder, locker) =
        (listening(&server, &server.url()).await, listening(&server, &proxy.url()).await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let last = holder.lock("last").acquire().await.unwrap();
    let waits_for_last = tokio::spawn(locker.lock("last").acquire());
    let queued = async || server.admin().keys("lockable:queue:*").len();
    wait::until_async(LIMIT, async || queued().await == 1).await;
    let (admin, waiter) = (server.admin(), tokio::spawn(locker.lock("k").acquire()));
    wait::until_async(LIMIT, async || queued().await == 2).await;
    let owner = owners_in_queue(&admin).remove(0);
    let asked = proxy.commands("EVALSHA");
    proxy.hold_messages();
    guard.release().await.unwrap();
    for _ in 0..100 {
        publish(&admin, &owner, &format!("{owner}\n{KEY}"));
    }
    // Its wake-up is heard behind the others.
    last.release().await.unwrap();
    proxy.hold_requests();
    proxy.release_messages();
    proxy.wait_for_command("EVALSHA", asked + 2, LIMIT).await;
    proxy.release_requests();
    let guards =
        [waiter, waits_for_last].map(|call| async { wait::ends(call).await.unwrap().unwrap() });
    let [guard, last] = guards;
    let (guard, last) = (guard.await, last.await);
    assert_eq!(proxy.commands("EVALSHA"), asked + 2);
    last.release().await.unwrap();
    release_last(&server, guard).await;
}

/// Goal: a query that a forged wake-up has caused hides the true one, so that the kept turn lapses.
/// Method: it was executed when the lock is released, and its answer is held back.
#[tokio::test]
async fn a_wake_up_behind_a_forged_one_costs_at_most_a_recheck() {
    let (server, proxy) = server_and_proxy();
    let holder = connect(&server.url()).await;
    let locker = connect_rechecking(&proxy.url()).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let (admin, waiter) = (server.admin(), in_queue(&server, &locker).await);
    let owner = owners_in_queue(&admin).remove(0);
    let asked = admin.command_calls("lpos");
    proxy.hold_answers_to("EVALSHA");
    publish(&admin, &owner, &format!("{owner}\n{KEY}"));
    wait::until_async(LIMIT, async || admin.command_calls("lpos") > asked).await;
    guard.release().await.unwrap();
    proxy.release_answers();
    is_served_last(&server, waiter).await;
}

/// A process with running leases that waits for `k` first, one that waits behind it, and the holder.
struct Scene {
    server: Server,
    proxy: Proxy,
    holder: LockGuard,
    running: Vec<LockGuard>,
    waiter: JoinHandle<LockGuard>,
    other: JoinHandle<LockGuard>,
}

impl Scene {
    async fn start() -> Self {
        let (server, proxy) = server_and_proxy();
        let locker = listening(&server, &proxy.url()).await;
        let holders = listening(&server, &server.url()).await;
        let others = listening(&server, &server.url()).await;
        let requests = |locker: &Locker| {
            let permit = || locker.lock("p").permits(2).wait(LONG);
            [locker.lock("held").wait(LONG), permit(), permit()]
        };
        let (mut former, mut running) = (Vec::new(), Vec::new());
        for request in requests(&holders) {
            former.push(request.acquire().await.unwrap());
        }
        for (request, former) in requests(&locker).into_iter().zip(former) {
            running.push(handed_off(&server, former, request).await);
        }
        let holder = holders.lock("k").acquire().await.unwrap();
        let waiter = in_queue(&server, &locker).await;
        let other = in_queue(&server, &others).await;
        Self { server, proxy, holder, running, waiter, other }
    }
}

/// The lock of this holder, once another process has it, which waits for it.
async fn handed_off(server: &Server, holder: LockGuard, waiter: LockRequest) -> LockGuard {
    let waiter = tokio::spawn(waiter.acquire());
    let is_queued = async || !server.admin().keys("lockable:queue:*").is_empty();
    wait::until_async(LIMIT, is_queued).await;
    holder.release().await.unwrap();
    wait::ends(waiter).await.unwrap().unwrap()
}

/// The owner tokens that anyone finds who may read.
#[derive(Debug, PartialEq, Eq)]
struct Tokens {
    held: String,
    permits: [String; 2],
    holder: String,
    waiting: String,
    other: String,
}

impl Tokens {
    fn of(admin: &Admin) -> Self {
        let [held, holder] = [HELD, KEY].map(|name| admin.get(name).unwrap());
        let permits = PERMITS.map(|name| admin.get(name).unwrap());
        let [waiting, other] = &owners_in_queue(admin)[..] else { panic!("two processes wait") };
        Self { held, permits, holder, waiting: waiting.clone(), other: other.clone() }
    }
}

const HELD: &str = "disLock:held";
const PERMITS: [&str; 2] = ["disLock:{p}#1", "disLock:{p}#2"];
