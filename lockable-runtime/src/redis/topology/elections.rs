//! Which server is the primary, by the latest announcement or answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::votes::Elected;
use crate::core::backend::epochs::{Epoch, Epochs};
use crate::core::process::clock::{Moment, boot_time};
use crate::core::process::mutex::Mutex;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::finder::Term;

/// How long an announced primary is used without a query. Sentinels tell each other of a failover within two seconds;
/// until then most may still name the old primary.
const ANNOUNCED: Duration = Duration::from_secs(5);

/// How long answers are used without a query if that primary cannot be used: a fleet of processes that waits for a
/// failover must leave the Sentinels time to agree.
const ANSWERED: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Elections {
    known: Mutex<Primary>,
    epochs: Arc<Epochs>,
}

#[derive(Default)]
struct Primary {
    endpoint: Option<Endpoint>,
    /// Until then it is used without a query.
    until: Option<Moment>,
    answered: Moment,
    is_doubted: bool,
    announced: Option<Announced>,
}

struct Announced {
    at: Moment,
    /// The primary before it, which other Sentinels may still name.
    left: Option<Endpoint>,
}

#[derive(Clone)]
pub(crate) struct Election {
    all: Arc<Elections>,
    epoch: Epoch,
}

impl Elections {
    pub(crate) fn number(&self) -> u64 {
        self.epochs.number()
    }

    /// Changes whenever another server becomes the primary.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.epochs.changes()
    }

    /// The primary, if known so recently that no Sentinel is asked.
    pub(crate) fn recent(self: &Arc<Self>) -> Option<(Endpoint, Election)> {
        let known = self.known.lock();
        let is_recent = boot_time() < known.until?;
        let endpoint = known.endpoint.clone().filter(|_| is_recent)?;
        Some((endpoint, self.election()))
    }

    pub(crate) fn last(&self) -> Option<Endpoint> {
        self.known.lock().endpoint.clone()
    }

    /// A Sentinel has announced a primary that replaces `left`. `false` if `left` is not the known primary: the
    /// announcement may be late.
    pub(crate) fn announce(&self, left: &Endpoint, endpoint: Endpoint) -> bool {
        let mut known = self.known.lock();
        let is_next =
            known.endpoint.as_ref().is_none_or(|known| known == left || *known == endpoint);
        if is_next {
            self.believe(&mut known, endpoint);
        }
        is_next
    }

    /// The Sentinel that announced it has confirmed it.
    pub(crate) fn confirm(&self, endpoint: Endpoint) {
        self.believe(&mut self.known.lock(), endpoint);
    }

    fn believe(&self, known: &mut Primary, endpoint: Endpoint) {
        let now = boot_time();
        if known.endpoint.as_ref() != Some(&endpoint) {
            known.announced = Some(Announced { at: now, left: known.endpoint.clone() });
        }
        known.until = Some(now.after(ANNOUNCED));
        self.change(known, endpoint);
    }

    /// Takes the answers to a query that was sent during that election; anything learned since is newer. Returns the
    /// primary that counts; none if they disagree and none was known.
    ///
    /// Less than a majority counts only if the known primary could not be used, and a tie never.
    pub(crate) fn settle(
        self: &Arc<Self>,
        before: u64,
        answer: Elected,
    ) -> Option<(Endpoint, Election)> {
        let mut known = self.known.lock();
        let now = boot_time();
        let Elected { endpoint, is_by_majority, is_tied } = answer;
        let is_needed = known.is_doubted || known.endpoint.is_none();
        let counts = is_by_majority || (is_needed && !is_tied);
        if self.number() == before && counts && !known.is_outdated(&endpoint, now) {
            self.change(&mut known, endpoint);
        }
        known.answered = now;
        if known.is_doubted {
            known.until = Some(now.after(ANSWERED));
        }
        Some((known.endpoint.clone()?, self.election()))
    }

    fn change(&self, known: &mut Primary, endpoint: Endpoint) {
        if known.endpoint.as_ref() == Some(&endpoint) {
            return;
        }
        // Nothing leads elsewhere yet when the first primary is learned of.
        let is_other = known.endpoint.replace(endpoint).is_some();
        known.is_doubted = false;
        self.epochs.begin(is_other);
    }

    fn election(self: &Arc<Self>) -> Election {
        Election { all: Arc::clone(self), epoch: self.epochs.current() }
    }
}

impl Primary {
    /// Whether the Sentinels that name this place have not heard of the last failover.
    fn is_outdated(&self, endpoint: &Endpoint, now: Moment) -> bool {
        let Some(Announced { at, left }) = &self.announced else { return false };
        left.as_ref() == Some(endpoint) && now.since(*at) < ANNOUNCED
    }
}

impl Term for Election {
    fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    fn works(&self) {
        let mut known = self.all.known.lock();
        if !self.epoch.is_over() {
            known.is_doubted = false;
        }
    }

    fn doubt(&self) {
        let mut known = self.all.known.lock();
        if !self.epoch.is_over() {
            known.is_doubted = true;
            known.until = Some(known.answered.after(ANSWERED));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Endpoint {
        Endpoint { host: "h".to_owned(), port }
    }

    fn known(elections: &Arc<Elections>) -> Option<u16> {
        elections.recent().map(|(endpoint, _)| endpoint.port)
    }

    fn settle(elections: &Arc<Elections>, before: u64, port: u16) -> (u16, Election) {
        let (endpoint, election) = elections.settle(before, by_majority(port)).unwrap();
        (endpoint.port, election)
    }

    fn by_majority(port: u16) -> Elected {
        Elected { endpoint: at(port), is_by_majority: true, is_tied: false }
    }

    fn announce(elections: &Arc<Elections>, left: u16, port: u16) -> bool {
        elections.announce(&at(left), at(port))
    }

    #[test]
    fn the_first_primary_is_no_change() {
        let elections = Arc::<Elections>::default();
        let changes = elections.changes();
        let (_, first) = settle(&elections, 0, 1);
        assert!(!changes.has_changed().unwrap() && !first.epoch.is_over());
        assert!(announce(&elections, 1, 2));
        assert!(changes.has_changed().unwrap() && first.epoch.is_over());
    }

    #[test]
    fn another_primary_ends_an_election() {
        let elections = Arc::<Elections>::default();
        let (_, first) = settle(&elections, 0, 1);
        let (_, same) = settle(&elections, 1, 1);
        assert!(!first.epoch.is_over() && !same.epoch.is_over());
        assert!(announce(&elections, 1, 2));
        assert!(first.epoch.is_over() && same.epoch.is_over());
        assert_eq!(known(&elections), Some(2));
        // The other Sentinels announce the same.
        let (_, second) = elections.recent().unwrap();
        assert!(announce(&elections, 1, 2));
        assert!(!second.epoch.is_over());
    }

    /// 1. A query is sent.
    /// 2. A failover is announced.
    /// 3. The answers arrive, which were given before it.
    #[test]
    fn an_announcement_outlasts_earlier_queries() {
        let elections = Arc::<Elections>::default();
        settle(&elections, 0, 1);
        assert!(announce(&elections, 1, 2));
        let (port, election) = settle(&elections, 1, 1);
        assert_eq!(port, 2);
        assert!(!election.epoch.is_over());
        // After the next failover no other rule keeps the first primary out.
        assert!(announce(&elections, 2, 3));
        assert_eq!(settle(&elections, 1, 1).0, 3);
    }

    /// Most Sentinels may hear of a failover later than the one that announced it.
    #[test]
    fn outdated_answers_do_not_undo_a_failover() {
        let elections = Arc::<Elections>::default();
        settle(&elections, 0, 1);
        assert!(announce(&elections, 1, 2));
        let (_, second) = elections.recent().unwrap();
        second.doubt();
        assert_eq!(settle(&elections, 2, 1).0, 2);
        // A third server is news.
        assert_eq!(settle(&elections, 2, 3).0, 3);
        assert!(second.epoch.is_over());
    }

    /// In an outage every call of a process doubts the primary.
    #[test]
    fn an_answer_is_used_for_a_second() {
        let elections = Arc::<Elections>::default();
        let (_, election) = settle(&elections, 0, 1);
        assert_eq!(known(&elections), None);
        election.doubt();
        assert_eq!(known(&elections), Some(1));
    }

    /// The first answer is old by the time of the doubt, like one from before the outage.
    #[test]
    fn each_answer_in_an_outage_is_used_for_a_second() {
        let elections = Arc::<Elections>::default();
        let (_, election) = settle(&elections, 0, 1);
        elections.known.lock().answered = Moment::from_nanos(0);
        election.doubt();
        assert_eq!(known(&elections), None);
        settle(&elections, 1, 1);
        assert_eq!(known(&elections), Some(1));
    }

    #[test]
    fn an_announced_primary_is_doubted_at_once() {
        let elections = Arc::<Elections>::default();
        assert!(announce(&elections, 1, 2));
        let (_, election) = elections.recent().unwrap();
        election.doubt();
        assert_eq!(known(&elections), None);
    }

    #[test]
    fn what_the_former_primary_does_is_no_news_of_the_next() {
        let elections = Arc::<Elections>::default();
        let (_, first) = settle(&elections, 0, 1);
        assert!(announce(&elections, 1, 2));
        let (_, second) = elections.recent().unwrap();
        first.doubt();
        assert_eq!(known(&elections), Some(2));
        second.doubt();
        first.works();
        assert!(elections.known.lock().is_doubted);
        second.works();
        assert!(!elections.known.lock().is_doubted);
    }

    /// Two failovers may have happened, and a message of the first is late.
    #[test]
    fn a_late_announcement_is_not_believed() {
        let elections = Arc::<Elections>::default();
        settle(&elections, 0, 1);
        assert!(announce(&elections, 1, 2) && announce(&elections, 2, 3));
        assert!(!announce(&elections, 1, 2));
        assert_eq!(known(&elections), Some(3));
        elections.confirm(at(2));
        assert_eq!(known(&elections), Some(2));
    }

    /// The only one that answers may be cut off together with the old primary.
    #[test]
    fn a_minority_replaces_no_primary_that_works() {
        let elections = Arc::<Elections>::default();
        settle(&elections, 0, 1);
        let minority = || Elected { endpoint: at(2), is_by_majority: false, is_tied: false };
        let settle = || elections.settle(1, minority()).unwrap();
        let (endpoint, election) = settle();
        assert_eq!(endpoint, at(1));
        election.doubt();
        election.works();
        assert_eq!(settle().0, at(1));
        election.doubt();
        assert_eq!(settle().0, at(2));
    }

    #[test]
    fn a_tie_names_no_primary() {
        let elections = Arc::<Elections>::default();
        let tie = || Elected { endpoint: at(2), is_by_majority: false, is_tied: true };
        assert!(elections.settle(0, tie()).is_none());
        settle(&elections, 0, 1).1.doubt();
        assert_eq!(elections.settle(1, tie()).unwrap().0, at(1));
    }
}
