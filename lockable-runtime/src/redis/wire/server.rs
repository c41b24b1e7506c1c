//! What a server is, and why some cannot be used.

use std::time::{Duration, SystemTime};

use ::redis::{ConnectionAddr, FromRedisValue, ServerErrorKind, Value};

use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::opener::Target;
use crate::redis::connect::{address, role};

/// Why a server cannot have locks until it, or the URL, is changed, by its handshake.
pub(crate) fn unfit_by_handshake(hello: &Value) -> Option<Finding> {
    let version = version(hello).filter(|version| !is_supported(version))?;
    let message = format!("the server is version {version}; 7.0 or later is needed");
    Some(Finding::new(Severity::Error, Code::TooOld, message))
}

/// What is at the address instead of a server for locks, and the URL of one, by the handshake and `ROLE`.
pub(crate) fn elsewhere(hello: &Value, role: &Value, target: &Target) -> Finding {
    if Mode::of(hello) == Mode::Sentinel {
        let message = "this is a Sentinel, which watches servers and has no locks";
        let finding = Finding::new(Severity::Error, Code::Sentinel, message);
        return finding.advise(of_sentinel(&role::watched(role), target));
    }
    let message = "this server is a replica, which takes no writes";
    let finding = Finding::new(Severity::Error, Code::Replica, message);
    if target.node.is_some() {
        return finding.advise("the next request goes to the primary that the other nodes name");
    }
    if Mode::of(hello) == Mode::Cluster {
        return finding.advise(of_cluster(target));
    }
    if target.term.is_some() {
        return finding.advise(
            "wait for the end of the failover; without one, `SENTINEL RESET` the Sentinels that name it",
        );
    }
    let Some(primary) = role::primary(role) else { return finding };
    let url = target.url_of(&primary);
    finding.advise(format!("write `{url}`, its primary of now, or the URL of its Sentinels"))
}

/// The URL to write if this is a Sentinel that watches these primaries.
fn of_sentinel(watched: &[String], target: &Target) -> String {
    let url = target.url_of_sentinel(watched.first().map_or("NAME", String::as_str));
    let names = match watched {
        [] => ", with the name of the primary".to_owned(),
        [_] => String::new(),
        _ => format!(", or the name of another primary: {}", watched.join(", ")),
    };
    let login = if target.has_password() {
        ", with the servers' user and password before the host and the Sentinels' own as `sentinel_user` and \
         `sentinel_password`"
    } else {
        ""
    };
    format!("write `{url}`{names}{login}")
}

/// Finds that a server is one node of a cluster, by its replies about keys of all slots. A node with all slots passes,
/// even while one leaves it.
pub(crate) fn unfit_by_answers<'a>(
    mut replies: impl Iterator<Item = &'a Value>,
    target: &Target,
) -> Option<Finding> {
    let message = "this server is one node of a cluster, and refuses the keys of the others";
    let finding = Finding::new(Severity::Error, Code::Cluster, message);
    replies.any(leads_away).then(|| finding.advise(of_cluster(target)))
}

/// The URL to write if this is a node of a cluster.
pub(crate) fn of_cluster(target: &Target) -> String {
    let (scheme, endpoint) = match target.info().addr() {
        ConnectionAddr::Unix(_) => ("redis", "host:6379".to_owned()),
        _ => (address::scheme(target.info()), address::endpoint(target.info())),
    };
    format!("write `{scheme}-cluster://{endpoint}`")
}

/// What seems to be one server is several, which share the keys of each lock.
pub(crate) fn split() -> Finding {
    let message = "the keys of one lock are on several servers: a proxy spreads keys by another hash \
                   than Redis Cluster";
    let advice = "connect to one server itself, or let the proxy hash as Redis Cluster does, by CRC16 \
                  of the part in braces";
    Finding::new(Severity::Error, Code::Proxy, message).advise(advice)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Standalone,
    Sentinel,
    Cluster,
    /// The right is missing, or the server reports something else.
    Unknown,
}

impl Mode {
    pub(crate) fn of(hello: &Value) -> Self {
        match field(hello, "mode").as_deref() {
            Some("standalone") => Self::Standalone,
            Some("sentinel") => Self::Sentinel,
            Some("cluster") => Self::Cluster,
            _ => Self::Unknown,
        }
    }
}

/// The version; before 6.2 there is no such handshake.
pub(crate) fn version(hello: &Value) -> Option<String> {
    if let Value::ServerError(error) = hello {
        return (error.code() == "ERR").then(|| "older than 6.2".to_owned());
    }
    field(hello, "version")
}

pub(crate) fn name(hello: &Value) -> Option<String> {
    let version = version(hello)?;
    Some(format!("{} {version}", field(hello, "server").as_deref().unwrap_or("redis")))
}

pub(crate) fn is_replica(hello: &Value) -> bool {
    field(hello, "role").is_some_and(|role| role != "master")
}

pub(crate) fn field(hello: &Value, name: &str) -> Option<String> {
    let fields = Vec::<(String, Value)>::from_redis_value_ref(hello).ok()?;
    let (_, value) = fields.into_iter().find(|(field, _)| field == name)?;
    String::from_redis_value(value).ok()
}

fn is_supported(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 7)
}

/// Whether another node has the key, or several have those of one lock.
fn leads_away(reply: &Value) -> bool {
    let Value::ServerError(error) = reply else { return false };
    matches!(error.kind(), Some(ServerErrorKind::Moved | ServerErrorKind::CrossSlot))
}

/// How many microseconds a server's clock is ahead of ours (negative: behind), at least and at most: the server read it
/// between the two ends of a request.
pub(crate) struct Clock {
    pub(crate) least: i64,
    pub(crate) most: i64,
}

impl Clock {
    pub(crate) fn of(time: &Value, sent: SystemTime, received: SystemTime) -> Option<Self> {
        let (seconds, micros) = <(i64, i64)>::from_redis_value_ref(time).ok()?;
        let theirs = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
        let ours = |at: SystemTime| {
            let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_micros()).ok()
        };
        let ahead_of = |at| theirs.checked_sub(ours(at)?);
        Some(Self { least: ahead_of(received)?, most: ahead_of(sent)? })
    }

    pub(crate) fn difference(&self) -> Duration {
        Duration::from_micros(self.least.midpoint(self.most).unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn hello(fields: &str) -> Value {
        Value::Array(fields.split_whitespace().map(text).collect())
    }

    #[test]
    fn a_server_is_what_it_reports() {
        let cases = [
            ("server redis version 7.0.15", Some("redis 7.0.15"), None),
            ("server valkey version 9.1.2", Some("valkey 9.1.2"), None),
            ("version 8.0.0", Some("redis 8.0.0"), None),
            ("version 6.2.14", Some("redis 6.2.14"), Some(Code::TooOld)),
            ("proto 2", None, None),
        ];
        for (fields, server, code) in cases {
            let hello = hello(fields);
            assert_eq!(name(&hello).as_deref(), server);
            assert_eq!(unfit_by_handshake(&hello).map(|unfit| unfit.code()), code);
        }
    }

    #[test]
    fn a_replica_is_found() {
        assert!(is_replica(&hello("role replica")));
        assert!(!is_replica(&hello("role master")));
        assert!(!is_replica(&hello("")));
    }

    #[test]
    fn versions_from_seven_on_are_supported() {
        for (version, supported) in
            [("7.0.15", true), ("8.6.0", true), ("10.0.0", true), ("6.2.14", false), ("old", false)]
        {
            assert_eq!(is_supported(version), supported, "{version}");
        }
    }

    fn written(handshake: &str, role: &str) -> String {
        let role = ::redis::parse_redis_value(role.as_bytes()).unwrap();
        elsewhere(&hello(handshake), &role, &Target::at("redis://u:canary@h:7/5"))
            .advice()
            .to_owned()
    }

    #[test]
    fn the_url_of_a_sentinel_has_its_primarys_name() {
        let role = |names: &str| format!("*2\r\n$8\r\nsentinel\r\n{names}");
        let written = |names: &str| written("mode sentinel version 5.0.7", &role(names));
        let url = |name: &str| format!("`redis-sentinel://h:7/{name}/5`");
        let one = written("*1\r\n$2\r\nmm\r\n");
        assert!(one.starts_with(&format!("write {}", url("mm"))), "{one}");
        assert!(one.contains("`sentinel_password`") && !one.contains("canary"), "{one}");
        assert!(written("*2\r\n$1\r\na\r\n$1\r\nb\r\n").contains("another primary: a, b"));
        assert!(written("*0\r\n").contains(&url("NAME")));
    }

    #[test]
    fn the_url_of_a_replica_is_its_primarys() {
        let role = "*5\r\n$5\r\nslave\r\n$3\r\n::1\r\n:7001\r\n$9\r\nconnected\r\n:3\r\n";
        assert!(written("role replica", role).contains("`redis://[::1]:7001/5`"));
        // The advice of its code, where the user may not ask.
        assert!(!written("role replica", "-NOPERM no\r\n").contains("canary"));
    }

    #[test]
    fn a_node_without_all_slots_is_unfit() {
        let target = Target::at("redis://u:canary@h:7");
        let reply = |text: &str| ::redis::parse_redis_value(text.as_bytes()).unwrap();
        let is_unfit =
            |text: &str| unfit_by_answers([Value::Nil, reply(text)].iter(), &target).is_some();
        assert!(is_unfit("-MOVED 1 127.0.0.1:7000\r\n"));
        assert!(is_unfit("-CROSSSLOT keys\r\n"));
        assert!(!is_unfit("-ASK 1 127.0.0.1:7000\r\n"), "a slot that leaves");
        assert!(!is_unfit("-NOPERM no\r\n") && !is_unfit("+OK\r\n"));
    }

    #[test]
    fn the_url_of_a_node_is_of_its_cluster() {
        let url = |url: &str, handshake: &str| {
            let finding = elsewhere(&hello(handshake), &Value::Nil, &Target::at(url));
            finding.advice().to_owned()
        };
        let replica = "mode cluster role replica";
        assert_eq!(url("redis://u:canary@[::1]:7", replica), "write `redis-cluster://[::1]:7`");
        let socket = url("redis+unix:///s?pass=canary", replica);
        assert_eq!(socket, "write `redis-cluster://host:6379`");
        #[cfg(feature = "tls-no-provider")]
        assert_eq!(url("rediss://:canary@h", replica), "write `rediss-cluster://h:6379`");
    }
}
