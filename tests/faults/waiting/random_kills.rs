//! Processes full of waiters, some of which are killed and stopped at any time.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::time::Duration;

use lockable_tests::{Admin, Peer, Server, wait};

use super::support::is_over;
use crate::support::{FENCE, LIMIT, elapse, now};

/// Goal: whatever becomes of the processes, no two holders believe in the lock at once, their fencing
/// tokens rise, and the others continue.
/// Method: four processes of eight waiters each print when they believed in which token. One after the
/// other is killed and replaced, or stopped for a random time; after each of these the lock must be
/// granted several times. `LOCKABLE_COHORT_SECONDS` sets for how many seconds.
#[tokio::test]
async fn cohorts_survive_kills_and_stops_and_exclude_each_other() {
    let length = env::var("LOCKABLE_COHORT_SECONDS");
    let length = Duration::from_secs(length.map_or(6, |seconds| seconds.parse().unwrap()));
    let server = Server::start();
    let mut cohorts: Vec<_> = (0..4).map(|_| cohort(&server)).collect();
    let mut history = History::default();
    let admin = server.admin();
    let mut disturbances = 0;
    let start = now();
    while now() - start < length {
        let number = usize::try_from(random(4)).unwrap();
        elapse(Duration::from_millis(50 + random(150))).await;
        if random(2) == 0 {
            let killed = std::mem::replace(&mut cohorts[number], cohort(&server));
            history.note(&killed.kill());
        } else {
            cohorts[number].pause();
            elapse(Duration::from_millis(random(1_500))).await;
            cohorts[number].resume();
        }
        disturbances += 1;
        continues(&admin).await;
    }
    for cohort in cohorts {
        history.note(&cohort.hear_out());
    }
    let report = history.checked();
    println!("{disturbances} kills and stops: {report:?}");
    assert!(report.holds > disturbances, "{report:?}");
    assert!(report.shortest_gap > Duration::ZERO, "{report:?}");
    is_over(&server).await;
}

/// Waits until the lock was granted several times, which its fence counter counts.
async fn continues(admin: &Admin) {
    let grants = || admin.get(FENCE).map_or(0, |count| count.parse::<u64>().unwrap());
    let before = grants();
    wait::until_async(LIMIT, async || grants() >= before + 10).await;
}

fn cohort(server: &Server) -> Peer {
    let url = server.url();
    let peer = Peer::start(env!("CARGO_BIN_EXE_wait_worker"), [url.as_str(), "8", "300"]);
    assert_eq!(peer.hear(), "ready");
    peer
}

/// Who believed in the lock, by fencing token: from when to when.
#[derive(Debug, Default)]
pub(crate) struct History(BTreeMap<u64, (u64, u64)>);

/// The result of a history.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) holds: usize,
    /// The longest time in which no one believed.
    pub(crate) longest_gap: Duration,
    /// How close two holders came.
    pub(crate) shortest_gap: Duration,
}

impl History {
    /// Lines of `TOKEN TIME`; the last one of a killed process may be cut off.
    pub(crate) fn note(&mut self, lines: &[String]) {
        for line in lines {
            let Some((token, time)) = line.split_once(' ') else { continue };
            let (token, time): (u64, u64) = (token.parse().unwrap(), time.parse().unwrap());
            let (first, last) = self.0.entry(token).or_insert((time, time));
            (*first, *last) = (time.min(*first), time.max(*last));
        }
    }

    /// In the order of the tokens, no holder begins before the one before has ended.
    pub(crate) fn checked(&self) -> Report {
        let holds: Vec<_> = self.0.iter().collect();
        let gaps = holds.windows(2).map(|pair| {
            let ((former, (_, end)), (token, (begin, _))) = (pair[0], pair[1]);
            let gap = begin.checked_sub(*end);
            Duration::from_nanos(gap.unwrap_or_else(|| {
                panic!("{token} began {} ns before {former} ended", end - begin)
            }))
        });
        let gaps: Vec<_> = gaps.collect();
        Report {
            holds: holds.len(),
            longest_gap: gaps.iter().max().copied().unwrap_or_default(),
            shortest_gap: gaps.iter().min().copied().unwrap_or_default(),
        }
    }
}

fn random(below: u64) -> u64 {
    RandomState::new().hash_one(()) % below
}
