//! What an operator has decided that locks depend on.

use std::collections::HashMap;

use ::redis::{FromRedisValue, Pipeline, Value};

use super::Checked;
use crate::backend::redis::wire::fault;
use crate::check::{Code, Finding, Report, Severity};

/// What is asked of `CONFIG GET`.
const WANTED: [&str; 6] =
    ["maxmemory", "maxmemory-policy", "save", "appendonly", "appendfsync", "min-replicas-to-write"];

/// What `INFO` has of these, and of what else is of interest, with our name for it.
const TOLD: [(&str, &str); 4] = [
    ("maxmemory", "maxmemory"),
    ("maxmemory_policy", "maxmemory-policy"),
    ("aof_enabled", "appendonly"),
    ("connected_slaves", REPLICAS),
];

const REPLICAS: &str = "replicas";

/// Looks at the settings, as far as the user may.
pub(super) async fn look(server: &Checked<'_>, report: &mut Report) -> Result<(), Finding> {
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.cmd("CONFIG").arg("GET").arg(&WANTED);
    pipeline.cmd("INFO");
    let replies = server.call(&pipeline).await?;
    let mut settings = Settings::default();
    for (reply, source) in replies.into_iter().zip([Source::Config, Source::Info]) {
        match reply.extract_error() {
            Ok(reply) => settings.learn(source, &reply),
            Err(error) => report.add([unseen(source, &fault::explain(&error).1)]),
        }
    }
    report.add(settings.findings());
    Ok(())
}

#[derive(Clone, Copy)]
enum Source {
    Config,
    Info,
}

fn unseen(source: Source, cause: &str) -> Finding {
    let (right, what) = match source {
        Source::Config => {
            ("+config|get", "how it persists and when it takes writes (`CONFIG GET`)")
        }
        Source::Info => ("+info", "whether it has replicas (`INFO`)"),
    };
    let matter = format!("not allowed to look at the server's settings, {what}: {cause}");
    let advice = format!("look yourself, or grant `{right}`, which locks do not need");
    Finding::new(Severity::Note, Code::NotLookedAt, matter, advice).about(right)
}

/// What is known, by the name in `CONFIG GET`.
#[derive(Default)]
struct Settings(HashMap<String, String>);

impl Settings {
    fn learn(&mut self, source: Source, reply: &Value) {
        match source {
            Source::Config => {
                let pairs = Vec::<(String, String)>::from_redis_value_ref(reply);
                self.0.extend(pairs.unwrap_or_default());
            }
            Source::Info => {
                let info = String::from_redis_value_ref(reply);
                self.learn_lines(&info.unwrap_or_default());
            }
        }
    }

    fn learn_lines(&mut self, info: &str) {
        let told: HashMap<_, _> = info.lines().filter_map(|line| line.split_once(':')).collect();
        for (name, ours) in TOLD {
            if let Some(value) = told.get(name) {
                let value = match (name, *value) {
                    ("aof_enabled", "0") => "no",
                    ("aof_enabled", _) => "yes",
                    (_, value) => value,
                };
                self.0.entry(ours.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn findings(&self) -> Vec<Finding> {
        let found = [self.memory(), self.persistence(), self.replication()];
        found.into_iter().flatten().collect()
    }

    /// Every key of a lock has a TTL, so the policies that choose among those with one choose
    /// locks, and `volatile-ttl` chooses them first.
    ///
    /// See "Which eviction policy is safe?" in DESIGN.md.
    fn memory(&self) -> Option<Finding> {
        let (limit, policy) = (self.number("maxmemory")?, self.text("maxmemory-policy")?);
        if policy == "noeviction" {
            return (limit > 0).then(|| refuses(limit));
        }
        let (severity, matter) = if limit == 0 {
            let matter = format!(
                "nothing is evicted now, but `maxmemory-policy {policy}` would drop locks that are \
                 held once `maxmemory` is set"
            );
            (Severity::Note, matter)
        } else {
            let matter = format!(
                "`maxmemory-policy {policy}` lets the server drop locks that are held once its \
                 `maxmemory` of {limit} bytes is full: all of them have a TTL, and `noeviction` alone \
                 spares those"
            );
            (Severity::Risky, matter)
        };
        let advice = "set `maxmemory-policy noeviction`, or keep locks on a server of their own";
        let finding = Finding::new(severity, Code::Eviction, matter, advice);
        Some(finding.about("maxmemory-policy"))
    }

    fn persistence(&self) -> Option<Finding> {
        let (severity, code, matter, advice) = match self.text("appendonly")? {
            "yes" => return self.sync(),
            _ if self.text("save")?.is_empty() => (
                Severity::Risky,
                Code::NotPersistent,
                "the server keeps nothing on disk: a restart forgets every lock while its holder \
                 works on; fencing tokens still rise",
                "set `appendonly yes`, or let what the locks protect check fencing tokens",
            ),
            _ => (
                Severity::Risky,
                Code::SnapshotsOnly,
                "the server keeps snapshots only: a restart forgets the locks since the last one; \
                 fencing tokens still rise",
                "set `appendonly yes`, or let what the locks protect check fencing tokens",
            ),
        };
        Some(Finding::new(severity, code, matter, advice).about("appendonly"))
    }

    fn sync(&self) -> Option<Finding> {
        let (severity, lost) = match self.text("appendfsync")? {
            "always" => return None,
            "everysec" => (Severity::Note, "the locks of the last second"),
            _ => (Severity::Risky, "the locks of as long as the system likes, often 30 seconds"),
        };
        let matter = format!("a machine that crashes loses {lost}, because of `appendfsync`");
        let advice = "set `appendfsync always`, or let what the locks protect check fencing tokens";
        let finding = Finding::new(severity, Code::WrittenLater, matter, advice);
        Some(finding.about("appendfsync"))
    }

    fn replication(&self) -> Option<Finding> {
        let (replicas, least) = (self.number(REPLICAS)?, self.number("min-replicas-to-write")?);
        if replicas == 0 || least > 0 {
            return None;
        }
        let matter = format!(
            "{replicas} replicas follow the server, and it takes writes while none of them does: a \
             failover then loses every lock that was not copied; fencing tokens still rise"
        );
        let advice = "set `min-replicas-to-write 1`, which bounds the loss by \
                      `min-replicas-max-lag`, and let what the locks protect check fencing tokens";
        let finding = Finding::new(Severity::Risky, Code::UnconfirmedReplication, matter, advice);
        Some(finding.about("min-replicas-to-write"))
    }
}

fn refuses(limit: u64) -> Finding {
    let matter =
        format!("once its `maxmemory` of {limit} bytes is full, the server refuses new locks");
    let advice = "watch its memory, or keep locks on a server of their own";
    Finding::new(Severity::Note, Code::MemoryLimit, matter, advice).about("maxmemory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(settings: &[(&str, &str)]) -> Vec<(Severity, Code)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = Settings(settings.iter().map(owned).collect());
        settings.findings().iter().map(|finding| (finding.severity(), finding.code())).collect()
    }

    #[test]
    fn no_policy_but_noeviction_spares_locks() {
        let memory = |limit, policy| found(&[("maxmemory", limit), ("maxmemory-policy", policy)]);
        for policy in ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"] {
            assert_eq!(memory("1000", policy), [(Severity::Risky, Code::Eviction)], "{policy}");
            assert_eq!(memory("0", policy), [(Severity::Note, Code::Eviction)], "{policy}");
        }
        assert_eq!(memory("1000", "noeviction"), [(Severity::Note, Code::MemoryLimit)]);
        assert_eq!(memory("0", "noeviction"), []);
    }

    #[test]
    fn what_a_restart_forgets_is_told() {
        let aof = |sync| found(&[("appendonly", "yes"), ("appendfsync", sync)]);
        assert_eq!(aof("always"), []);
        assert_eq!(aof("everysec"), [(Severity::Note, Code::WrittenLater)]);
        assert_eq!(aof("no"), [(Severity::Risky, Code::WrittenLater)]);
        let rdb = |save| found(&[("appendonly", "no"), ("save", save)]);
        assert_eq!(rdb("3600 1"), [(Severity::Risky, Code::SnapshotsOnly)]);
        assert_eq!(rdb(""), [(Severity::Risky, Code::NotPersistent)]);
    }

    #[test]
    fn replicas_that_nobody_waits_for_are_told() {
        let replicas =
            |replicas, least| found(&[(REPLICAS, replicas), ("min-replicas-to-write", least)]);
        assert_eq!(replicas("2", "0"), [(Severity::Risky, Code::UnconfirmedReplication)]);
        assert_eq!(replicas("2", "1"), []);
        assert_eq!(replicas("0", "0"), []);
    }

    #[test]
    fn what_is_not_known_is_not_judged() {
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[("appendonly", "no"), ("maxmemory", "1000"), (REPLICAS, "2")]), []);
    }

    #[test]
    fn info_tells_what_config_may_not() {
        let info = "# Memory\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n\
                    aof_enabled:1\r\nconnected_slaves:3\r\n";
        let mut settings = Settings::default();
        settings.learn(Source::Info, &Value::BulkString(info.as_bytes().to_vec()));
        assert_eq!(settings.number("maxmemory"), Some(1_000));
        assert_eq!(settings.text("appendonly"), Some("yes"));
        assert_eq!(settings.number(REPLICAS), Some(3));
        let codes: Vec<_> = settings.findings().iter().map(Finding::code).collect();
        assert_eq!(codes, [Code::Eviction]);
    }
}
