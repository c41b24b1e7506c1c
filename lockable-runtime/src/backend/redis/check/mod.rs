//! The check of a server: what locks do is done once, with a lock that nobody else knows, and what
//! they depend on is looked at.

use std::future::Future;

use ::redis::{Pipeline, RedisError, RedisResult, Value};

use self::rights::Missing;
use crate::backend::Fault;
use crate::backend::redis::wire::connection::Opener;
use crate::backend::redis::wire::driven::Driven;
use crate::backend::redis::wire::fault;
use crate::backend::redis::wire::greeting::{Introduced, introduce};
use crate::backend::redis::wire::script::{Names, Script};
use crate::backend::redis::wire::server::{Mode, Unfit};
use crate::check::{Code, Finding, Report, Severity};
use crate::types::clock::{timer_on, within};
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::types::token::Origin;

mod clock;
mod proxy;
mod rehearsal;
mod rights;
mod settings;
mod subscribers;
mod version;

/// Checks a server on connections of the check's own; one that gives no answer is asked no more.
pub(super) async fn check(opener: Opener, prefix: String) -> Report {
    let mut report = Report::new(&opener.server);
    if let Err(finding) = examine(&opener, &prefix, &mut report).await {
        report.add([finding]);
    }
    report
}

/// The report where the check itself ended midway.
pub(super) fn unchecked(server: &str) -> Report {
    let mut report = Report::new(server);
    report.add([silent(&fault::runtime_ended(server))]);
    report
}

/// The error is a finding after which there is nothing more to look at.
async fn examine(opener: &Opener, prefix: &str, report: &mut Report) -> Result<(), Finding> {
    let server = Checked::connect(opener).await?;
    let Introduced { hello, scripts } = server.greet().await?;
    version::look(&hello, report)?;
    let scripts = scripts.map_err(|error| rehearsal::not_done("loading the scripts", &error))?;
    report.add(server.nodes(Mode::of(&hello)).await?);
    let is_replica = version::is_replica(&hello);
    if is_replica {
        report.add([replica()]);
    }
    // No key begins with an unsound prefix, which is a finding of every backend's.
    if let Ok(probe) = Probe::new(prefix, scripts) {
        let mut missing = Missing::of(&server, &probe).await?;
        let subscribed = rehearsal::subscribe(&server, &probe, &mut missing, report).await;
        report.add(missing.findings(&server, &probe));
        if !is_replica {
            report.add(rehearsal::run(&server, &probe, subscribed, &missing).await?);
            report.add(rehearsal::renew_together(&server, &probe).await?);
        }
    }
    report.add(subscribers::look(&server).await?);
    report.add(proxy::look(&server).await?);
    settings::look(&server, report).await?;
    clock::measure(&server, report).await
}

/// The lock that the check does everything with.
struct Probe {
    key: LockKey,
    /// Another one, for commands one by one: they may leave it taken for a moment.
    tried: LockKey,
    /// Where the grants of its waiters are handed to.
    origin: Origin,
    prefix: String,
    scripts: Names,
}

impl Probe {
    fn new(prefix: &str, scripts: Names) -> Result<Self, LockError> {
        let origin = Origin::draw()?;
        let key = |what| LockKey::prefixed(prefix, &format!("lockable:{what}:{origin}"));
        let (key, tried) = (key("probe")?, key("tried")?);
        Ok(Self { key, tried, origin, prefix: prefix.to_owned(), scripts })
    }

    fn keeps_scripts(&self) -> bool {
        Script::ALL.into_iter().all(|script| self.scripts.of(script).is_some())
    }
}

/// A server that is being checked.
struct Checked<'a> {
    opener: &'a Opener,
    driven: Driven,
}

impl<'a> Checked<'a> {
    async fn connect(opener: &'a Opener) -> Result<Self, Finding> {
        let limit = opener.connect_deadline;
        match within(|| timer_on(&opener.timers, limit), opener.connect()).await {
            Some(Ok(driven)) => Ok(Self { opener, driven }),
            Some(Err(error)) => {
                Err(rights::not_selected(&error, user(opener))
                    .unwrap_or_else(|| not_answered(&error)))
            }
            None => Err(silent(&fault::connect_timeout(&opener.server, limit))),
        }
    }

    async fn greet(&self) -> Result<Introduced, Finding> {
        let mut commands = self.driven.commands.clone();
        self.answer(introduce(&mut commands)).await
    }

    /// Whether the server is of a cluster; the error is one of several nodes, which refuses most keys.
    async fn nodes(&self, mode: Mode) -> Result<Option<Finding>, Finding> {
        let mut pipeline = Pipeline::new();
        mode.ask(&mut pipeline);
        if !pipeline.is_empty()
            && let Some(unfit) = Unfit::by_answers(&self.call(&pipeline).await?)
        {
            return Err(unfit.finding());
        }
        Ok((mode == Mode::Cluster).then(cluster))
    }

    /// Sends the commands in one go; an error of the server's is one of the values.
    async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Finding> {
        let mut commands = self.driven.commands.clone();
        self.answer(commands.send_packed_commands(pipeline, 0, pipeline.len())).await
    }

    async fn answer<T>(&self, reply: impl Future<Output = RedisResult<T>>) -> Result<T, Finding> {
        let limit = self.opener.command_deadline;
        match within(|| timer_on(&self.opener.timers, limit), reply).await {
            Some(answer) => answer.map_err(|error| not_answered(&error)),
            None => Err(silent(&Fault::no_answer(&self.opener.server, limit))),
        }
    }

    fn user(&self) -> &str {
        user(self.opener)
    }
}

fn user(opener: &Opener) -> &str {
    opener.client.get_connection_info().redis_settings().username().unwrap_or("default")
}

/// A connection that could not be opened, or that broke.
fn not_answered(error: &RedisError) -> Finding {
    let (kind, cause, advice) = fault::explain(error);
    let code = if kind == LockErrorKind::Refused { Code::Refused } else { Code::Unreachable };
    let advice = if advice.is_empty() { REACH } else { advice };
    Finding::new(Severity::Wrong, code, cause, advice)
}

fn silent(fault: &Fault) -> Finding {
    Finding::new(Severity::Wrong, Code::Unreachable, fault.message.clone(), REACH)
}

fn cluster() -> Finding {
    Finding::new(
        Severity::Risky,
        Code::Cluster,
        "this server is in a cluster, and refuses keys once that has several shards",
        "let the cluster keep its one shard, or keep locks on a server that is in no cluster",
    )
}

fn replica() -> Finding {
    Finding::new(
        Severity::Wrong,
        Code::Replica,
        "this server is a replica, which takes no writes",
        "put the address of its primary into the URL",
    )
}

const REACH: &str = "see whether the server runs there, whether a firewall lets this machine through, \
                     and whether the URL says `rediss://` where the server speaks TLS";
