//! Why a holder cannot be asked, as far as can be known.

use lockable_runtime::{Holder, HolderKind};

use crate::arguments::Connection;
use crate::output::lock::place;
use crate::process_index::{Known, ProcessIndex};

/// The reasons in a sentence, and what it means to take the lock away.
pub(super) struct Silence {
    pub(super) why: String,
    pub(super) force: &'static str,
}

impl Silence {
    pub(super) fn of(
        holder: &Holder,
        connection: &Connection,
        process_index: &ProcessIndex,
    ) -> Self {
        let (why, force) = match holder.kind() {
            HolderKind::KeptByMinHold => {
                ("it has released the lock, which is kept by `min_hold`".to_owned(), KEPT)
            }
            HolderKind::Done => ("its run is done".to_owned(), KEPT),
            _ => of_process(holder, connection, process_index),
        };
        Self { why, force }
    }
}

fn of_process(
    holder: &Holder,
    connection: &Connection,
    process_index: &ProcessIndex,
) -> (String, &'static str) {
    let Some(id) = holder.process() else {
        return ("it is another library's lock".to_owned(), AT_WORK);
    };
    let known = process_index.find(Some(id));
    let causes = causes(connection);
    match known {
        Known::NotConnected => (NOT_CONNECTED.to_owned(), IF_ALIVE),
        Known::Connected(_) => (format!("{} does not listen: {causes}", place(known)), AT_WORK),
        Known::Unknown => (format!("its process does not listen, or has ended: {causes}"), AT_WORK),
    }
}

/// Why a process does not listen that may be alive.
fn causes(connection: &Connection) -> String {
    let namespace = connection.namespace.as_ref().map(|name| format!(" than `{name}`"));
    let namespace = namespace.unwrap_or_default();
    format!(
        "the lock has no `renew`, its service has another --namespace{namespace}, or it has just lost its connection"
    )
}

const NOT_CONNECTED: &str = "its process is not listed among the connections of this server: it has ended, is cut off, \
    or its user may not name connections (`+client|setname`)";

pub(super) const AT_WORK: &str = "to take it away now, with two holders until the old one notices";

const IF_ALIVE: &str = "to take it away now, with two holders if that process is alive";

const KEPT: &str = "to end that now";
