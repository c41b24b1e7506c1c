//! A new connection whose server is judged first: what it is, and whether it runs the scripts.
//!
//! See "Why does each new connection try a lock first?" in DESIGN.md.

use std::time::Duration;

use ::redis::{Pipeline, PushInfo, RedisError, RedisResult, Value};

use super::flaw::Flaw;
use super::script::{self, Names};
use super::sent;
use super::server::{self, Mode, unfit_by_handshake, version};
use super::settings;
use super::tracking;
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::driven::Driven;
use crate::redis::connect::opener::{Opener, Target};
use crate::redis::fault;

pub(crate) struct Session<'a> {
    pub(crate) opener: &'a Opener,
    pub(crate) target: Target,
    pub(crate) driven: Driven,
    hears: bool,
    limit: Duration,
}

pub(crate) struct Handshake {
    pub(crate) hello: Value,
    /// Whether it reports what others do with locks.
    pub(crate) tracks: bool,
    pub(crate) names: Names,
    /// The replies about the server's settings, if they were requested.
    pub(crate) settings: Vec<Value>,
    pub(crate) flaws: Vec<Flaw>,
}

impl<'a> Session<'a> {
    /// Connects and logs in. The connection that renews tracks its locks, if the server can.
    pub(crate) async fn connect(
        opener: &'a Opener,
        target: Target,
        renews: bool,
        limit: Duration,
    ) -> Result<Self, Flaw> {
        let deadline = opener.connect_deadline;
        match opener.within(deadline, drive(opener, &target, renews)).await {
            Some(Ok((driven, hears))) => Ok(Self { opener, target, driven, hears, limit }),
            Some(Err(error)) => {
                let sentinel =
                    opener.within(deadline, Self::instead(opener, &target, &error)).await;
                Err(sentinel.flatten().unwrap_or_else(|| not_let_in(opener, &target, &error)))
            }
            None => Err(Flaw::late(opener, &target)),
        }
    }

    /// The Sentinel that may be at the address: it refuses a database or a server's password before it can be asked
    /// what it is.
    ///
    /// See "How is a Sentinel detected behind the URL of a server?" in DESIGN.md.
    async fn instead(opener: &'a Opener, target: &Target, error: &RedisError) -> Option<Flaw> {
        let is_login_refused = fault::is_login_refused(error);
        if target.term.is_some() || !(is_login_refused || fault::has_no_databases(error)) {
            return None;
        }
        let driven = Driven::open(&target.anonymous(is_login_refused)).await.ok()?;
        let (target, limit) = (target.clone(), opener.connect_deadline);
        let session = Self { opener, target, driven, hears: false, limit };
        let hello = session.call(Pipeline::new().cmd("HELLO")).await.ok()?.pop()?;
        let is_sentinel = Mode::of(&hello) == Mode::Sentinel;
        if is_sentinel { session.elsewhere(&hello).await.ok()? } else { None }
    }

    /// Asks for the version and, if wanted, the settings, and names the connection; a user without these rights can
    /// still lock.
    pub(crate) async fn handshake(&self, asks_settings: bool) -> Result<Handshake, Flaw> {
        let Opener { namespace, channels, client_name, .. } = self.opener;
        let mut pipeline = Pipeline::new();
        pipeline.cmd("HELLO");
        // Who only looks is asked for nothing more.
        if !self.opener.is_for_reading {
            pipeline.cmd("CLIENT").arg("SETNAME").arg(&**client_name);
            if self.hears {
                pipeline.add_command(tracking::turn_on());
            }
        }
        if !self.opener.is_for_reading {
            pipeline.add_command(script::exist(*channels));
        }
        if asks_settings {
            for query in settings::queries() {
                pipeline.add_command(query);
            }
        }
        let mut replies = self.call(&pipeline).await?.into_iter();
        let hello = replies.next().unwrap_or(Value::Nil);
        // Whether it has a name now makes no difference to locks.
        drop(replies.next());
        let tracks =
            self.hears && replies.next().is_some_and(|reply| reply.extract_error().is_ok());
        let names = if self.opener.is_for_reading {
            // It runs hardly any.
            Names::uncached(namespace.clone(), *channels)
        } else {
            Names::cached(namespace.clone(), *channels, &replies.next().unwrap_or(Value::Nil))
        };
        let mut flaws = Vec::from_iter(self.elsewhere(&hello).await?);
        flaws.extend(judge(&hello, &self.target));
        Ok(Handshake { hello, tracks, names, settings: replies.collect(), flaws })
    }

    /// What is there instead of a server for locks, with the URL of one. A Sentinel or a replica is asked for its
    /// `ROLE`.
    pub(crate) async fn elsewhere(&self, hello: &Value) -> Result<Option<Flaw>, Flaw> {
        if Mode::of(hello) != Mode::Sentinel && !server::is_replica(hello) {
            return Ok(None);
        }
        let role = self.call(Pipeline::new().cmd("ROLE")).await?.pop().unwrap_or(Value::Nil);
        let finding = server::elsewhere(hello, &role, &self.target);
        Ok(Some(Flaw::misdirected(finding, self.opener, &self.target)))
    }

    /// Sends the commands in one go; a server's error is one of the values.
    pub(crate) async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Flaw> {
        let client = &self.target.client;
        client.sends(pipeline.cmd_iter().next().map(sent::name).unwrap_or_default());
        let mut commands = self.driven.commands.clone();
        let answer = commands.send_packed_commands(pipeline, 0, pipeline.len());
        let Some(answer) = self.opener.within(self.limit, answer).await else {
            let (message, _) = client.progress.late("no answer", self.limit);
            let finding = Finding::new(Severity::Error, Code::Unreachable, message);
            let fault = self.opener.late(&client.progress);
            return Err(Flaw { finding, fault, error: None });
        };
        client.explain(answer).map_err(|error| Flaw::connection(&error, &self.target))
    }
}

async fn drive(opener: &Opener, target: &Target, renews: bool) -> RedisResult<(Driven, bool)> {
    if !renews {
        return Ok((Driven::open(&target.client).await?, false));
    }
    let reports = opener.reports.clone();
    let hear = move |push: PushInfo| tracking::pass_on(&push, &reports);
    Driven::open_tracking_if_offered(&target.client, &opener.offer, hear).await
}

fn not_let_in(opener: &Opener, target: &Target, error: &RedisError) -> Flaw {
    let mut flaw = Flaw::connection(error, target);
    if fault::About::Login(target.is_given).explain(error).2.is_empty() {
        flaw.fault = opener.unreached(flaw.fault);
    }
    flaw
}

/// Why a server with this handshake has no locks; unknown without the right to it.
fn judge(hello: &Value, target: &Target) -> Option<Flaw> {
    if let Some(unfit) = unfit_by_handshake(hello) {
        return Some(Flaw::unfit(unfit, target));
    }
    if version(hello).is_some() {
        return None;
    }
    match hello.clone().extract_error() {
        Err(error) if fault::is_missing_right(&error) => None,
        Err(error) => Some(Flaw::connection(&error, target)),
        Ok(_) => Some(Flaw::unexpected("`HELLO`", target)),
    }
}
