//! A process that is stopped until after the deadline of its lease takes no further step.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use lockable_tests::{Peer, Server, long_form, wait};

use crate::support::{
    KEY, LIMIT, LONG, WORKER, boot_time, connect_ample, server_and_proxy, usable,
};
use crate::waiting::support::process;

/// Goal: whatever a process was doing when it was stopped, after its deadline it does not begin
/// another step of the body, though timers, sockets and wakers are all due at once.
/// Method: SIGSTOP at a random time before the deadline, SIGCONT after it, again and again. A poll
/// that had read the clock already when the process was stopped cannot be held back; that is some
/// microseconds of every two milliseconds here, so it happens to few of the stops; without the look at
/// the clock it would happen to all. A poll that begins later reaches the body never.
#[test]
fn a_stopped_process_takes_no_step_after_its_deadline() {
    let stops = long_form(400, 10_000) as u64;
    let server = Server::start();
    let found = Mutex::new(Found::default());
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let (server, found) = (&server, &found);
            scope.spawn(move || stop_again_and_again(server, number, stops, found));
        }
    });
    let found = found.into_inner().unwrap();
    println!("{found:?}");
    let Found { stops, steps, late, forbidden, .. } = found;
    assert!(steps > stops, "{found:?}");
    assert_eq!(forbidden, 0, "{found:?}");
    assert!(late < stops / 4, "{found:?}");
}

/// Goal: the server has renewed the lock, and says so, but the answer comes after the deadline: the lock is lost.
/// Method: the request of a renewal is held back until its process stands still. The process continues when another one
/// has the lock.
#[tokio::test]
async fn a_process_that_stops_at_its_renewal_has_lost_its_lock() {
    let (server, proxy) = server_and_proxy();
    let (locker, admin) = (connect_ample(&server.url()).await, server.admin());
    let mut stopped = process(&proxy.url());
    stopped.say("watch 3000");
    let first = stopped.hear();
    // The next request is a renewal, over a connection that is open: the first renewal may open it, and is followed by a
    // check then.
    for _ in 0..2 {
        wait::until_async(LIMIT, async || admin.pttl(KEY) < SOON_RENEWED).await;
        wait::until_async(LIMIT, async || admin.pttl(KEY) > SOON_RENEWED).await;
    }
    let renewals = proxy.commands("EVALSHA");
    proxy.hold_requests();
    proxy.wait_for_command("EVALSHA", renewals + 1, LIMIT).await;
    stopped.pause();
    let left = admin.pttl(KEY);
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.pttl(KEY) > left).await;
    let guard = locker.lock("k").wait(LONG).acquire().await.unwrap();
    let others = boot_time().as_nanos();
    stopped.resume();
    stopped.say("");
    let lines: Vec<_> =
        std::iter::repeat_with(|| stopped.hear()).take_while(|line| line != "free").collect();
    for line in lines.iter().chain([&first]) {
        let (token, at) = line.split_once(' ').unwrap();
        assert!(at.parse::<u128>().unwrap() < others, "it believes that it holds");
        assert!(token.parse::<u64>().unwrap() < u64::from(guard.lease().fencing_token()));
    }
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    stopped.finish();
}

/// In milliseconds: more than the two thirds of its lease at which it is renewed.
const SOON_RENEWED: i64 = 2_400;

const WORKERS: u64 = 4;
const LEASE: Duration = Duration::from_millis(30);

/// What the stops of all processes found.
#[derive(Debug, Default)]
struct Found {
    /// Those that began before the deadline and ended after it.
    stops: u64,
    steps: u64,
    late: u64,
    /// Late steps of polls that began after the deadline.
    forbidden: u64,
    /// The nanoseconds by which the latest step was late.
    latest: u64,
}

fn stop_again_and_again(server: &Server, number: u64, stops: u64, found: &Mutex<Found>) {
    let (url, lease) = (server.url(), LEASE.as_millis().to_string());
    let mut worker = Peer::start(WORKER, ["step", &url, &number.to_string(), &lease]);
    while found.lock().unwrap().stops < stops {
        stop_once(&mut worker, found);
    }
    worker.finish();
}

fn stop_once(worker: &mut Peer, found: &Mutex<Found>) {
    let answer = worker.ask("go");
    // Without an answer in time there is nothing to stop.
    let Some(until) = answer.strip_prefix("held ") else { return };
    let until = Duration::from_nanos(until.parse().unwrap());
    let before = usable(LEASE) * u32::try_from(random(1_000)).unwrap() / 1_000;
    sleep_until(until.saturating_sub(before));
    worker.pause();
    let is_past = boot_time() < until;
    sleep_until(until + Duration::from_micros(100 + random(3_000)));
    worker.resume();
    let answer = worker.hear();
    let numbers: Vec<u64> = answer.split(' ').map(|number| number.parse().unwrap()).collect();
    let mut found = found.lock().unwrap();
    found.stops += u64::from(is_past);
    found.steps += numbers[0];
    found.late += numbers[1];
    found.forbidden += numbers[2];
    found.latest = found.latest.max(numbers[3]);
}

#[expect(clippy::disallowed_methods, reason = "a moment of the clock is what is waited for")]
fn sleep_until(moment: Duration) {
    thread::sleep(moment.saturating_sub(boot_time()));
}

fn random(below: u64) -> u64 {
    RandomState::new().hash_one(()) % below
}
