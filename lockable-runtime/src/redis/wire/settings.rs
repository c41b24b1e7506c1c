//! Settings of the server that locks depend on.
//!
//! See "What does a handshake ask for (`SCRIPT EXISTS`, `CONFIG GET`, `INFO`)?" in DESIGN.md.

use std::collections::{BTreeSet, HashMap};

use ::redis::{Cmd, FromRedisValue, Value};

use crate::core::process::mutex::Mutex;
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::opener::{Opener, Target};
use crate::redis::connect::shards::Shard;
use crate::redis::fault;

/// The rights to both commands, and what these show.
const SOURCES: [(&str, &str); 2] = [
    ("+config|get", "how the server persists and when it takes writes"),
    ("+info", "whether the server has replicas"),
];

/// The arguments of `CONFIG GET`. `INFO` has most of them, too, under other names.
const WANTED: [&str; 5] =
    ["maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write"];

pub(super) fn queries() -> [Cmd; SOURCES.len()] {
    let [mut config, mut info] = [Cmd::new(), Cmd::new()];
    config.arg("CONFIG").arg("GET").arg(&WANTED);
    info.arg("INFO");
    [config, info]
}

/// The findings by the replies, as far as the user may read the settings. `shard` is what a node is the master of, if
/// known.
pub(crate) fn findings(
    replies: Vec<Value>,
    opener: &Opener,
    target: &Target,
    shard: Option<&Shard>,
) -> Vec<Finding> {
    let mut settings = ReadSettings {
        has_failover: target.node.is_some() || target.term.is_some(),
        confirming: opener.replicas.into(),
        ..ReadSettings::default()
    };
    settings.known.extend(shard.map(|shard| replicas(shard.replicas.len())));
    let mut findings = Vec::new();
    for (reply, source) in replies.into_iter().zip(SOURCES) {
        match reply.extract_error() {
            Ok(reply) => settings.learn(&reply),
            Err(error) => findings.push(unread(source, &fault::explain(&error).1)),
        }
    }
    findings.extend(settings.findings());
    findings
}

/// The servers that this process has asked, each with the user, and the locker's number of replicas.
static ASKED: Mutex<BTreeSet<(String, String, u8)>> = Mutex::new(BTreeSet::new());

/// Whether a new connection asks: it is the first one there.
pub(super) fn are_unknown(opener: &Opener, target: &Target) -> bool {
    let is_for_locks = !opener.is_for_reading && !opener.is_for_confirming;
    is_for_locks && !ASKED.lock().contains(&asked(opener, target))
}

fn asked(opener: &Opener, target: &Target) -> (String, String, u8) {
    (target.server.to_string(), target.user().to_owned(), opener.replicas)
}

/// What endangers locks there, unless another connection has found it.
pub(super) fn dangers(replies: Vec<Value>, opener: &Opener, target: &Target) -> Vec<Finding> {
    if replies.is_empty() || !ASKED.lock().insert(asked(opener, target)) {
        return Vec::new();
    }
    let mut findings = findings(replies, opener, target, None);
    findings.retain(|finding| finding.severity() == Severity::Warning);
    findings
}

fn unread((right, what): (&'static str, &str), cause: &str) -> Finding {
    let message = format!("the right `{right}` to read {what} is missing: {cause}");
    Finding::new(Severity::Info, Code::CheckIncomplete, message).about(right)
}

/// The replicas that the other nodes count; the server's own count replaces this if it may be read.
fn replicas(count: usize) -> (String, String) {
    ("connected-slaves".to_owned(), count.to_string())
}

#[derive(Default)]
struct ReadSettings {
    known: HashMap<String, String>,
    /// Whether another server takes over when this one fails.
    has_failover: bool,
    confirming: u64,
}

impl ReadSettings {
    fn learn(&mut self, reply: &Value) {
        let pairs = Vec::<(String, String)>::from_redis_value_ref(reply).unwrap_or_default();
        let info = String::from_redis_value_ref(reply).unwrap_or_default();
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        // `INFO` has underscores in the names.
        self.known.extend(lines.map(|(name, value)| (name.replace('_', "-"), value.to_owned())));
        self.known.extend(pairs);
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn findings(&self) -> impl Iterator<Item = Finding> {
        let found = [self.memory(), self.persistence(), self.replication(), self.confirmation()];
        found.into_iter().flatten()
    }

    /// Every key of a lock has a TTL, so the `volatile` policies evict locks, `volatile-ttl` first of all.
    ///
    /// See "Which eviction policy (`maxmemory-policy`) is safe?" in DESIGN.md.
    fn memory(&self) -> Option<Finding> {
        let limit = self.number("maxmemory")?;
        let policy = self.text("maxmemory-policy")?;
        let (severity, code, subject, effect) = match (limit, policy) {
            (0, "noeviction") => return None,
            (_, "noeviction") => {
                (Severity::Info, Code::MemoryLimit, "maxmemory", "refuses new locks")
            }
            (0, _) => (Severity::Info, Code::Eviction, "maxmemory-policy", "would evict locks"),
            _ => (Severity::Warning, Code::Eviction, "maxmemory-policy", "evicts held locks"),
        };
        let forgets =
            if code == Code::Eviction { ", and forgets what `once` has done" } else { "" };
        let message = format!(
            "with `maxmemory-policy {policy}` the server {effect} once it reaches `maxmemory {limit}`{forgets}"
        );
        Some(Finding::new(severity, code, message).about(subject))
    }

    fn persistence(&self) -> Option<Finding> {
        let appends = self.text("appendonly").or_else(|| self.text("aof-enabled"))?;
        if !matches!(appends, "no" | "0") {
            return self.sync();
        }
        let message = "a restart forgets locks that are held; fencing tokens still rise";
        let finding = Finding::new(Severity::Warning, Code::NotPersistent, message);
        Some(finding.about("appendonly"))
    }

    fn sync(&self) -> Option<Finding> {
        let (severity, lost) = match self.text("appendfsync")? {
            "always" => return None,
            "everysec" => (Severity::Info, "last second"),
            _ => (Severity::Warning, "time since the system wrote, often 30 seconds"),
        };
        let message = format!("a machine that crashes loses the locks of the {lost}");
        Some(Finding::new(severity, Code::UnsyncedAppends, message).about("appendfsync"))
    }

    fn confirmation(&self) -> Option<Finding> {
        let replicas = self.number("connected-slaves").filter(|_| self.confirming > 0)?;
        confirmation(self.confirming, replicas)
    }

    fn replication(&self) -> Option<Finding> {
        let replicas = self.number("connected-slaves")?;
        if replicas == 0 {
            let message = "the primary has no replica, so there is no failover";
            let finding = Finding::new(Severity::Warning, Code::NoReplica, message);
            return (self.has_failover && self.confirming == 0).then_some(finding);
        }
        let needed = self.number("min-replicas-to-write")?;
        let are_confirmed = needed == 0 && self.confirming > 0;
        if are_confirmed || (1..replicas).contains(&needed) {
            return None;
        }
        let finding = if needed == 0 { unconfirmed(replicas) } else { too_few(replicas) };
        Some(finding.about("min-replicas-to-write"))
    }
}

/// Whether there are as many replicas as the locker waits for, and no others could become the primary.
fn confirmation(needed: u64, replicas: u64) -> Option<Finding> {
    let (code, message, advice) = if needed > replicas {
        let message = format!(
            "no lock can be acquired: `replicas={needed}` waits for more replicas than are connected ({replicas})"
        );
        let advice = "start the missing replicas, or lower `replicas`";
        (Code::FewReplicas, message, advice.to_owned())
    } else {
        let message = format!(
            "`replicas={needed}` waits for {needed} of {replicas} replicas: a failover to another one loses locks"
        );
        let advice = format!("set `replicas={replicas}`, for each replica that can be promoted");
        (Code::UnconfirmedReplication, message, advice)
    };
    let finding = Finding::new(Severity::Warning, code, message).advise(advice).about("replicas");
    (needed != replicas).then_some(finding)
}

fn unconfirmed(replicas: u64) -> Finding {
    let message = "a failover loses locks that no replica has yet; fencing tokens still rise";
    let finding = Finding::new(Severity::Warning, Code::UnconfirmedReplication, message);
    // With one replica alone, the setting stops all writes after a failover.
    let advice = if replicas == 1 {
        "add a second replica, set `min-replicas-to-write 1`, and check fencing tokens"
    } else {
        ""
    };
    finding.advise(advice)
}

fn too_few(replicas: u64) -> Finding {
    let message = format!(
        "`min-replicas-to-write` needs all replicas ({replicas}): without one, as after a failover, the \
         primary refuses writes"
    );
    Finding::new(Severity::Warning, Code::FewReplicas, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(settings: &[(&str, &str)]) -> Vec<(Severity, Code)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let known = settings.iter().map(owned).collect();
        let settings = ReadSettings { known, has_failover: true, confirming: 0 };
        settings.findings().map(|finding| (finding.severity(), finding.code())).collect()
    }

    #[test]
    fn no_policy_but_noeviction_spares_locks() {
        let memory = |limit, policy| found(&[("maxmemory", limit), ("maxmemory-policy", policy)]);
        for policy in ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"] {
            assert_eq!(memory("1000", policy), [(Severity::Warning, Code::Eviction)], "{policy}");
            assert_eq!(memory("0", policy), [(Severity::Info, Code::Eviction)], "{policy}");
        }
        assert_eq!(memory("1000", "noeviction"), [(Severity::Info, Code::MemoryLimit)]);
        assert_eq!(memory("0", "noeviction"), []);
    }

    #[test]
    fn what_a_restart_forgets_is_found() {
        let aof = |sync| found(&[("appendonly", "yes"), ("appendfsync", sync)]);
        assert_eq!(aof("always"), []);
        assert_eq!(aof("everysec"), [(Severity::Info, Code::UnsyncedAppends)]);
        assert_eq!(aof("no"), [(Severity::Warning, Code::UnsyncedAppends)]);
        assert_eq!(found(&[("appendonly", "no")]), [(Severity::Warning, Code::NotPersistent)]);
    }

    #[test]
    fn replicas_that_no_write_waits_for_are_found() {
        let replicas = |replicas, least| {
            found(&[("connected-slaves", replicas), ("min-replicas-to-write", least)])
        };
        assert_eq!(replicas("2", "0"), [(Severity::Warning, Code::UnconfirmedReplication)]);
        assert_eq!(replicas("2", "1"), []);
        assert_eq!(replicas("2", "2"), [(Severity::Warning, Code::FewReplicas)]);
        assert_eq!(replicas("1", "1"), [(Severity::Warning, Code::FewReplicas)]);
    }

    #[test]
    fn replicas_that_a_locker_waits_for_are_all_of_them() {
        let found = |confirming, replicas: &str| {
            let known = [("connected-slaves", replicas), ("min-replicas-to-write", "0")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            let settings = ReadSettings { known: known.into(), has_failover: true, confirming };
            settings.findings().map(|finding| (finding.code(), finding.advice().to_owned())).next()
        };
        let few =
            Some((Code::FewReplicas, "start the missing replicas, or lower `replicas`".into()));
        assert_eq!((found(1, "0"), found(3, "2"), found(2, "2")), (few.clone(), few, None));
        let (code, advice) = found(1, "2").unwrap();
        assert_eq!(code, Code::UnconfirmedReplication);
        assert_eq!(advice, "set `replicas=2`, for each replica that can be promoted");
    }

    #[test]
    fn sentinels_need_a_replica() {
        let codes = |has_failover| {
            let mut settings = ReadSettings { has_failover, ..ReadSettings::default() };
            settings.known.extend([replicas(0)]);
            settings.findings().map(|finding| finding.code()).collect::<Vec<_>>()
        };
        assert_eq!(codes(true), [Code::NoReplica]);
        assert_eq!(codes(false), []);
    }

    #[test]
    fn unknown_settings_are_not_judged() {
        assert_eq!(found(&[]), []);
        assert_eq!(
            found(&[("appendonly", "yes"), ("maxmemory", "1000"), ("connected-slaves", "2")]),
            []
        );
    }

    #[test]
    fn info_replaces_config() {
        let info = "# Memory\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n\
                    aof_enabled:0\r\nconnected_slaves:3\r\n";
        let mut settings = ReadSettings::default();
        settings.learn(&Value::BulkString(info.as_bytes().to_vec()));
        assert_eq!(settings.number("maxmemory"), Some(1_000));
        assert_eq!(settings.number("connected-slaves"), Some(3));
        let codes: Vec<_> = settings.findings().map(|finding| finding.code()).collect();
        assert_eq!(codes, [Code::Eviction, Code::NotPersistent]);
    }
}
