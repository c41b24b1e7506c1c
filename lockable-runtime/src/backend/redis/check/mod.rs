//! The check of servers: everything that locks do is done once, with a lock of the check's own, and
//! what they depend on is read.

use std::sync::Arc;

use self::aim::{Aim, Standing};
use self::examination::examine;
use self::group::Group;
use super::connect::opener::Opener;
use super::topology::{Found, Topology};
use crate::backend::redis::fault;
use crate::check::{Report, Role};

mod aim;
mod clock;
mod cluster;
mod examination;
mod failures;
mod group;
mod proxy;
mod rehearsal;
mod rights;
mod seeds;
mod sentinel;
mod session;
mod settings;
mod subscription;

/// Checks a server on connections of the check's own, until it gives no answer, and the Sentinels that name it; or
/// every node of a cluster.
pub(super) async fn check(topology: Arc<Topology>, prefix: String, role: Role) -> Report {
    let opener = topology.opener.clone();
    let opener = if role == Role::Reader { opener.for_reading() } else { opener };
    let aim = Aim { prefix, role };
    match &topology.found {
        Found::Fixed => check_one(&opener, &aim, None).await,
        Found::Elected(sentinels) => {
            check_one(&opener, &aim, Some(Group::of(sentinels).await)).await
        }
        Found::Seeds(seeds) => cluster::check(&opener, &aim, seeds).await,
    }
}

async fn check_one(opener: &Opener, aim: &Aim, group: Option<Group>) -> Report {
    let mut report = Report::new(&opener.server);
    let standing = Standing { has_failover: group.is_some(), shard: None };
    if group.as_ref().is_none_or(Group::names_primary) {
        // The clock of one server is compared with ours alone.
        let _: Option<_> = examine(opener, aim, standing, &mut report).await;
    }
    report.locate();
    report.add(group.iter().flat_map(Group::findings));
    report
}

/// The report where the check itself ended midway.
pub(super) fn unchecked(server: &str) -> Report {
    let mut report = Report::new(server);
    report.add([failures::silence(fault::runtime_ended(server).message)]);
    report
}
