//! What one Sentinel answers, and what its user may not do there.

use std::time::Duration;

use ::redis::{RedisError, Value};
use tokio::runtime::Handle;

use super::failures;
use crate::backend::redis::connect::driven::Driven;
use crate::backend::redis::fault;
use crate::backend::redis::fault::sentinel::{Reason, explained};
use crate::backend::redis::pubsub::subscription::Subscription;
use crate::backend::redis::topology::sentinels::{self, Sentinel};
use crate::backend::redis::topology::votes::Vote;
use crate::backend::redis::topology::watch::CHANNEL;
use crate::check::{Code, Finding, Severity};
use crate::types::clock::{timer_on, within};

/// Everything that one of them said.
pub(super) struct Said {
    /// `host:port`.
    pub(super) name: String,
    /// The reason for none is a finding, which is worse where no other Sentinel has a vote.
    pub(super) vote: Vote<Finding>,
    /// What is wrong besides.
    pub(super) findings: Vec<Finding>,
}

/// How a Sentinel is asked.
pub(super) struct SentinelCheck {
    pub(super) sentinel: Sentinel,
    pub(super) primary: String,
    pub(super) timers: Handle,
    /// How long each answer may take.
    pub(super) limit: Duration,
}

impl SentinelCheck {
    pub(super) async fn run(self) -> Said {
        let vote = self.in_time(self.vote()).await;
        let vote = vote
            .unwrap_or_else(|| Vote::None(silent(format!("no answer within {:?}", self.limit))));
        // Where a right is missing, others may be too.
        let is_reached = match &vote {
            Vote::Primary(_) | Vote::Unknown(_) => true,
            Vote::None(finding) => finding.code() == Code::MissingRight,
        };
        let findings = if is_reached { self.subscribe().await } else { None };
        let findings = findings.into_iter().collect();
        Said { name: self.sentinel.name, vote, findings }
    }

    async fn vote(&self) -> Vote<Finding> {
        let vote = async {
            let mut driven = Driven::open(&self.sentinel.client).await?;
            sentinels::request_vote(&mut driven.commands, &self.primary).await
        };
        vote.await.unwrap_or_else(|error| Vote::None(self.failed(&error)))
    }

    /// Subscribes as a locker does, and checks that the subscription lives.
    async fn subscribe(&self) -> Option<Finding> {
        let subscribing = Subscription::open(&self.sentinel.client, CHANNEL);
        let mut subscription = match self.in_time(subscribing).await {
            Some(Ok(subscription)) => subscription,
            Some(Err(error)) if fault::is_missing_right(&error) => return Some(self.deaf(&error)),
            Some(Err(error)) => {
                let cause = fault::explain(&error).1;
                return Some(silent(format!("`subscribe` failed: {cause}")));
            }
            None => return Some(silent("`subscribe` was not answered in time".to_owned())),
        };
        let pong = self.in_time(subscription.ping()).await?.and_then(Value::extract_error);
        let error = pong.err().filter(fault::is_missing_right)?;
        let effect = "each check of the subscription fills its `ACL LOG`";
        Some(self.lacks(&rule(&error, "ping"), effect))
    }

    fn deaf(&self, error: &RedisError) -> Finding {
        let effect = "this process gets no notification of a failover, and notices it late";
        self.lacks(&rule(error, "subscribe"), effect)
    }

    /// Why there is no vote.
    fn failed(&self, error: &RedisError) -> Finding {
        let (reason, cause, advice) = explained(&self.sentinel.url(), error);
        let code = match reason {
            Reason::NoSentinel => Code::NotASentinel,
            Reason::Refused | Reason::Untrusted => Code::Refused,
            Reason::Silent => Code::SentinelSilent,
            Reason::MissingRight => {
                let effect = "it does not say where the primary is";
                return self.lacks(&rule(error, "sentinel|get-master-addr-by-name"), effect);
            }
        };
        Finding::new(Severity::Warning, code, cause).advise(advice)
    }

    fn lacks(&self, rule: &str, effect: &str) -> Finding {
        let info = self.sentinel.client.info.redis_settings();
        let user = info.username().unwrap_or("default");
        failures::missing_right(Severity::Warning, rule, user, effect)
    }

    async fn in_time<F: Future>(&self, future: F) -> Option<F::Output> {
        within(|| timer_on(&self.timers, self.limit), future).await
    }
}

fn silent(message: String) -> Finding {
    Finding::new(Severity::Warning, Code::SentinelSilent, message)
}

/// The rule that would allow it.
fn rule(error: &RedisError, command: &str) -> String {
    if fault::forbids_command(error) { format!("+{command}") } else { format!("&{CHANNEL}") }
}
