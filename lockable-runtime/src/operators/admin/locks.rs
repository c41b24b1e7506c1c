//! A listing, page by page, with pauses.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::BuildHasher;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::time::Sleep;

use super::held::HeldLock;
use crate::core::backend::{BackendContext, Fault, Reply};
use crate::core::naming::namespace::Namespace;
use crate::core::process::clock::Moment;
use crate::core::types::error::LockError;
use crate::core::types::redact::DisplayKey;
use crate::operators::contract::operations;
use crate::operators::contract::{Page, Rest};
use crate::operators::selection::Selection;

/// A listing of all locks of a locker's prefix that have a holder; made by [`Admin::locks`](super::Admin::locks).
///
/// It is a [`Stream`]. Without a library for streams, use [`next`](Locks::next).
#[must_use = "nothing is listed until the first lock is requested"]
pub struct Locks {
    context: Arc<BackendContext>,
    prefix: String,
    namespace: Namespace,
    glob: String,
    pace: ListingPace,
    state: ListingState,
    found: VecDeque<HeldLock>,
    scanned: u64,
    failed: Option<LockError>,
    /// Hashes of the keys listed so far: a server may name a key more than once.
    listed: HashSet<u64>,
    hashes: RandomState,
}

#[derive(Clone, Copy, Debug)]
enum ListingPace {
    Gentle,
    Fast,
}

enum ListingState {
    Start,
    /// The request for a page, and when it was sent.
    Asking(Reply<Page>, Moment),
    Pausing(Pin<Box<Sleep>>, Rest),
    Ready(Rest),
    End,
}

impl Locks {
    pub(super) fn new(context: Arc<BackendContext>, prefix: String, namespace: Namespace) -> Self {
        Self {
            context,
            prefix,
            namespace,
            glob: "*".to_owned(),
            pace: ListingPace::Gentle,
            state: ListingState::Start,
            found: VecDeque::new(),
            scanned: 0,
            failed: None,
            listed: HashSet::new(),
            hashes: RandomState::new(),
        }
    }

    /// Lists only the locks whose names match a glob.
    ///
    /// `*` is any text, `?` any character of one byte, and `[a-c]` one of these characters. `\` escapes the next
    /// character. The server still scans all its keys.
    pub fn matching(mut self, glob: impl Into<String>) -> Self {
        self.glob = glob.into();
        self
    }

    /// Lists without pauses, for a server with spare capacity.
    pub fn unthrottled(mut self) -> Self {
        self.pace = ListingPace::Fast;
        self
    }

    /// Returns the next lock; `None` when all were listed.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when a server does not reply, or its reply is unusable. In a
    ///   cluster the listing continues with the locks of the other servers; otherwise it ends.
    /// - [`Refused`](crate::LockErrorKind::Refused) when the user may not list; see [the rights](super#rights).
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// No lock is skipped: the next call returns it.
    pub async fn next(&mut self) -> Option<Result<HeldLock, LockError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns about how many keys of any kind the listing has scanned so far, of
    /// [`Admin::count`](super::Admin::count).
    #[doc(hidden)]
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    fn start(&self) -> Result<ListingState, LockError> {
        let selection = Selection::new(&self.prefix, &self.glob, &self.namespace);
        let page = operations(&self.context)?.sweep(selection);
        Ok(ListingState::Asking(page, self.context.backend.now()))
    }

    fn turn(&mut self, page: Page, asked: Moment) -> ListingState {
        self.failed = page.fault.map(Fault::into_error);
        self.scanned = self.scanned.saturating_add(page.scanned);
        for seen in page.seen {
            if self.listed.insert(self.hashes.hash_one(seen.key.as_str())) {
                self.found.push_back(HeldLock::of(seen, &self.prefix, &self.context.reporting));
            }
        }
        let Some(rest) = page.rest else { return ListingState::End };
        let took = self.context.backend.now().since(asked);
        match self.pace {
            ListingPace::Gentle if !took.is_zero() => {
                let pause = took.saturating_mul(PAUSE).min(LONGEST_PAUSE);
                ListingState::Pausing(Box::pin(self.context.backend.timer(pause)), rest)
            }
            ListingPace::Gentle | ListingPace::Fast => ListingState::Ready(rest),
        }
    }

    fn asking(&self, rest: Rest) -> ListingState {
        let now = self.context.backend.now();
        ListingState::Asking(rest(), now)
    }
}

/// The pause after a page is this many times as long as the page took, so a listing takes at most a fifth of the
/// server's time.
const PAUSE: u32 = 4;

/// A page that takes longer than a quarter of this spends the rest in waiting, not in the server's work.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Stream for Locks {
    type Item = Result<HeldLock, LockError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(lock) = this.found.pop_front() {
                return Poll::Ready(Some(Ok(lock)));
            }
            if let Some(error) = this.failed.take() {
                return Poll::Ready(Some(Err(error)));
            }
            this.state = match std::mem::replace(&mut this.state, ListingState::End) {
                ListingState::Start => match this.start() {
                    Ok(started) => started,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                ListingState::Asking(mut reply, asked) => match reply.as_mut().poll(cx) {
                    Poll::Ready(Ok(page)) => this.turn(page, asked),
                    Poll::Ready(Err(fault)) => return Poll::Ready(Some(Err(fault.into_error()))),
                    Poll::Pending => {
                        this.state = ListingState::Asking(reply, asked);
                        return Poll::Pending;
                    }
                },
                ListingState::Pausing(mut pause, rest) => match pause.as_mut().poll(cx) {
                    Poll::Ready(()) => ListingState::Ready(rest),
                    Poll::Pending => {
                        this.state = ListingState::Pausing(pause, rest);
                        return Poll::Pending;
                    }
                },
                ListingState::Ready(rest) => this.asking(rest),
                ListingState::End => return Poll::Ready(None),
            };
        }
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks")
            .field("prefix", &self.prefix)
            .field(
                "matching",
                &DisplayKey::new(&self.glob, self.context.reporting.redacts_keys).text(),
            )
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Locker;

    async fn behind_a_page(mut listing: Locks, took: Duration) -> ListingState {
        let rest = || -> Reply<Page> { Box::pin(std::future::pending()) };
        let page = Page { seen: Vec::new(), scanned: 0, fault: None, rest: Some(Box::new(rest)) };
        let asked = listing.context.backend.now();
        tokio::time::advance(took).await;
        listing.turn(page, asked)
    }

    fn listing() -> Locks {
        Locks::new(Arc::new(BackendContext::in_memory()), String::new(), Namespace::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_pauses_four_times_as_long_as_a_page_took() {
        for (took, pause) in [(10, 40), (900, 1_000)] {
            let start = tokio::time::Instant::now();
            let state = behind_a_page(listing(), Duration::from_millis(took)).await;
            let ListingState::Pausing(until, _) = state else { panic!("it does not pause") };
            until.await;
            assert_eq!(start.elapsed(), Duration::from_millis(took + pause));
        }
        let state = behind_a_page(listing().unthrottled(), Duration::from_millis(10)).await;
        assert!(matches!(state, ListingState::Ready(_)));
    }

    #[test]
    fn a_form_of_keys_is_redacted_as_they_are() {
        let locker = Locker::builder().url("memory://").redact_keys().connect_lazy().unwrap();
        let shown = format!("{:?}", locker.admin().locks().matching("mail:ada*"));
        assert!(shown.contains("redacted:") && !shown.contains("ada"), "{shown}");
    }
}
