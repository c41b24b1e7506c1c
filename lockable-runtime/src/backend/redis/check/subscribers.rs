//! Who hears of grants that are not for them.
//!
//! See "How does the check find a pattern subscriber?" in DESIGN.md.

use ::redis::{FromRedisValue, Pipeline};

use super::Checked;
use crate::backend::redis::wait::grants::channel;
use crate::check::{Code, Finding, Severity};
use crate::types::token::Origin;

/// Publishes where no locker listens: the server counts those who subscribed to a pattern. Nothing is
/// known where the user may not publish, which is a finding of its own.
pub(super) async fn look(server: &Checked<'_>) -> Result<Option<Finding>, Finding> {
    let Ok(origin) = Origin::draw() else { return Ok(None) };
    let mut pipeline = Pipeline::with_capacity(1);
    pipeline.cmd("PUBLISH").arg(channel(origin)).arg("");
    let replies = server.call(&pipeline).await?;
    let heard = replies.first().and_then(|reply| u64::from_redis_value_ref(reply).ok());
    Ok(heard.filter(|heard| *heard > 0).map(overheard))
}

fn overheard(heard: u64) -> Finding {
    let matter = format!(
        "{heard} connections subscribe to a pattern that takes in the channels of grants, as \
         `PSUBSCRIBE *` does, and count as waiters that listen: each waiter whose process was killed in \
         the queue costs the others a second"
    );
    let advice = "let the monitoring program subscribe to the channels that it needs, such as \
                  `__keyspace@0__:*`, or to patterns that leave out `lockable:grant:*`";
    Finding::new(Severity::Risky, Code::PatternSubscriber, matter, advice).about("PSUBSCRIBE")
}
