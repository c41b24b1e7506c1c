//! What the user of a connection may not do, rule by rule: each command that locks need is tried by
//! itself, since a script reports only the first that is missing.
//!
//! See "Why does the check try each command for its ACL right?" in DESIGN.md.

use std::collections::BTreeSet;

use ::redis::{Cmd, RedisError, ServerErrorKind};

use crate::core::naming::namespace::{Channels, Namespace};
use crate::core::types::owner::Origin;
use crate::core::types::slot::Slot;
use crate::findings::{Code, Finding, Severity};
use crate::operators::check::{Report, Role};
use crate::redis::connect::opener::Opener;
use crate::redis::fault;
use crate::redis::fault::rights::{channels, companions};
use crate::redis::wire::command::pipeline;
use crate::redis::wire::delete::Delete;
use crate::redis::wire::flaw::{failed, lacking};
use crate::redis::wire::probe::Probe;
use crate::redis::wire::session::Session;

/// How each command is tried; a word in capitals is a key or a channel. Each kind of key is read and written, because a
/// rule may allow only one of them.
const TRIED: [&str; 26] = [
    "time",
    // A script that does nothing, and one that no server has: the dry run has those of the verbs.
    "eval return 0",
    "evalsha 0000000000000000000000000000000000000000 0",
    "set LOCK probe PX 1000",
    "get LOCK",
    "pttl LOCK",
    "pexpire LOCK 1000",
    "del LOCK",
    "set FENCE 1 PX 1000",
    "incr FENCE",
    // A user who may set nothing, and delete nothing, would leave it there for ever.
    "pexpire FENCE 1000",
    "get FENCE",
    "rpush QUEUE probe",
    "lpush QUEUE probe",
    "pexpire QUEUE 1000",
    "lpos QUEUE probe",
    "lindex QUEUE 0",
    "lrem QUEUE 0 probe",
    "lpop QUEUE",
    // These two only clean up.
    "del FENCE",
    "del QUEUE",
    "script|exists 0000000000000000000000000000000000000000",
    "client|setname NAME",
    "client|tracking ON OPTIN NOLOOP",
    "client|caching YES",
    "client|tracking OFF",
];

/// As [`TRIED`], for looking at locks.
const LOOKED: [&str; 6] =
    ["scan 0", "getrange LOCK 0 -1", "llen QUEUE", "lrange QUEUE 0 -1", "dbsize", "client|list"];

fn tried(channels: Channels, role: Role) -> Vec<&'static str> {
    match role {
        Role::App => of_app(channels).collect(),
        Role::Operator => of_app(channels).chain(LOOKED).collect(),
        Role::Reader => LOOKED.into_iter().chain(kind(channels).reader.iter().copied()).collect(),
    }
}

struct ServerKind {
    app: &'static [&'static str],
    /// What a reader may do besides, and an app may too.
    reader: &'static [&'static str],
    /// The rights that wake-ups need, and nothing else does.
    wake_ups: &'static [&'static str],
}

/// Permits need `mget` and `exists`. So do locks that a server frees together; fence counters that it seeds together
/// need `mget` and `copy`. A cluster frees the locks of a batch one by one.
fn kind(channels: Channels) -> ServerKind {
    match channels {
        Channels::Plain => ServerKind {
            app: &[
                "mget LOCK",
                "copy FENCE QUEUE",
                "exists QUEUE",
                "publish CHANNEL probe",
                "pubsub|numsub CHANNEL",
            ],
            reader: &["pttl LOCK", "time", "pubsub|numsub CHANNEL"],
            wake_ups: &["+publish", "+subscribe", "+pubsub|numsub"],
        },
        Channels::Sharded => ServerKind {
            app: &[
                "spublish CHANNEL probe",
                "pubsub|shardnumsub CHANNEL",
                "sunsubscribe CHANNEL",
                "asking",
                "cluster|slots",
                "mget LOCK",
                "exists LOCK",
                "publish REVOKED probe",
            ],
            reader: &["pttl LOCK", "time", "pubsub|shardnumsub CHANNEL", "asking", "cluster|slots"],
            wake_ups: &["+spublish", "+ssubscribe", "+sunsubscribe", "+pubsub|shardnumsub"],
        },
    }
}

const POLLS: (Severity, &str) = (
    Severity::Warning,
    "waiting calls poll about once a second, so that a busy lock serves few of them",
);

fn of_app(channels: Channels) -> impl Iterator<Item = &'static str> {
    TRIED.into_iter().chain(kind(channels).app.iter().copied())
}

/// What only lockers try that wait for replicas.
const WAITED: &str = "wait 0 1";

pub(super) struct Missing {
    rules: BTreeSet<String>,
    /// The rules of names about which nothing is known: no command with such a name is allowed.
    unproven: BTreeSet<String>,
    channels: Channels,
    role: Role,
    is_mute: bool,
}

impl Missing {
    pub(super) async fn of(
        session: &Session<'_>,
        probe: &Probe,
        role: Role,
        delete: Option<Delete>,
        report: &mut Report,
    ) -> Result<Self, Finding> {
        let channels = session.opener.channels;
        let rules = BTreeSet::new();
        let unproven = BTreeSet::new();
        let mut missing = Self { rules, unproven, channels, role, is_mute: false };
        let mut proven = BTreeSet::new();
        let mut all = tried(channels, role);
        if role != Role::Reader {
            all.extend(delete.map(Delete::tried));
            all.extend((session.opener.replicas > 0).then_some(WAITED));
        }
        let commands = all.iter().map(|tried| command(probe, tried, session.opener));
        let commands = pipeline(commands);
        for (tried, reply) in all.into_iter().zip(session.call(&commands).await?) {
            let error = reply.extract_error().err();
            if let Some(names) = names(probe, tried) {
                let names = missing.of_role(names);
                let is_unproven = error.as_ref().is_some_and(is_forbidden);
                if is_unproven { &mut missing.unproven } else { &mut proven }.insert(names);
            }
            if let Some(error) = error {
                report.add(missing.take(probe, tried, &error)?);
            }
        }
        missing.unproven.retain(|names| !proven.contains(names));
        Ok(missing)
    }

    /// The error is a command that the server does not have, or not as locks need it.
    fn take(
        &mut self,
        probe: &Probe,
        tried: &'static str,
        error: &RedisError,
    ) -> Result<Option<Finding>, Finding> {
        let cause = fault::explain(error).1;
        let found = match name(tried) {
            _ if fault::is_missing_right(error) => {
                self.rules.insert(self.rule(probe, tried, error));
                return Ok(None);
            }
            // What a server does not have, or hides, is no right.
            _ if self.role == Role::Reader => return Ok(None),
            // It may be sent where something is subscribed to: so Valkey 8.0 answers.
            "sunsubscribe" if error.code() == Some("NOSUB") => return Ok(None),
            name @ ("spublish" | "pubsub|shardnumsub" | "sunsubscribe")
                if !fault::is_redirect(error) =>
            {
                self.is_mute = true;
                unnotified(self.channels, name, &cause)
            }
            name @ ("publish" | "pubsub|numsub") => {
                self.is_mute = true;
                no_wake_ups(name, &cause)
            }
            "client|tracking" if tried.contains("ON") => untracked(&cause),
            // What is no right and no tracking makes no difference, and without the others there is another way.
            "copy" | "delex" | "delifeq" | "evalsha" | "script|exists" => return Ok(None),
            name if name.starts_with("client|") => return Ok(None),
            _ if error.kind() != ServerErrorKind::ResponseError.into() => return Ok(None),
            name @ "eval" => return Err(failed(name, &cause, fault::NO_SCRIPTS)),
            name @ "wait" => return Err(failed(name, &cause, fault::NO_WAIT)),
            name => return Err(failed(name, &cause, fault::NO_COMMAND)),
        };
        Ok(Some(found))
    }

    pub(super) fn add_of_subscription(&mut self, probe: &Probe, command: &str, error: &RedisError) {
        self.rules.insert(self.rule(probe, &format!("{command} CHANNEL"), error));
    }

    /// The rule that would allow it; a reader only needs to read.
    fn rule(&self, probe: &Probe, tried: &str, error: &RedisError) -> String {
        self.of_role(rule(probe, tried, error))
    }

    fn of_role(&self, rule: String) -> String {
        let is_key = rule.starts_with('~');
        if self.role == Role::Reader && is_key { format!("%R{rule}") } else { rule }
    }

    /// Whether a missing right, already a finding, is why an operation failed.
    pub(super) fn explain(&self, error: &RedisError) -> bool {
        fault::is_missing_right(error) && !self.rules.is_empty()
    }

    /// Whether a missing right, already a finding, keeps wake-ups from arriving.
    pub(super) fn explains_silence(&self) -> bool {
        self.is_mute || self.rules.iter().any(|rule| self.is_of_wake_ups(rule))
    }

    fn is_of_wake_ups(&self, rule: &str) -> bool {
        kind(self.channels).wake_ups.contains(&rule) || rule.starts_with('&')
    }

    pub(super) fn findings(&self, user: &str) -> Vec<Finding> {
        let finding = |rule: &String| {
            let (severity, effect) = self.effect(rule);
            lacking(severity, rule, user, effect)
        };
        let unproven: Vec<_> = self.unproven.iter().map(String::as_str).collect();
        let findings = self.rules.iter().map(finding);
        findings.map(|one| one.granting_besides(&unproven.join(" "))).collect()
    }

    fn effect(&self, rule: &str) -> (Severity, &'static str) {
        let is_of_look = LOOKED.iter().any(|tried| rule.strip_prefix('+') == Some(name(tried)));
        if is_of_look || self.role == Role::Reader {
            return of_look(rule);
        }
        match rule {
            "+evalsha" => (Severity::Warning, "each call sends the whole text of a script"),
            "+script|exists" => (Severity::Info, "each new connection sends the scripts again"),
            "+lpush" => (Severity::Warning, "a waiter that cannot be reached now loses its place"),
            "+client|setname" => (Severity::Info, "no listing says which process has a lock"),
            "+client|tracking" | "+client|caching" => (Severity::Info, UNTRACKED),
            "+mget" | "+exists" if self.channels == Channels::Sharded => {
                (Severity::Warning, "no permit can be acquired")
            }
            "+publish" | "+subscribe" if !self.is_of_wake_ups(rule) => {
                (Severity::Info, "no holder can be asked to stop")
            }
            "+copy" => (Severity::Info, "fence counters are seeded one by one"),
            "+mget" | "+exists" => (
                Severity::Warning,
                "no permit can be acquired, and concurrent releases are not batched",
            ),
            "+delex" | "+delifeq" => (Severity::Info, "each release runs a script"),
            "+ping" => (Severity::Warning, "waiting calls fill the server's `ACL LOG`"),
            "+asking" => {
                (Severity::Warning, "a lock is unavailable while its slot moves to another node")
            }
            rule if self.is_of_wake_ups(rule) => POLLS,
            _ => (Severity::Error, "no lock can be acquired"),
        }
    }
}

fn of_look(rule: &str) -> (Severity, &'static str) {
    match rule {
        "+scan" => (Severity::Error, "no locks can be listed"),
        "+lrange" => (Severity::Error, "no waiters can be listed"),
        "+dbsize" => (Severity::Info, "the duration of a listing is unknown"),
        "+time" => (Severity::Info, "the difference of the clocks is unknown"),
        "+client|list" => (Severity::Info, "the names of processes are unknown"),
        "+pubsub|numsub" | "+pubsub|shardnumsub" => {
            (Severity::Info, "it is unknown which waiters listen")
        }
        "+asking" => {
            (Severity::Warning, "a lock cannot be read while its slot moves to another node")
        }
        _ => (Severity::Error, "no lock can be read"),
    }
}

/// What follows where the server does not send which locks others have changed.
const UNTRACKED: &str =
    "a holder notices that its lock was deleted after four tenths of the lease at most";

fn untracked(cause: &str) -> Finding {
    let message = format!("{UNTRACKED}: `CLIENT TRACKING` failed: {cause}");
    Finding::new(Severity::Info, Code::Untracked, message)
}

fn name(tried: &str) -> &str {
    tried.split(' ').next().unwrap_or_default()
}

fn command(probe: &Probe, tried: &str, opener: &Opener) -> Cmd {
    let slot = Slot::of(&probe.tried);
    let namespace = &probe.namespace;
    let mut command = Cmd::new();
    for word in tried.split([' ', '|']) {
        match word {
            "LOCK" => command.arg(probe.tried.as_str()),
            "FENCE" => command.arg(probe.names.namespace.fence(slot)),
            "QUEUE" => command.arg(probe.names.namespace.queue(&probe.tried)),
            "CHANNEL" => command.arg(opener.channels.of_wake_ups(namespace, probe.origin, slot)),
            "REVOKED" => command.arg(revocations(namespace, probe.origin)),
            "NAME" => command.arg(&*opener.client_name),
            word => command.arg(word),
        };
    }
    command
}

/// The shape of the channels on which holders are asked to stop.
pub(super) fn revocations(namespace: &Namespace, origin: Origin) -> String {
    format!("{namespace}:revoke:{origin}")
}

/// The rule that would allow it. Only the server's words say what it forbids: the command, the key or the channel.
fn rule(probe: &Probe, tried: &str, error: &RedisError) -> String {
    let of_names = names(probe, tried).filter(|_| !fault::forbids_command(error));
    of_names.unwrap_or_else(|| format!("+{}", name(tried)))
}

fn names(probe: &Probe, tried: &str) -> Option<String> {
    Some(match tried.split(' ').nth(1)? {
        "LOCK" => format!("~{}*", probe.prefix),
        "FENCE" | "QUEUE" => companions(&probe.namespace),
        // Whom a channel belongs to is no matter to those who count its listeners.
        "CHANNEL" | "REVOKED" if !tried.starts_with("pubsub") => channels(&probe.namespace),
        _ => return None,
    })
}

/// Whether the user may not send the command, whatever it is about.
fn is_forbidden(error: &RedisError) -> bool {
    fault::is_missing_right(error) && fault::forbids_command(error)
}

pub(super) fn unnotified(channels: Channels, what: &str, cause: &str) -> Finding {
    let code = match channels {
        Channels::Plain => Code::GrantNotReceived,
        Channels::Sharded => Code::NoShardChannel,
    };
    let message = format!(
        "waiting calls get no notifications and poll about once a second: {what} failed: {cause}"
    );
    Finding::new(Severity::Warning, code, message)
}

/// As [`unnotified`], of a server without the commands of wake-ups.
pub(super) fn no_wake_ups(what: &str, cause: &str) -> Finding {
    let finding = unnotified(Channels::Plain, what, cause);
    finding.advise("use a server that has `PUBLISH` and `PUBSUB NUMSUB`, also in scripts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::naming::namespace::{Channels, Namespace};
    use crate::redis::fault::rights::{least, least_of_nodes, of_operators};
    use crate::redis::wire::script::Names;

    #[test]
    fn every_right_of_the_documented_lines_is_tried() {
        let namespace = Namespace::default();
        let keys = [companions(&namespace), channels(&namespace), "~disLock:*".to_owned()];
        let all = |channels, others: &[&'static str]| {
            let names = of_app(channels).map(name).chain(others.iter().copied());
            names.map(|name| format!("+{name}")).chain(keys.clone()).collect::<BTreeSet<_>>()
        };
        // What a subscription does, and what connecting does.
        let of_server = all(Channels::Plain, &["subscribe", "ping", "select"]);
        assert_eq!(of_server, least().map(str::to_owned).collect());
        let of_node = all(Channels::Sharded, &["ssubscribe", "subscribe", "ping"]);
        assert_eq!(of_node, least_of_nodes().map(str::to_owned).collect());
    }

    #[test]
    fn every_right_to_look_is_tried() {
        let keys = ["%R~disLock:*", "%R~lockable:*"].map(str::to_owned);
        for (number, channels, others) in
            [(0, Channels::Plain, &["+select"][..]), (1, Channels::Sharded, &[])]
        {
            let names = tried(channels, Role::Reader).into_iter().map(name);
            let names = names.map(|name| format!("+{name}")).chain(keys.clone());
            let all: BTreeSet<_> = names.chain(others.iter().map(ToString::to_string)).collect();
            assert_eq!(all, of_operators(number).map(str::to_owned).collect());
        }
        for (number, channels) in [(2, Channels::Plain), (3, Channels::Sharded)] {
            let tried = tried(channels, Role::Operator);
            let is_tried =
                |right: &&str| tried.iter().any(|it| right.strip_prefix('+') == Some(name(it)));
            let of_app: BTreeSet<_> =
                if number == 2 { least().collect() } else { least_of_nodes().collect() };
            let more: Vec<_> =
                of_operators(number).filter(|right| !of_app.contains(right)).collect();
            assert!(more.len() > 4 && more.iter().all(is_tried), "{more:?}");
        }
    }

    #[test]
    fn the_texts_of_scripts_are_needed_and_their_names_are_not() {
        let (rules, unproven) = (BTreeSet::new(), BTreeSet::new());
        let (channels, role) = (Channels::Plain, Role::App);
        let missing = Missing { rules, unproven, channels, role, is_mute: false };
        assert_eq!(missing.effect("+evalsha").0, Severity::Warning);
        assert_eq!(missing.effect("+eval").0, Severity::Error);
    }

    #[test]
    fn the_words_of_the_server_name_what_it_forbids() {
        let uncached = Names::uncached(Namespace::new("shop:lockable").unwrap(), Channels::Plain);
        let probe = Probe::new("shop:", &uncached, None).unwrap();
        let rule = |tried, words: &str| {
            let error =
                RedisError::from((ServerErrorKind::NoPerm.into(), "NOPERM", words.to_owned()));
            rule(&probe, tried, &error)
        };
        let named = "User channel-of-keys has no permissions to run the 'get' command";
        assert_eq!(rule("get LOCK", named), "+get");
        assert_eq!(rule("get LOCK", "No permissions to access a key"), "~shop:*");
        assert_eq!(rule("lpop QUEUE", "No permissions to access a key"), "~shop:lockable:*");
        assert_eq!(
            rule("publish CHANNEL", "No permissions to access a channel"),
            "&shop:lockable:*"
        );
    }
}
