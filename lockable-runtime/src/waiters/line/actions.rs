//! What the events of a line ask for.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::backend::Attempt;
use crate::types::clock::Moment;
use crate::types::options::Ttl;
use crate::types::token::FencingToken;

/// A call that waits.
pub(crate) struct Waiter<C> {
    /// Its place in the order of arrival.
    pub(crate) number: u64,
    pub(crate) is_fair: bool,
    pub(crate) call: C,
}

/// What an event asks for. Each call that waits is delivered a turn once, or refused, unless it leaves.
#[must_use = "the line counts on its actions"]
pub(crate) struct Actions<C> {
    /// The turn of this call has come.
    pub(crate) deliver: Option<(C, Granted)>,
    /// A question about this attempt is due.
    pub(crate) ask: Option<Arc<Attempt>>,
    /// The backend is to forget these attempts, in the queue and as holders.
    pub(crate) withdraw: Vec<Arc<Attempt>>,
    /// This attempt holds the lock, and no call wants it.
    pub(crate) release: Option<Arc<Attempt>>,
    /// These calls end with the fault of the event.
    pub(crate) refuse: VecDeque<Waiter<C>>,
}

/// What a call is given with its turn.
pub(crate) struct Granted {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) fencing_token: FencingToken,
    /// From when on the grant counts, where that is known.
    pub(crate) since: Option<Moment>,
    pub(crate) ttl: Ttl,
    /// Whether it is the answer to a doubt.
    pub(crate) is_confirmed: bool,
    /// Whether it came from another holder of this process, and not from the queue.
    pub(crate) is_passed_on: bool,
}

/// What goes with the release of a turn.
#[derive(Default)]
pub(crate) struct Ending {
    /// The attempt that the release queues behind the others.
    pub(crate) next: Option<Arc<Attempt>>,
    /// Whether a question about the ended attempt may land behind the release.
    pub(super) is_overtaking: bool,
}

impl<C> Actions<C> {
    pub(super) fn ask(attempt: Arc<Attempt>) -> Self {
        Self { ask: Some(attempt), ..Self::default() }
    }

    pub(super) fn release(attempt: &Arc<Attempt>) -> Self {
        Self { release: Some(Arc::clone(attempt)), ..Self::default() }
    }

    pub(super) fn withdraw(attempt: &Arc<Attempt>) -> Self {
        Self { withdraw: vec![Arc::clone(attempt)], ..Self::default() }
    }
}

impl<C> Default for Actions<C> {
    fn default() -> Self {
        let (withdraw, refuse) = (Vec::new(), VecDeque::new());
        Self { deliver: None, ask: None, withdraw, release: None, refuse }
    }
}
