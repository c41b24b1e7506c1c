//! The Sentinels that name the primary, and queries to them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, ConnectionInfo, FromRedisValue, RedisError, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::elections::{Election, Elections};
use super::votes::{Vote, Votes};
use crate::core::backend::Fault;
use crate::core::process::clock::{boot_time, timer_on, within};
use crate::core::types::credentials::Credentials;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::remedy;
use crate::core::types::secret::Secret;
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::address::{self, SentinelGroup};
use crate::redis::connect::client::Client;
use crate::redis::connect::driven::Driven;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::role;
use crate::redis::connect::secrets::SecretSource;
use crate::redis::fault;
use crate::redis::fault::sentinel::{self, SentinelReason};
use crate::redis::wire::flaw::{Flaw, missing_right};

/// How long the others may take after the first answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// The Sentinels of one primary.
///
/// See "Why not the Sentinel client of the `redis` crate?" in DESIGN.md.
pub(crate) struct Sentinels {
    pub(crate) each: Vec<Sentinel>,
    pub(crate) primary: String,
    pub(crate) name: Arc<str>,
    pub(crate) timers: Handle,
    pub(crate) limit: Duration,
    pub(crate) elections: Arc<Elections>,
}

#[derive(Clone)]
pub(crate) struct Sentinel {
    pub(crate) client: Client,
    credentials: SecretSource<Credentials>,
    pub(crate) name: String,
}

impl Sentinels {
    /// The opener is the primary's.
    ///
    /// # Errors
    /// When the credentials are in files that cannot be read or are not valid.
    pub(super) fn new(
        opener: &Opener,
        group: SentinelGroup,
        credentials: Option<Secret<Credentials>>,
    ) -> Result<Self, LockError> {
        let limit = opener.connect_deadline / 2;
        let timers = opener.timers.clone();
        let credentials =
            SecretSource::new("Sentinels' credentials", credentials, timers, |_| Ok(()))?;
        let sentinel = |info: ConnectionInfo| Sentinel {
            name: address::endpoint(&info),
            client: opener.client_for(info, limit),
            credentials: credentials.clone(),
        };
        Ok(Self {
            each: group.sentinels.into_iter().map(sentinel).collect(),
            primary: group.primary,
            name: Arc::clone(&opener.server),
            timers: opener.timers.clone(),
            limit,
            elections: Arc::default(),
        })
    }

    /// The primary, as just learned, or as most of them answer.
    pub(crate) async fn primary(&self) -> Result<(Endpoint, Election), Fault> {
        if let Some(known) = self.elections.recent() {
            return Ok(known);
        }
        let before = self.elections.number();
        let votes = self.votes().await;
        let elected = votes.elected().ok_or_else(|| self.unknown(&votes))?;
        let settled = self.elections.settle(before, elected);
        settled.ok_or_else(|| sentinel::disagree(&self.name, votes.named()))
    }

    /// Asks them although a primary is known: an announcement may have been lost.
    pub(crate) async fn refresh(&self) {
        let before = self.elections.number();
        if let Some(elected) = self.votes().await.elected() {
            self.elections.settle(before, elected);
        }
    }

    /// Asks all of them at once.
    ///
    /// See "Why are all Sentinels queried at once, and which answer wins?" in DESIGN.md.
    async fn votes(&self) -> Votes<Flaw> {
        let mut asked = JoinSet::new();
        for sentinel in &self.each {
            let sentinel = sentinel.clone();
            let timers = self.timers.clone();
            asked.spawn(sentinel.vote(self.primary.clone(), timers, self.limit));
        }
        let mut votes = Votes::of(self.each.len());
        let mut first = None;
        while !votes.are_decided() {
            let left = first.map(|first| PATIENCE.saturating_sub(boot_time().since(first)));
            let next = asked.join_next();
            let vote = match left {
                Some(left) => within(|| timer_on(&self.timers, left), next).await.flatten(),
                None => next.await,
            };
            let Some(vote) = vote else { break };
            // One that panicked or was cancelled has no vote.
            let ended = || fault::runtime_ended(&self.name);
            votes.add(vote.unwrap_or_else(|_| unanswered(ended(), silent(ended().message))));
            first = first.or_else(|| votes.has_primary().then(boot_time));
        }
        votes
    }

    fn unknown(&self, votes: &Votes<Flaw>) -> Fault {
        let Self { name, primary, .. } = self;
        let reasons: Vec<_> = votes.reasons().map(|flaw| &flaw.fault).collect();
        let unknown = format!("the Sentinels watch no primary named {primary:?}");
        if reasons.is_empty() {
            let watched = Vec::from_iter(votes.watched()).join(", ");
            let watched = if watched.is_empty() { watched } else { format!(", but {watched}") };
            let fault = Fault::new(LockErrorKind::Refused, format!("{name}: {unknown}{watched}"));
            return fault.advise("put its name into the URL, behind the hosts");
        }
        let is_refused = reasons.iter().all(|fault| fault.kind == LockErrorKind::Refused);
        let kind = if is_refused { LockErrorKind::Refused } else { LockErrorKind::Unavailable };
        let messages = reasons.iter().map(|fault| fault.message.as_str());
        let others = votes.has_unknown().then_some("the others watch no primary of that name");
        let list: Vec<_> = messages.chain(others).collect();
        let message =
            format!("{name}: no Sentinel names the primary {primary:?}: {}", list.join("; "));
        let advice = remedy::first(reasons.iter().map(|fault| &*fault.advice));
        let source = reasons.first().and_then(|fault| fault.source.clone());
        Fault { source, ..Fault::new(kind, message) }.advise(advice)
    }
}

impl Sentinel {
    /// The primary that this one names, within the limit.
    pub(crate) async fn names(&self, all: &Sentinels) -> Option<Endpoint> {
        let vote = self.clone().vote(all.primary.clone(), all.timers.clone(), all.limit).await;
        vote.primary().cloned()
    }

    pub(crate) async fn vote(self, primary: String, timers: Handle, limit: Duration) -> Vote<Flaw> {
        // Others may ask it at the same time.
        let this = self.afresh();
        let vote = async {
            let known = this.logged_in(limit).await.map_err(|error| this.failed(&error))?;
            known.request_vote(&primary).await.map_err(|error| known.failed(&error))
        };
        if let Some(vote) = within(|| timer_on(&timers, limit), vote).await {
            return vote.unwrap_or_else(Vote::None);
        }
        let (message, advice) = this.client.progress.late("no answer", limit);
        let fault = Fault::unavailable(format!("{}: {message}", this.name)).advise(advice.clone());
        unanswered(fault, silent(message).advise(advice))
    }

    /// This Sentinel, for a connection of its own.
    pub(crate) fn afresh(self) -> Self {
        Self { client: self.client.afresh(), ..self }
    }

    /// This Sentinel with the login of a new connection, read within `limit`.
    pub(crate) async fn logged_in(&self, limit: Duration) -> RedisResult<Self> {
        let login = self.credentials.login(limit).await.map_err(io::Error::from)?;
        let client = self.client.with(login.put_into(self.client.info.clone()));
        Ok(Self { client, ..self.clone() })
    }

    async fn request_vote(&self, primary: &str) -> RedisResult<Vote<Flaw>> {
        let commands = &mut Driven::open(&self.client).await?.commands;
        let mut command = Cmd::new();
        command.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(primary);
        self.client.sends("SENTINEL GET-MASTER-ADDR-BY-NAME");
        let reply = self.client.explain(commands.send_packed_command(&command).await)?;
        let reply = reply.extract_error()?;
        if reply == Value::Nil {
            // None where the user may not ask for them.
            let role = commands.send_packed_command(Cmd::new().arg("ROLE")).await?;
            return Ok(Vote::Unknown(role::watched(&role)));
        }
        let (host, port) = <(String, u16)>::from_redis_value(reply)?;
        Ok(Vote::Primary(Endpoint { host, port }))
    }

    fn failed(&self, error: &RedisError) -> Flaw {
        let (reason, cause, advice) = sentinel::explained(&self.url(), error);
        let finding = |code| Finding::new(Severity::Warning, code, cause).advise(advice);
        let finding = match reason {
            SentinelReason::NoSentinel => finding(Code::NotASentinel),
            SentinelReason::Refused if fault::missing_secret(error).is_some() => {
                finding(Code::Credentials)
            }
            SentinelReason::Refused => finding(Code::Refused),
            SentinelReason::Silent => finding(Code::SentinelSilent),
            SentinelReason::MissingRight => {
                let effect = "it does not say where the primary is";
                self.lacks("+sentinel|get-master-addr-by-name", effect)
            }
        };
        Flaw { finding, fault: sentinel::fault(&self.name, &self.url(), error), error: None }
    }

    pub(crate) fn lacks(&self, rule: &str, effect: &str) -> Finding {
        let info = self.client.info.redis_settings();
        let user = info.username().unwrap_or("default");
        missing_right(Severity::Warning, rule, user, effect)
    }

    /// The URL of a Redis server at this address.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", address::scheme(&self.client.info), self.name)
    }
}

fn unanswered(fault: Fault, finding: Finding) -> Vote<Flaw> {
    Vote::None(Flaw { finding, fault, error: None })
}

pub(crate) fn silent(message: String) -> Finding {
    Finding::new(Severity::Warning, Code::SentinelSilent, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::background::background;
    use crate::core::settings::Settings;
    use crate::redis::connect::address::AddressKind;

    fn group() -> Sentinels {
        let url = "redis-sentinel://a,b,c/mm".to_owned();
        let settings = Settings { url, ..Settings::default() };
        let (opener, way) = Opener::new(&settings, background().unwrap()).unwrap();
        let AddressKind::Elected(group) = way else { panic!("it is a URL of Sentinels") };
        Sentinels::new(&opener, group, None).unwrap()
    }

    fn kind(votes: impl IntoIterator<Item = Vote<Flaw>>) -> LockErrorKind {
        let mut all = Votes::of(3);
        votes.into_iter().for_each(|vote| all.add(vote));
        group().unknown(&all).kind
    }

    /// A silent Sentinel may name the primary later, whatever the others say.
    #[test]
    fn no_primary_is_refused_while_a_sentinel_may_name_it() {
        let refused = || {
            unanswered(Fault::new(LockErrorKind::Refused, "wrong password"), silent(String::new()))
        };
        let silent = || unanswered(Fault::unavailable("no answer"), silent(String::new()));
        let unknown = || Vote::Unknown(Vec::new());
        assert_eq!(kind([unknown(), unknown(), unknown()]), LockErrorKind::Refused);
        assert_eq!(kind([refused(), refused(), refused()]), LockErrorKind::Refused);
        assert_eq!(kind([refused(), unknown(), refused()]), LockErrorKind::Refused);
        assert_eq!(kind([refused(), silent(), refused()]), LockErrorKind::Unavailable);
        assert_eq!(kind([unknown(), silent(), unknown()]), LockErrorKind::Unavailable);
    }
}
