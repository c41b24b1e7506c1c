//! One of the tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::log::Log;
use super::{Client, Tags};

/// Stays with one group of tags, so that a call that waits for one group holds up no call for the other.
pub(super) struct Task {
    number: usize,
    group: usize,
    tags: Vec<String>,
    log: Arc<Log>,
    stop: Arc<AtomicBool>,
}

impl Task {
    /// A third of the tasks are for the first group; all, where there is no other one.
    pub(super) fn new(
        number: usize,
        Tags(tags): &Tags,
        log: &Arc<Log>,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let group = usize::from(!tags[1].is_empty() && !number.is_multiple_of(3));
        let (log, stop) = (Arc::clone(log), Arc::clone(stop));
        Self { number, group, tags: tags[group].clone(), log, stop }
    }

    /// Until it is stopped. After an error it pauses, so that errors without a round trip make no busy loop.
    pub(super) async fn run(self, mut client: impl Client) {
        let mut pair = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let tag = &self.tags[pair % self.tags.len()];
            let key = format!("{{{tag}}}:clients:{}:{pair}", self.number);
            match lock_and_release(&mut client, &key).await {
                Ok(()) => self.log.succeeded(self.group),
                Err(reason) => {
                    self.log.failed(self.group, &key, &reason);
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            }
            pair += 1;
        }
    }
}

async fn lock_and_release(client: &mut impl Client, key: &str) -> Result<(), String> {
    let held = client.acquire(key).await?;
    client.release(key, held).await
}

const AFTER_ERROR: Duration = Duration::from_millis(10);
