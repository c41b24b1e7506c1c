//! What one Sentinel answers, and what its user may not do there.

use std::sync::Arc;

use ::redis::{RedisError, Value};

use crate::core::process::clock::{timer_on, within};
use crate::findings::{Code, Finding};
use crate::redis::fault;
use crate::redis::pubsub::subscription::Subscription;
use crate::redis::topology::sentinels::{Sentinel, Sentinels, silent};
use crate::redis::topology::votes::Vote;
use crate::redis::topology::watch::CHANNEL;
use crate::redis::wire::flaw::Flaw;

pub(super) struct Said {
    pub(super) name: String,
    /// The reason for no vote is a finding, which is worse if no other Sentinel has a vote.
    pub(super) vote: Vote<Flaw>,
    pub(super) besides: Option<Finding>,
}

pub(super) async fn examine(sentinel: Sentinel, all: Arc<Sentinels>) -> Said {
    let vote = sentinel.clone().vote(all.primary.clone(), all.timers.clone(), all.limit).await;
    // Where a right is missing, others may be too.
    let is_reached = match &vote {
        Vote::Primary(_) | Vote::Unknown(_) => true,
        Vote::None(flaw) => flaw.finding.code() == Code::MissingRight,
    };
    // It may be subscribed to at the same time by a locker.
    let sentinel = sentinel.afresh();
    let besides = if is_reached { subscribe(&sentinel, &all).await } else { None };
    Said { name: sentinel.name, vote, besides }
}

/// Subscribes as a locker does, and checks that the subscription lives.
async fn subscribe(sentinel: &Sentinel, all: &Sentinels) -> Option<Finding> {
    let sentinel = &in_time(all, sentinel.logged_in(all.limit)).await?.ok()?;
    let mut subscription = match in_time(all, Subscription::open(&sentinel.client, CHANNEL)).await {
        Some(Ok(subscription)) => subscription,
        Some(Err(error)) if fault::is_missing_right(&error) => {
            let effect = "this process gets no notification of a failover, and notices it late";
            return Some(sentinel.lacks(&rule(&error, "subscribe"), effect));
        }
        Some(Err(error)) => {
            let cause = fault::explain(&error).1;
            return Some(silent(format!("`subscribe` failed: {cause}")));
        }
        None => {
            let (late, _) = sentinel.client.progress.late("no answer", all.limit);
            return Some(silent(format!("`subscribe` failed: {late}")));
        }
    };
    let pong = in_time(all, subscription.ping()).await?.and_then(Value::extract_error);
    let error = pong.err().filter(fault::is_missing_right)?;
    let effect = "each check of the subscription fills its `ACL LOG`";
    Some(sentinel.lacks(&rule(&error, "ping"), effect))
}

async fn in_time<F: Future>(all: &Sentinels, future: F) -> Option<F::Output> {
    within(|| timer_on(&all.timers, all.limit), future).await
}

fn rule(error: &RedisError, command: &str) -> String {
    if fault::forbids_command(error) { format!("+{command}") } else { format!("&{CHANNEL}") }
}
