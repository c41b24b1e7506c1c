//! One round of a worker: its waiters, from the common start to the order that ends it.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use super::Contender;
use super::log::Log;
use super::order::Terms;
use crate::monotonic;

/// The waiters of a round; they end with it.
pub(super) struct Round {
    at: u64,
    logs: Vec<Arc<Log>>,
    waiters: JoinSet<()>,
}

impl Round {
    pub(super) fn start(contender: &impl Contender, terms: &Terms) -> Self {
        let (mut logs, mut waiters) = (Vec::new(), JoinSet::new());
        for number in 0..terms.waiters {
            let log = Arc::new(Log::default());
            let own = format!("{}.{number}", std::process::id());
            let key = terms.key.replace('*', &own);
            let pace = Pace { at: terms.at, key, section: terms.section, limit: terms.limit };
            waiters.spawn(pace.run(contender.clone(), Arc::clone(&log)));
            logs.push(log);
        }
        Self { at: terms.at, logs, waiters }
    }

    /// Never, when the waiters have no limit.
    pub(super) async fn all_done(&mut self) {
        while self.waiters.join_next().await.is_some() {}
    }

    /// Ends what still waits, and writes down everything.
    pub(super) async fn write(mut self) {
        self.waiters.shutdown().await;
        let mut out = BufWriter::new(io::stdout().lock());
        let logs = self.logs.iter().enumerate();
        let written = logs.map(|(waiter, log)| log.write(waiter, self.at, &mut out));
        written.collect::<io::Result<()>>().and_then(|()| writeln!(out, "over")).ok();
    }
}

struct Pace {
    at: u64,
    key: String,
    section: Duration,
    limit: usize,
}

impl Pace {
    async fn run(self, mut contender: impl Contender, log: Arc<Log>) {
        sleep(Duration::from_nanos(self.at.saturating_sub(monotonic()))).await;
        let mut left = self.limit;
        loop {
            log.ask(monotonic());
            let held = contender.acquire(&self.key).await;
            let entered = monotonic();
            self.stay_inside().await;
            log.leave(entered, monotonic());
            contender.release(&self.key, held).await;
            left = left.wrapping_sub(1);
            if left == 0 {
                return;
            }
        }
    }

    /// On a thread of its own, because the runtime's timers are late by up to a millisecond.
    async fn stay_inside(&self) {
        let section = self.section;
        if !section.is_zero() {
            spawn_blocking(move || std::thread::sleep(section))
                .await
                .expect("a thread that sleeps");
        }
    }
}
