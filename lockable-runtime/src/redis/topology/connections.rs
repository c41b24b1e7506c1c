//! A connection for each tokio runtime of this process.
//!
//! See "Why is there a connection for each tokio runtime?" in DESIGN.md.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

use crate::core::backend::Fault;
use crate::core::process::clock::boot_time;
use crate::core::process::mutex::Mutex;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::stage::Progress;
use crate::redis::fault;
use crate::redis::wire::connection::Connection;

/// What a caller without a connection waits for: `None` until the outcome is known.
type Opening = watch::Receiver<Option<Result<Arc<Connection>, Fault>>>;

/// Each with its stage. Searched linearly: few processes have more than a few runtimes.
type Openings = Vec<(Id, Opening, Progress)>;

/// The connections to one server, keyed by the runtime that drives them.
///
/// A connection works only while its runtime does, and a process may run many: each `#[tokio::test]` makes one. Callers
/// outside a runtime use the background runtime's.
pub(crate) struct Connections {
    /// Also for callers that open a private connection.
    pub(crate) opener: Opener,
    openings: Mutex<Openings>,
}

impl Connections {
    pub(crate) fn new(opener: Opener) -> Self {
        Self { opener, openings: Mutex::default() }
    }

    /// New connections lead to another server, which may have other locks.
    pub(crate) fn abandon(&self) {
        self.drop_retired();
        self.opener.reports.connected();
    }

    pub(crate) fn drop_retired(&self) {
        self.openings.lock().retain(|(_, opening, _)| is_usable(opening));
    }

    pub(crate) fn each(&self, act: impl Fn(&Connection)) {
        for (_, opening, _) in &*self.openings.lock() {
            if let Some(connection) = connection(opening) {
                act(&connection);
            }
        }
    }

    /// The connection of the caller's runtime, opened by the first caller.
    ///
    /// # Cancel safety
    /// Opening continues when the caller is dropped, and serves the next one.
    pub(crate) async fn ready(&self) -> Result<Arc<Connection>, Fault> {
        let runtime = self.runtime();
        match self.latest(&runtime).filter(|connection| !connection.is_retired()) {
            Some(connection) => {
                connection.begins();
                Ok(connection)
            }
            // Boxed, because every call would carry its size and hardly one needs it.
            None => Box::pin(self.opened(&runtime)).await,
        }
    }

    /// This runtime's latest connection, which may be retired.
    fn latest(&self, runtime: &Handle) -> Option<Arc<Connection>> {
        connection(find(&self.openings.lock(), runtime)?)
    }

    /// Makes the next call replace a connection of the caller's runtime that is older than the other's.
    pub(crate) fn retire_older_than(&self, other: &Self) {
        let runtime = self.runtime();
        if let (Some(own), Some(other)) = (self.latest(&runtime), other.latest(&runtime))
            && own.is_older_than(&other)
        {
            own.retire();
        }
    }

    async fn opened(&self, runtime: &Handle) -> Result<Arc<Connection>, Fault> {
        let (mut opening, is_joined) = self.opening(runtime);
        let Opener { server, connect_deadline: limit, .. } = &self.opener;
        let begun = boot_time();
        let connect = async {
            let first = outcome(&mut opening).await;
            let is_late = boot_time().since(begun) > *limit / 2;
            if !is_joined || is_late || matches!(first, Some(Ok(_))) {
                return first;
            }
            // It started earlier: the cause of its failure may be over, and there is time for another.
            opening = self.opening(runtime).0;
            outcome(&mut opening).await
        };
        let Some(outcome) = self.opener.within(*limit, connect).await else {
            let late = self.late();
            // The next call shall not join what this one gave up, unless it was to have more time.
            if self.opener.patience(self.renews(runtime)) == *limit {
                self.openings.lock().retain(|(_, other, _)| !other.same_channel(&opening));
            }
            return Err(late);
        };
        outcome.unwrap_or_else(|| Err(fault::runtime_ended(server)))
    }

    pub(crate) fn late(&self) -> Fault {
        let id = self.runtime().id();
        let mut openings = self.openings.lock().clone().into_iter();
        let progress = openings.find_map(|(of, _, progress)| (of == id).then_some(progress));
        self.opener.late(&progress.unwrap_or_default())
    }

    fn runtime(&self) -> Handle {
        Handle::try_current().unwrap_or_else(|_| self.opener.timers.clone())
    }

    pub(crate) fn unanswered(&self, waited: Duration) {
        if let Some(connection) = self.latest(&self.runtime()) {
            connection.unanswered(waited);
        }
    }

    /// This runtime's connection, or the start of a new one; the flag is whether it was there.
    fn opening(&self, runtime: &Handle) -> (Opening, bool) {
        let mut openings = self.openings.lock();
        match find(&openings, runtime) {
            Some(opening) if is_usable(opening) => (opening.clone(), true),
            _ => {
                // The others are looked through only now, which is rare. Where one broke, the address may
                // lead to another server by now, and all have to lead to the same.
                let broke = openings.iter().any(|(_, opening, _)| is_retired(opening));
                openings
                    .retain(|(_, opening, _)| is_usable(opening) && !(broke && is_ended(opening)));
                let (opening, progress) = self.start_opening(runtime);
                openings.push((runtime.id(), opening.clone(), progress));
                (opening, false)
            }
        }
    }

    fn renews(&self, runtime: &Handle) -> bool {
        let Opener { timers, is_for_reading, is_for_confirming, .. } = &self.opener;
        runtime.id() == timers.id() && !is_for_reading && !is_for_confirming
    }

    fn start_opening(&self, runtime: &Handle) -> (Opening, Progress) {
        let (outcome, opening) = watch::channel(None);
        let opener = self.opener.afresh();
        let progress = opener.client.progress.clone();
        let renews = self.renews(runtime);
        let first = renews.then(|| opener.precedence.take());
        drop(runtime.spawn(async move {
            let open = Box::pin(Connection::open(opener.clone(), renews));
            let connection = opener.connecting_within(opener.patience(renews), open).await;
            drop(first);
            let is_open = connection.is_ok();
            if let Ok(connection) = &connection {
                drop(tokio::spawn(pass_on(connection.end(), opener.clone())));
            }
            outcome.send_replace(Some(connection.map(Arc::new)));
            if is_open {
                opener.reports.connected();
            }
            // Stays until no call looks for the connection any more, or the runtime ends: then the
            // channel closes, which ends the others' waiting.
            outcome.closed().await;
        }));
        (opening, progress)
    }
}

async fn pass_on(end: impl Future<Output = bool>, opener: Opener) {
    let is_broken = end.await;
    if is_broken {
        opener.reports.broken(&fault::broke(&opener.server));
    }
}

fn find<'a>(openings: &'a Openings, runtime: &Handle) -> Option<&'a Opening> {
    let id = runtime.id();
    openings.iter().find_map(|(of, opening, _)| (*of == id).then_some(opening))
}

async fn outcome(opening: &mut Opening) -> Option<Result<Arc<Connection>, Fault>> {
    opening.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone())
}

/// Whether callers may wait for or use this connection: it has not failed, is not retired, and its runtime runs.
fn is_usable(opening: &Opening) -> bool {
    let is_sound = connection(opening).map_or(!is_ended(opening), |open| !open.is_retired());
    is_sound && opening.has_changed().is_ok()
}

fn is_ended(opening: &Opening) -> bool {
    opening.borrow().is_some()
}

fn is_retired(opening: &Opening) -> bool {
    connection(opening).is_some_and(|connection| connection.is_retired())
}

fn connection(opening: &Opening) -> Option<Arc<Connection>> {
    opening.borrow().as_ref()?.as_ref().ok().cloned()
}
