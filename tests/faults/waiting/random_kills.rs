//! Processes full of waiters, some of which are killed and stopped at any time.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use lockable_tests::{Admin, Peer, Server, wait};

use super::support::{is_over, random};
use crate::support::{FENCE, LIMIT, elapse, now};

/// Goal: whatever becomes of the processes, no two holders believe in the lock at once, their fencing
/// tokens rise, and the others continue.
/// Method: four processes of eight waiters each print when they believed in which token. One after the
/// other is killed and replaced, or stopped for a random time; after each of these the lock must be
/// granted several times. `LOCKABLE_COHORT_SECONDS` sets for how many seconds.
#[tokio::test]
async fn cohorts_survive_kills_and_stops_and_exclude_each_other() {
    let length = env::var("LOCKABLE_COHORT_SECONDS");
    let length = Duration::from_secs(length.map_or(4, |seconds| seconds.parse().unwrap()));
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
    let holds = history.checked();
    assert!(holds > disturbances, "{holds} holds, {disturbances} kills and stops");
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

    /// In the order of the tokens, each holder begins after the one before has ended; how many there were.
    pub(crate) fn checked(&self) -> usize {
        let holds: Vec<_> = self.0.iter().collect();
        for pair in holds.windows(2) {
            let ((former, (_, end)), (token, (begin, _))) = (pair[0], pair[1]);
            assert!(begin > end, "{token} began {} ns before {former} ended", end - begin);
        }
        holds.len()
    }
}
