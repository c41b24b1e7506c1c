//! The words of faults of a cluster or its nodes.

use std::fmt::Write as _;

use crate::core::backend::Fault;
use crate::core::types::error::LockErrorKind;
use crate::core::types::remedy;
use crate::core::types::slot::Slot;

pub(crate) fn unknown(cluster: &str, faults: Vec<Fault>) -> Fault {
    let is_refused = faults.iter().all(|fault| fault.kind == LockErrorKind::Refused);
    let kind = if is_refused { LockErrorKind::Refused } else { LockErrorKind::Unavailable };
    let mut message = format!("{cluster}: no node gave a valid reply to `CLUSTER SLOTS`");
    for (number, fault) in faults.iter().enumerate() {
        let said = fault.message.strip_prefix(cluster).unwrap_or(&fault.message).trim_start();
        // A string takes everything.
        let _written = write!(message, "{} {said}", if number == 0 { ":" } else { ";" });
    }
    let advice = remedy::first(faults.iter().map(|fault| &*fault.advice));
    let source = faults.into_iter().find_map(|fault| fault.source);
    Fault { source, ..Fault::new(kind, message) }.advise(advice)
}

pub(crate) fn unserved(cluster: &str, slot: Slot) -> Fault {
    let number = slot.number();
    Fault::unavailable(format!("{cluster}: no node has slot {number} of the cluster"))
}

pub(crate) fn without_slots(cluster: &str) -> Fault {
    Fault::unavailable(format!("{cluster}: no node of the cluster has slots"))
}

pub(crate) fn without_its_slots(server: &str) -> Fault {
    Fault::unavailable(format!("{server}: the node has no slots any more"))
}

/// Nodes name each other for a slot; the fault is the last one's.
pub(crate) fn circle(last: &Fault) -> Fault {
    Fault::unavailable(format!(
        "{}; redirect loop: the nodes keep naming each other for this slot",
        last.message
    ))
}
