//! What a server's error means for its request: where it goes next.
//!
//! See "What follows from `MOVED`, `ASK`, `TRYAGAIN` and `CLUSTERDOWN`?" in DESIGN.md.

use ::redis::{RedisError, ServerErrorKind};

use crate::core::backend::Fault;
use crate::redis::connect::endpoint::Endpoint;

#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) fault: Fault,
    pub(crate) meaning: Meaning,
}

/// What an error means; outside of a cluster each one stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Moved(Endpoint),
    /// The slot moves, and this key may be there already.
    Asks(Endpoint),
    /// The slot moves, and the command's keys are not at one node.
    Split,
    /// The same command may succeed later.
    Passes,
    /// The server forgot a script, whose text is sent next time.
    Forgotten,
    /// Sending the command elsewhere, or again, does not help.
    Stays,
}

impl Meaning {
    pub(crate) fn of(error: &RedisError, asked: &Endpoint) -> Self {
        use ServerErrorKind::{
            Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain,
        };
        let is = |kind: ServerErrorKind| error.kind() == kind.into();
        let elsewhere = || endpoint(error.redirect_node()?.0, asked);
        if is(Moved) {
            return elsewhere().map_or(Self::Passes, Self::Moved);
        }
        if is(Ask) {
            return elsewhere().map_or(Self::Passes, Self::Asks);
        }
        if is(TryAgain) || is_half_done(error) {
            return Self::Split;
        }
        let passes = [ClusterDown, MasterDown, BusyLoading, ReadOnly].into_iter().any(is);
        if passes { Self::Passes } else { Self::Stays }
    }
}

impl Failed {
    /// Whether the request's slot moves key by key, so that several keys need requests in parts.
    pub(crate) fn is_moving(&self) -> bool {
        matches!(self.meaning, Meaning::Asks(_) | Meaning::Split)
    }

    pub(crate) fn map(self, words: impl FnOnce(Fault) -> Fault) -> Self {
        Self { fault: words(self.fault), ..self }
    }
}

impl From<Fault> for Failed {
    /// The failure of a request without a reply: sending it elsewhere does not help.
    fn from(fault: Fault) -> Self {
        Self { fault, meaning: Meaning::Stays }
    }
}

/// Whether a script stopped because a key that it needed was taken away, by itself or since: in a moving slot a node
/// refuses an absent key inside of scripts, too. The requests in parts find what the script has done.
fn is_half_done(error: &RedisError) -> bool {
    error.detail().is_some_and(|words| words.contains("attempted to access a non local key"))
}

/// `host:port`; without a host, that of the replying node.
fn endpoint(address: &str, asked: &Endpoint) -> Option<Endpoint> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.trim_start_matches('[').trim_end_matches(']') {
        "" => asked.host.clone(),
        // A name that no one knows; `CLUSTER SLOTS` may have the address.
        "?" => return None,
        host => host.to_owned(),
    };
    Some(Endpoint { host, port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(answer: &str) -> Meaning {
        let reply = ::redis::parse_redis_value(format!("-{answer}\r\n").as_bytes()).unwrap();
        let asked = Endpoint { host: "asked".to_owned(), port: 1 };
        Meaning::of(&reply.extract_error().unwrap_err(), &asked)
    }

    fn at(host: &str, port: u16) -> Endpoint {
        Endpoint { host: host.to_owned(), port }
    }

    #[test]
    fn each_answer_has_a_meaning() {
        let cases = [
            ("MOVED 3999 127.0.0.1:6381", Meaning::Moved(at("127.0.0.1", 6381))),
            ("MOVED 3999 ::1:6381", Meaning::Moved(at("::1", 6381))),
            ("MOVED 3999 [::1]:6381", Meaning::Moved(at("::1", 6381))),
            ("MOVED 3999 :6381", Meaning::Moved(at("asked", 6381))),
            ("MOVED 3999 ?:6381", Meaning::Passes),
            ("MOVED 3999 nowhere", Meaning::Passes),
            ("ASK 3999 node.example:6381", Meaning::Asks(at("node.example", 6381))),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Meaning::Split),
            ("ERR Script attempted to access a non local key in a cluster node", Meaning::Split),
            ("CLUSTERDOWN The cluster is down", Meaning::Passes),
            ("MASTERDOWN BackendContext with MASTER is down", Meaning::Passes),
            ("LOADING Redis is loading the dataset in memory", Meaning::Passes),
            ("READONLY You can't write against a read only replica.", Meaning::Passes),
            ("NOREPLICAS Not enough good replicas to write.", Meaning::Stays),
            ("CROSSSLOT Keys in request don't hash to the same slot", Meaning::Stays),
            ("OOM command not allowed", Meaning::Stays),
            ("WRONGTYPE Operation against a key", Meaning::Stays),
        ];
        for (answer, expected) in cases {
            assert_eq!(meaning(answer), expected, "{answer}");
        }
    }
}
