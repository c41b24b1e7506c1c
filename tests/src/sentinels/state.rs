//! What Sentinels know, and how often they ask for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::Sentinels;
use crate::admin::Admin;
use crate::wait;

impl Sentinels {
    /// Waits until every replica receives what is written.
    ///
    /// One whose link is up may still wait for the stream. The Sentinels would find one without a link unfit,
    /// and ask again ten seconds later.
    pub(super) fn wait_until_replicated(&self) {
        let primary = self.servers[0].admin();
        for server in &self.servers[1..] {
            let (replica, port) = (server.admin(), server.addr().port().to_string());
            wait::until(READY_LIMIT, || {
                // Servers may have to have replicas before they take a write.
                let outcome = primary.try_command(&["SET", PROBE, &port, "PX", "60000"]);
                outcome.is_ok() && replica.get(PROBE).as_ref() == Some(&port)
            });
            wait::until(READY_LIMIT, || {
                replica.info("replication").contains("master_link_status:up")
            });
        }
        primary.del(PROBE);
    }

    /// Waits until a failover could begin at each Sentinel.
    pub(super) fn wait_until_ready(&self, is_fast: bool) {
        let replicas = self.servers.len() - 1;
        for sentinel in &self.watchers {
            let admin = sentinel.admin();
            if is_fast {
                hurry(&admin);
            }
            wait::until(READY_LIMIT, || has_quorum(&admin) && eligible(&admin) == replicas);
        }
    }
}

/// Where the primary is, as one Sentinel says.
pub(super) fn named_by(sentinel: &Admin) -> Option<SocketAddr> {
    let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Sentinels::NAME];
    let (ip, port): (String, u16) = sentinel.command::<Option<_>>(&words)?;
    Some(SocketAddr::new(ip.parse().ok()?, port))
}

/// Servers before 7.0 have their periods built in.
///
/// They must not be much shorter. During a failover a replica is asked for its state once a second whatever
/// the period. The answer of one that may be promoted must be younger than three of these periods, or five
/// periods of pings, and after four periods of publishing a promoted one counts as lost and is called back.
fn hurry(sentinel: &Admin) {
    let periods = ["info-period", "ping-period", "publish-period", "ask-period"];
    let settings = periods.iter().flat_map(|period| [*period, "500"]);
    let words: Vec<_> = ["SENTINEL", "DEBUG"].into_iter().chain(settings).collect();
    drop(sentinel.try_command(&words));
}

fn has_quorum(sentinel: &Admin) -> bool {
    sentinel.try_command(&["SENTINEL", "CKQUORUM", Sentinels::NAME]).is_ok()
}

/// How many replicas could become the primary, as far as this Sentinel knows.
fn eligible(sentinel: &Admin) -> usize {
    let words = ["SENTINEL", "REPLICAS", Sentinels::NAME];
    let replicas: Vec<HashMap<String, String>> = sentinel.command(&words);
    let is_eligible = |replica: &&HashMap<String, String>| {
        replica["flags"] == "slave" && replica["master-link-status"] == "ok"
    };
    replicas.iter().filter(is_eligible).count()
}

/// A key that is gone when a group is there.
const PROBE: &str = "harness:probe";

/// Far more than servers need that know each other.
const READY_LIMIT: Duration = Duration::from_secs(20);
