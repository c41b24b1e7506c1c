//! What the user of a connection may not do, rule by rule: each command that locks need is tried by
//! itself, since a script tells only the first that it lacks.
//!
//! See "Why does the check try each command by itself?" in DESIGN.md.

use std::borrow::Cow;

use ::redis::{Cmd, Pipeline, RedisError, ServerErrorKind, Value};

use super::{Checked, Probe, rehearsal};
use crate::backend::redis::wait::grants;
use crate::backend::redis::wire::fault;
use crate::check::{Code, Finding, Severity};

/// The commands of verbs and scripts, where they are used, and what follows the key.
///
/// Each kind of key is read and written, because a rule may allow the one without the other.
const TRIED: [(&str, Place, &[&str]); 22] = [
    ("time", Place::Nowhere, &[]),
    // A script that does nothing, and one that nobody has: what those of the verbs do is tried below.
    ("eval", Place::Nowhere, &["", "0"]),
    ("evalsha", Place::Nowhere, &["0000000000000000000000000000000000000000", "0"]),
    ("set", Place::Lock, &["probe", "PX", "1000"]),
    ("get", Place::Lock, &[]),
    ("pttl", Place::Lock, &[]),
    ("pexpire", Place::Lock, &["1000"]),
    ("del", Place::Lock, &[]),
    ("set", Place::Fence, &["1", "PX", "1000"]),
    ("incr", Place::Fence, &[]),
    // Whoever may set nothing, and delete nothing, would leave it there for ever.
    ("pexpire", Place::Fence, &["1000"]),
    ("get", Place::Fence, &[]),
    ("pttl", Place::Fence, &[]),
    ("rpush", Place::Queue, &["probe"]),
    ("pexpire", Place::Queue, &["1000"]),
    ("lpos", Place::Queue, &["probe"]),
    ("lindex", Place::Queue, &["0"]),
    ("lrem", Place::Queue, &["0", "probe"]),
    ("lpop", Place::Queue, &[]),
    // The last two only clean up.
    ("del", Place::Fence, &[]),
    ("del", Place::Queue, &[]),
    ("publish", Place::Channel, &[""]),
];

/// What a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Lock,
    Fence,
    Queue,
    Channel,
}

/// The ACL rules that a user lacks, each once.
pub(super) struct Missing(Vec<Cow<'static, str>>);

impl Missing {
    pub(super) async fn of(server: &Checked<'_>, probe: &Probe) -> Result<Self, Finding> {
        let mut missing = Self(Vec::new());
        let mut pipeline = Pipeline::with_capacity(TRIED.len());
        for (name, place, arguments) in TRIED {
            pipeline.add_command(command(probe, name, place, arguments));
        }
        for ((name, place, _), reply) in TRIED.into_iter().zip(server.call(&pipeline).await?) {
            missing.take(probe, name, place, reply)?;
        }
        Ok(missing)
    }

    /// The error is a command that the server does not have, or not as locks need it.
    fn take(
        &mut self,
        probe: &Probe,
        name: &'static str,
        place: Place,
        reply: Value,
    ) -> Result<(), Finding> {
        let Err(error) = reply.extract_error() else { return Ok(()) };
        if fault::is_missing_right(&error) {
            self.add(rule(&probe.prefix, name, place, &error));
        } else if error.kind() == ServerErrorKind::ResponseError.into()
            // Without names of scripts there is nothing that it could call.
            && (name != "evalsha" || probe.keeps_scripts())
        {
            return Err(absent(name, &error));
        }
        Ok(())
    }

    /// Notes what kept a subscription from being made or asked.
    pub(super) fn add_of_subscription(&mut self, name: &str, error: &RedisError) {
        self.add(rule("", name, Place::Channel, error));
    }

    fn add(&mut self, rule: Cow<'static, str>) {
        if !self.has(&rule) {
            self.0.push(rule);
        }
    }

    fn has(&self, rule: &str) -> bool {
        self.0.iter().any(|missing| missing == rule)
    }

    /// Whether this is why a verb failed, which is told already then.
    pub(super) fn explain(&self, error: &RedisError) -> bool {
        fault::is_missing_right(error) && !self.0.is_empty()
    }

    /// Whether grants cannot be published or heard, which is told already then.
    pub(super) fn explains_silence(&self) -> bool {
        ["+publish", "+subscribe", CHANNELS].into_iter().any(|rule| self.has(rule))
    }

    pub(super) fn findings(&self, server: &Checked<'_>, probe: &Probe) -> Vec<Finding> {
        let keeps_scripts = probe.keeps_scripts();
        let severe = |rule: &Cow<'static, str>| {
            self.severity(rule, keeps_scripts).map(|severity| (severity, rule.clone()))
        };
        let rules = self.0.iter().filter_map(severe);
        let mut findings: Vec<_> =
            rules.map(|(severity, rule)| lacks(severity, rule, server.user())).collect();
        if !keeps_scripts {
            findings.push(sends_scripts(server.user()));
        }
        findings
    }

    /// Nothing for a right without which all works as well as with it.
    fn severity(&self, rule: &str, keeps_scripts: bool) -> Option<Severity> {
        match rule {
            // There is nothing that it could call.
            "+evalsha" if !keeps_scripts => None,
            "+eval" if keeps_scripts && !self.has("+evalsha") => Some(Severity::Risky),
            "+ping" => Some(Severity::Risky),
            _ => Some(Severity::Wrong),
        }
    }
}

fn command(probe: &Probe, name: &str, place: Place, arguments: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    command.arg(name);
    match place {
        Place::Nowhere => {}
        Place::Lock => drop(command.arg(probe.tried.as_str())),
        Place::Fence => drop(command.arg(probe.tried.fence())),
        Place::Queue => drop(command.arg(probe.tried.queue())),
        Place::Channel => drop(command.arg(grants::channel(probe.origin))),
    }
    command.arg(arguments);
    command
}

/// The rule that would allow it. The server tells by its words alone whether it is the command, the
/// key or the channel that is forbidden.
fn rule(prefix: &str, name: &str, place: Place, error: &RedisError) -> Cow<'static, str> {
    let words = error.detail().unwrap_or_default();
    match place {
        _ if words.contains("to run the") => format!("+{name}").into(),
        Place::Nowhere => format!("+{name}").into(),
        Place::Lock => format!("~{prefix}*").into(),
        Place::Fence | Place::Queue => COMPANIONS.into(),
        Place::Channel => CHANNELS.into(),
    }
}

/// A user who may not select the database of the URL, which the client tells in words alone.
pub(super) fn not_selected(error: &RedisError, user: &str) -> Option<Finding> {
    let words = error.detail()?;
    let is_denied = words.contains("no permissions") && words.contains("'select'");
    is_denied.then(|| lacks(Severity::Wrong, "+select".into(), user))
}

fn absent(name: &'static str, error: &RedisError) -> Finding {
    let advice = if name.starts_with("eval") { fault::NO_SCRIPTS } else { fault::NO_COMMAND };
    rehearsal::failed(name, &fault::explain(error).1, advice)
}

fn lacks(severity: Severity, rule: Cow<'static, str>, user: &str) -> Finding {
    let matter = format!("the user `{user}` lacks the right `{rule}`: {}", consequence(&rule));
    Finding::new(severity, Code::MissingRight, matter, grant(user, &rule)).about(rule)
}

fn sends_scripts(user: &str) -> Finding {
    let matter = "the server does not keep the scripts: each release and renewal, and the \
                  first grant of a lock, sends the whole text of its script, which is slower";
    let advice = grant(user, "+script|load +evalsha");
    Finding::new(Severity::Risky, Code::ScriptsNotKept, matter, advice).about("+script|load")
}

fn grant(user: &str, rule: &str) -> String {
    format!("`ACL SETUSER {user} {rule}`")
}

fn consequence(rule: &str) -> &'static str {
    match rule {
        "+publish" | "+subscribe" | CHANNELS => "whoever waits for a lock hears of no grant",
        "+ping" => "while calls wait, the server logs a denial every five seconds",
        "+eval" => "once the server forgets its scripts, nothing is acquired, renewed or released",
        "+select" => "no connection gets to the database of the URL",
        _ => "no lock can be acquired",
    }
}

const COMPANIONS: &str = "~lockable:*";

const CHANNELS: &str = "&lockable:*";

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(rules: &[&'static str]) -> Missing {
        Missing(rules.iter().map(|rule| Cow::Borrowed(*rule)).collect())
    }

    #[test]
    fn one_way_to_run_scripts_is_enough_but_not_for_every_day() {
        let severity = |rules: &[&'static str], rule, keeps| missing(rules).severity(rule, keeps);
        assert_eq!(severity(&["+evalsha"], "+evalsha", true), Some(Severity::Wrong));
        assert_eq!(severity(&["+evalsha"], "+evalsha", false), None);
        assert_eq!(severity(&["+eval"], "+eval", true), Some(Severity::Risky));
        assert_eq!(severity(&["+eval"], "+eval", false), Some(Severity::Wrong));
        assert_eq!(severity(&["+eval", "+evalsha"], "+eval", true), Some(Severity::Wrong));
    }

    #[test]
    fn the_words_of_the_server_tell_what_it_forbids() {
        let rule = |place, words: &str| {
            let error =
                RedisError::from((ServerErrorKind::NoPerm.into(), "NOPERM", words.to_owned()));
            rule("shop:", "get", place, &error).into_owned()
        };
        let named = "User channel-of-keys has no permissions to run the 'get' command";
        assert_eq!(rule(Place::Lock, named), "+get");
        assert_eq!(rule(Place::Lock, "No permissions to access a key"), "~shop:*");
        assert_eq!(rule(Place::Queue, "No permissions to access a key"), "~lockable:*");
        assert_eq!(rule(Place::Channel, "No permissions to access a channel"), "&lockable:*");
    }
}
