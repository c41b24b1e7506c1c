//! How a locker judges a server that it has just connected to.
//!
//! See "Why does each new connection try a lock first?" in DESIGN.md.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::command;
use super::flaw::Flaw;
use super::probe::{self, Probe, Step};
use super::server::Mode;
use super::session::{Handshake, Session};
use super::settings;
use crate::core::backend::Fault;
use crate::core::types::error::LockErrorKind;
use crate::findings::Severity;
use crate::redis::fault;

/// Asks a server what it is, and does all that locks do with a lock there.
///
/// Otherwise only acquiring would fail early. The rest would fail when the body runs or has run, and the lock cannot be
/// renewed or freed, or at the second grant.
pub(crate) async fn handshake(session: &Session<'_>) -> Result<Handshake, Fault> {
    let Session { opener, target, .. } = session;
    let asks_settings = settings::are_unknown(opener, target);
    let Handshake { hello, tracks, names, settings, flaws } =
        session.handshake(asks_settings).await?;
    refuse(flaws)?;
    let slot = target.node.as_ref().map(|node| node.slot());
    let probe = Probe::new("", &names, slot)?;
    let mode = Mode::of(&hello);
    let tried = probe::run(session, probe, |probe| steps(session, probe, mode)).await?;
    if tried.is_spread {
        opener.is_sharded.store(true, Ordering::Relaxed);
    }
    refuse(tried.flaws(target))?;
    for danger in settings::dangers(settings, opener, target) {
        opener.reports.endangered(&target.server, &danger);
    }
    let names = tried.probe.into_names();
    Ok(Handshake { hello, tracks, names, settings: Vec::new(), flaws: Vec::new() })
}

fn steps(session: &Session<'_>, probe: &Probe, mode: Mode) -> Vec<Step> {
    let Session { opener, target, .. } = session;
    if opener.is_for_reading {
        // One node of several has a part of the locks: of the others it would seem that no one has them.
        return probe::others(session, probe, mode);
    }
    let is_node = target.node.is_some();
    let extra = || {
        let mut extra = if is_node { Vec::new() } else { probe::together(probe) };
        extra.push(Step::script(probe::BY_TEXT, command::empty_script()));
        extra
    };
    let mut steps = probe::steps(probe, extra);
    steps.extend(probe::others(session, probe, mode));
    if opener.is_for_confirming {
        steps.push(Step::command(probe::WAITING, command::wait(0, WAIT)));
    }
    steps
}

/// A flaw that does not pass by itself comes first. A server that is out of memory sets no new locks, but renews and
/// frees those that are held.
fn refuse(flaws: Vec<Flaw>) -> Result<(), Fault> {
    let is_full = |flaw: &Flaw| flaw.error.as_ref().is_some_and(fault::is_out_of_memory);
    let is_error = |flaw: &Flaw| flaw.finding.severity() == Severity::Error;
    let counts = flaws.into_iter().filter(|flaw| is_error(flaw) && !is_full(flaw));
    let faults = counts.map(Fault::from);
    faults.min_by_key(|fault| fault.kind == LockErrorKind::Unavailable).map_or(Ok(()), Err)
}

/// The probe waits for no replica.
const WAIT: Duration = Duration::from_millis(1);
