//! The check of servers: does everything that locks do once, with its own lock, and reads what they depend on.

use std::sync::Arc;

use self::examination::{Aim, examine};
use self::group::Group;
use crate::findings::{Code, Finding, Severity};
use crate::operators::check::{Report, Role};
use crate::redis::connect::opener::Opener;
use crate::redis::fault;
use crate::redis::topology::{Discovery, Topology};

mod clock;
mod cluster;
mod dry_run;
mod examination;
mod group;
mod proxy;
mod rights;
mod seeds;
mod sentinel;
mod session;
mod subscription;

/// Checks a server and the Sentinels that name it, or every node of a cluster, on its own connections.
pub(super) async fn check(topology: Arc<Topology>, prefix: String, role: Role) -> Report {
    let opener = topology.opener.afresh();
    let opener = if role == Role::Reader { opener.for_reading() } else { opener };
    let aim = Aim { prefix, role };
    let mut report = match &topology.found {
        Discovery::Fixed => check_one(&opener, &aim, None).await,
        Discovery::Elected(sentinels) => {
            check_one(&opener, &aim, Some(Group::of(sentinels).await)).await
        }
        Discovery::Seeds(seeds) => cluster::check(&opener, &aim, seeds).await,
    };
    let ending = opener.certificates.ending().into_iter();
    report.add(ending.map(|end| Finding::new(Severity::Warning, Code::CertificateEnds, end)));
    report
}

async fn check_one(opener: &Opener, aim: &Aim, group: Option<Group>) -> Report {
    let mut report = Report::new(&opener.server);
    if group.as_ref().is_none_or(Group::names_primary) {
        // The clock of one server is compared with ours alone.
        let _: Option<_> = examine(opener, aim, None, &mut report).await;
    }
    report.locate();
    report.add(group.iter().flat_map(Group::findings));
    report
}

pub(super) fn unchecked(server: &str) -> Report {
    let mut report = Report::new(server);
    let message = fault::runtime_ended(server).message;
    report.add([Finding::new(Severity::Error, Code::Unreachable, message)]);
    report
}
