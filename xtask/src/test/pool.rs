//! Jobs side by side, within a budget.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::thread;

pub(super) struct Job {
    /// How much of the budget it takes while it runs.
    pub(super) weight: usize,
    pub(super) run: Box<dyn FnOnce() + Send>,
}

/// What this machine can run at a time: a weight of one is a test that mostly waits.
pub(super) fn budget() -> usize {
    PER_CORE * thread::available_parallelism().map_or(1, usize::from)
}

/// Starts each job as soon as the budget has room for it, in their order; one too large for it runs alone.
pub(super) fn run(jobs: Vec<Job>, budget: usize) {
    let mut waiting = VecDeque::from(jobs);
    let (end, ends) = channel();
    let mut used = 0;
    thread::scope(|scope| {
        loop {
            let next = waiting.iter().position(|job| used == 0 || used + job.weight <= budget);
            if let Some(job) = next.and_then(|next| waiting.remove(next)) {
                used += job.weight;
                let end = End { weight: job.weight, sender: end.clone() };
                scope.spawn(move || {
                    (job.run)();
                    drop(end);
                });
            } else if used > 0 {
                used -= ends.recv().unwrap_or(used);
            } else {
                break;
            }
        }
    });
}

/// A job that panics has ended too.
struct End {
    weight: usize,
    sender: Sender<usize>,
}

impl Drop for End {
    fn drop(&mut self) {
        // The loop that receives it waits for all jobs.
        self.sender.send(self.weight).ok();
    }
}

const PER_CORE: usize = 6;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Job, run};

    /// How much runs now, and the most that ever ran.
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static ENDED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

    #[test]
    fn jobs_share_the_budget_and_a_large_one_runs_alone() {
        let job = |weight: usize| Job {
            weight,
            run: Box::new(move || {
                let now = NOW.fetch_add(weight, Ordering::SeqCst) + weight;
                MOST.fetch_max(now.min(10), Ordering::SeqCst);
                assert!(now <= 4 || weight == 9 && now == 9, "{now} at a time");
                ENDED.lock().unwrap().push(weight);
                NOW.fetch_sub(weight, Ordering::SeqCst);
            }),
        };
        run([9, 1, 2, 3, 4, 1, 2].map(job).into(), 4);
        let mut ended = ENDED.lock().unwrap().clone();
        ended.sort_unstable();
        assert_eq!(ended, [1, 1, 2, 2, 3, 4, 9]);
    }
}
