//! How long calls for several keys, and for permits, take beside those for locks of one key.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use lockable_runtime::{LockRequest, Locker};
use lockable_tests::{Cluster, Server};
use tokio::task::JoinSet;

use crate::crowds::accounts::{How, Outcome, work};
use crate::crowds::load::{LONG, connect, elapse, now};
use crate::{Figure, block_on};

/// Sets of keys that overlap, beside the same locks, taken one by one in order by hand.
pub(crate) fn sets() -> Vec<Figure> {
    block_on(async {
        let (server, cluster) = (Server::start(), Cluster::start());
        let mut figures = compare("a server", &server.url()).await;
        figures.extend(compare("a cluster", &cluster.url()).await);
        figures
    })
}

async fn compare(place: &str, url: &str) -> Vec<Figure> {
    let sets = work(url, How::Set, ROUNDS).await;
    let by_hand = work(url, How::OneByOne, ROUNDS).await;
    let thousand = |outcome: &Outcome| outcome.took * 1_000 / outcome.sections;
    let usual = thousand(&by_hand) * 5 / 4;
    vec![
        Figure::new(format!("a thousand sets on {place}"), thousand(&sets), usual),
        Figure::new(format!("all keys on {place}"), sets.longest_of_all, 3 * sets.longest),
    ]
}

/// The longest waits of callers for one of three permits, half as long as for a lock of each number: no caller waits
/// behind a long body while another permit is free. One in ten bodies is 25 times as long.
pub(crate) fn permits() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let permits = waits(&server, |locker, _| locker.lock("k").permits(3)).await;
        let numbers = waits(&server, |locker, draw| locker.lock(number(draw))).await;
        vec![Figure::new("longest waits for permits", permits, numbers / 2)]
    })
}

fn number(draw: u64) -> String {
    format!("k:{}", draw % NUMBERS)
}

/// The mean of the longest waits, each of as many calls of all callers.
async fn waits(server: &Server, request: fn(&Locker, u64) -> LockRequest) -> Duration {
    let mut lockers = Vec::new();
    for _ in 0..LOCKERS {
        lockers.push(connect(&server.url()).await);
    }
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let locker = lockers[caller % LOCKERS].clone();
        callers.spawn(async move {
            let mut waits = Vec::new();
            for count in 0..PARTS * CALLS {
                waits.push(call(&locker, draw(caller, count), request).await);
            }
            waits
        });
    }
    let waits = callers.join_all().await;
    let part =
        |waits: &Vec<Duration>, part: usize| waits[part * CALLS..][..CALLS].iter().max().copied();
    let longest = |number| waits.iter().filter_map(|waits| part(waits, number)).max();
    (0..PARTS).filter_map(longest).sum::<Duration>() / u32::try_from(PARTS).expect("a few")
}

async fn call(locker: &Locker, draw: u64, request: fn(&Locker, u64) -> LockRequest) -> Duration {
    let start = now();
    let guard = request(locker, draw).wait(LONG).acquire().await.expect("it waits");
    let waited = start.elapsed();
    let is_long = (draw / NUMBERS).is_multiple_of(10);
    elapse(Duration::from_millis(if is_long { 50 } else { 2 })).await;
    guard.release().await.expect("it is held");
    waited
}

/// As good as by chance, and the same for permits and for numbers.
fn draw(caller: usize, count: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (caller, count).hash(&mut hasher);
    hasher.finish()
}

const ROUNDS: usize = 30;

/// Each stands for a process.
const LOCKERS: usize = 4;
const CALLERS: usize = 12;
const NUMBERS: u64 = 3;
const PARTS: usize = 10;
const CALLS: usize = 20;
