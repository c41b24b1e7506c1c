//! Processes full of waiters, some of which are killed and stopped at any time.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::time::Duration;

use lockable_tests::{Peer, Server};

use super::support::is_over;
use crate::support::{elapse, now};

/// Goal: whatever becomes of the processes, no two holders believe in the lock at once, their fencing
/// tokens rise, and the others continue.
/// Method: four processes of eight waiters each print when they believed in which token; for some
/// seconds one after the other is killed and replaced, or stopped for a random time.
/// `LOCKABLE_COHORT_SECONDS` sets for how many.
#[tokio::test]
async fn cohorts_survive_kills_and_stops_and_exclude_each_other() {
    let length = env::var("LOCKABLE_COHORT_SECONDS");
    let length = Duration::from_secs(length.map_or(6, |seconds| seconds.parse().unwrap()));
    let server = Server::start();
    let mut cohorts: Vec<_> = (0..4).map(|_| cohort(&server)).collect();
    let mut history = History::default();
    let (mut kills, mut stops) = (0, 0);
    let start = now();
    while now() - start < length {
        let number = usize::try_from(random(4)).unwrap();
        elapse(Duration::from_millis(50 + random(150))).await;
        if random(2) == 0 {
            let killed = std::mem::replace(&mut cohorts[number], cohort(&server));
            history.note(&killed.kill());
            kills += 1;
        } else {
            cohorts[number].pause();
            elapse(Duration::from_millis(random(1_500))).await;
            cohorts[number].resume();
            stops += 1;
        }
    }
    for cohort in cohorts {
        history.note(&cohort.hear_out());
    }
    let report = history.checked();
    println!("{kills} kills, {stops} stops: {report:?}");
    assert!(report.holds > 200, "{report:?}");
    assert!(report.shortest_gap > Duration::ZERO, "{report:?}");
    assert!(report.longest_gap < LONGEST_GAP, "{report:?}");
    is_over(&server).await;
}

/// Two that were granted the lock one after the other, each stopped or killed, on a busy machine.
const LONGEST_GAP: Duration = Duration::from_secs(4);

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
