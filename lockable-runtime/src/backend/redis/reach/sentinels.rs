//! The Sentinels that name the primary of a group of servers, and what they named last.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use ::redis::{Client, Cmd, FromRedisValue, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::driven::Driven;
use super::votes::{Place, Vote, Votes};
use crate::backend::Fault;
use crate::backend::redis::fault;
use crate::types::clock::{Moment, boot_time, timer_on, within};
use crate::types::error::LockErrorKind;

/// How long the others may take once one Sentinel has named a primary.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long an announced primary is used without asking. Sentinels tell each other of a failover within their
/// two seconds between greetings; until then most of them may still name the old primary.
const ANNOUNCED: Duration = Duration::from_secs(5);

/// How long the answers are used without asking again, so that the many calls of a failover ask little.
const ANSWERED: Duration = Duration::from_millis(100);

/// The Sentinels of one primary.
///
/// See "Why not the client's own Sentinel connection?" in DESIGN.md.
pub(crate) struct Sentinels {
    pub(crate) each: Vec<Sentinel>,
    /// The name that they have for the primary.
    pub(crate) primary: String,
    /// All of them, for messages.
    pub(crate) name: Arc<str>,
    /// The runtime whose timers keep the deadlines.
    pub(crate) timers: Handle,
    /// How long each has to answer.
    pub(crate) limit: Duration,
    known: Mutex<Known>,
    /// The number of the election that counts now; read by every call.
    number: AtomicU64,
    changes: watch::Sender<u64>,
}

/// One of them.
#[derive(Clone)]
pub(crate) struct Sentinel {
    pub(crate) client: Client,
    /// `host:port`.
    pub(crate) name: String,
}

/// The primary of now.
#[derive(Default)]
struct Known {
    place: Option<Place>,
    /// Until when it is used without asking.
    until: Option<Moment>,
    announced: Option<Announced>,
}

/// That a Sentinel announced the primary.
struct Announced {
    at: Moment,
    /// The primary before it, which Sentinels may still name that have not heard of the failover.
    left: Option<Place>,
}

impl Known {
    /// Whether the Sentinels that name this place have not heard of the last failover.
    fn is_outdated(&self, place: &Place, now: Moment) -> bool {
        let Some(Announced { at, left }) = &self.announced else { return false };
        left.as_ref() == Some(place) && now.since(*at) < ANNOUNCED
    }
}

/// That a server is the primary, until another one is.
#[derive(Clone)]
pub(crate) struct Election {
    sentinels: Arc<Sentinels>,
    number: u64,
}

impl Sentinels {
    pub(crate) fn new(
        each: Vec<Sentinel>,
        primary: String,
        name: Arc<str>,
        timers: Handle,
        limit: Duration,
    ) -> Self {
        let (known, number, changes) = (Mutex::default(), AtomicU64::new(0), watch::Sender::new(0));
        Self { each, primary, name, timers, limit, known, number, changes }
    }

    /// Where the primary is: as a Sentinel has just announced, or as most of them answer.
    pub(crate) async fn primary(self: &Arc<Self>) -> Result<(Place, Election), Fault> {
        if let Some(known) = self.recently_known() {
            return Ok(known);
        }
        let before = self.number();
        let place = self.ask().await?;
        Ok(self.settle(before, place))
    }

    /// Asks them, although a primary is known: it may have changed without an announcement that arrived.
    pub(crate) async fn ask_again(self: &Arc<Self>) {
        let before = self.number();
        if let Ok(place) = self.ask().await {
            self.settle(before, place);
        }
    }

    /// A Sentinel has announced another primary.
    pub(crate) fn announce(&self, place: Place) {
        let (mut known, now) = (self.known(), boot_time());
        if known.place.as_ref() != Some(&place) {
            known.announced = Some(Announced { at: now, left: known.place.clone() });
        }
        known.until = Some(now.after(ANNOUNCED));
        self.change(&mut known, place);
    }

    /// The primary of that election could not be used: the next connection asks where it is.
    pub(crate) fn doubt(&self, election: &Election) {
        let mut known = self.known();
        if !election.is_over() {
            known.until = None;
        }
    }

    /// Has a value whenever another server becomes the primary.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn recently_known(self: &Arc<Self>) -> Option<(Place, Election)> {
        let known = self.known();
        let is_recent = boot_time() < known.until?;
        let place = known.place.clone().filter(|_| is_recent)?;
        Some((place, self.election()))
    }

    /// What was answered to a question that was asked during that election; what was learned since is newer.
    fn settle(self: &Arc<Self>, before: u64, place: Place) -> (Place, Election) {
        let (mut known, now) = (self.known(), boot_time());
        if self.number() == before && !known.is_outdated(&place, now) {
            known.until = known.until.max(Some(now.after(ANSWERED)));
            self.change(&mut known, place.clone());
        }
        (known.place.clone().unwrap_or(place), self.election())
    }

    fn change(&self, known: &mut Known, place: Place) {
        if known.place.as_ref() == Some(&place) {
            return;
        }
        known.place = Some(place);
        let number = self.number.fetch_add(1, Ordering::Release) + 1;
        self.changes.send_replace(number);
    }

    fn election(self: &Arc<Self>) -> Election {
        Election { sentinels: Arc::clone(self), number: self.number() }
    }

    fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change is one assignment, so a panic elsewhere leaves it sound.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all of them at once.
    ///
    /// See "Why is every Sentinel asked at once?" in DESIGN.md.
    async fn ask(&self) -> Result<Place, Fault> {
        let mut asked = JoinSet::new();
        for sentinel in &self.each {
            let (sentinel, timers) = (sentinel.clone(), self.timers.clone());
            asked.spawn(sentinel.vote(self.primary.clone(), timers, self.limit));
        }
        let mut votes = Votes::of(self.each.len());
        let mut first = None;
        while votes.decided().is_none() {
            let left = first.map(|first| PATIENCE.saturating_sub(boot_time().since(first)));
            let next = asked.join_next();
            let vote = match left {
                Some(left) => within(|| timer_on(&self.timers, left), next).await.flatten(),
                None => next.await,
            };
            let Some(vote) = vote else { break };
            // One that panicked or was cancelled has no vote.
            votes.add(vote.unwrap_or_else(|_| Vote::None(fault::runtime_ended(&self.name))));
            first = first.or_else(|| votes.has_primary().then(boot_time));
        }
        votes.elected().cloned().ok_or_else(|| self.unknown(&votes))
    }

    /// No Sentinel names a primary.
    fn unknown(&self, votes: &Votes<Fault>) -> Fault {
        let Self { name, primary, .. } = self;
        let reasons: Vec<_> = votes.reasons().collect();
        let unknown = format!("the Sentinels watch no primary named {primary:?}");
        if reasons.is_empty() {
            let advice = "put its name into the URL, behind the hosts";
            let message = format!("{name}: {unknown}; {advice}");
            return Fault::new(LockErrorKind::Refused, message);
        }
        let is_refused = reasons.iter().all(|fault| fault.kind == LockErrorKind::Refused);
        let kind = if is_refused { LockErrorKind::Refused } else { LockErrorKind::Unavailable };
        let messages = reasons.iter().map(|fault| fault.message.as_str());
        let others = votes.has_unknown().then_some("the others watch no primary of that name");
        let list: Vec<_> = messages.chain(others).collect();
        let message =
            format!("{name}: no Sentinel names the primary {primary:?}: {}", list.join("; "));
        let source = reasons.first().and_then(|fault| fault.source.clone());
        Fault { source, ..Fault::new(kind, message) }
    }
}

impl Sentinel {
    async fn vote(self, primary: String, timers: Handle, limit: Duration) -> Vote<Fault> {
        match within(|| timer_on(&timers, limit), self.ask(&primary)).await {
            Some(Ok(Some(place))) => Vote::Primary(place),
            Some(Ok(None)) => Vote::Unknown,
            Some(Err(error)) => Vote::None(fault::of_sentinel(&self.name, &error)),
            None => Vote::None(Fault::no_answer(&self.name, limit)),
        }
    }

    /// `None` when it watches no primary of that name.
    async fn ask(&self, primary: &str) -> RedisResult<Option<Place>> {
        let mut driven = Driven::open(&self.client).await?;
        let mut command = Cmd::new();
        command.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(primary);
        let reply = driven.commands.send_packed_command(&command).await?.extract_error()?;
        if reply == Value::Nil {
            return Ok(None);
        }
        let (host, port) = <(String, u16)>::from_redis_value(reply)?;
        Ok(Some(Place { host, port }))
    }
}

impl Election {
    /// Whether another server is the primary by now.
    pub(crate) fn is_over(&self) -> bool {
        self.sentinels.number() != self.number
    }

    /// The future's output; `None` when another server becomes the primary first.
    pub(crate) async fn unless_over<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut changes = self.sentinels.changes();
        let mut over = pin!(changes.wait_for(|number| *number != self.number));
        let mut future = pin!(future);
        poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    pub(crate) fn doubt(&self) {
        self.sentinels.doubt(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Place {
        Place { host: "h".to_owned(), port }
    }

    fn sentinels() -> Arc<Sentinels> {
        let timers = crate::background::background().unwrap();
        Arc::new(Sentinels::new(Vec::new(), "mm".to_owned(), "name".into(), timers, PATIENCE))
    }

    /// The port that is known now, where it is used without asking.
    fn known(sentinels: &Arc<Sentinels>) -> Option<u16> {
        sentinels.recently_known().map(|(place, _)| place.port)
    }

    fn settle(sentinels: &Arc<Sentinels>, before: u64, port: u16) -> (u16, Election) {
        let (place, election) = sentinels.settle(before, at(port));
        (place.port, election)
    }

    #[test]
    fn another_primary_ends_an_election() {
        let sentinels = sentinels();
        let (_, first) = settle(&sentinels, 0, 1);
        let (_, same) = settle(&sentinels, 1, 1);
        assert!(!first.is_over() && !same.is_over());
        sentinels.announce(at(2));
        assert!(first.is_over() && same.is_over());
        assert_eq!(known(&sentinels), Some(2));
        // The other Sentinels announce the same.
        let (_, second) = sentinels.recently_known().unwrap();
        sentinels.announce(at(2));
        assert!(!second.is_over());
    }

    /// 1. A question is sent.
    /// 2. A failover is announced.
    /// 3. The answers arrive, which were given before it.
    #[test]
    fn an_announcement_outlasts_earlier_questions() {
        let sentinels = sentinels();
        settle(&sentinels, 0, 1);
        sentinels.announce(at(2));
        let (port, election) = settle(&sentinels, 1, 1);
        assert_eq!(port, 2);
        assert!(!election.is_over());
    }

    /// Most Sentinels may hear of a failover later than the one that announced it.
    #[test]
    fn outdated_answers_do_not_undo_a_failover() {
        let sentinels = sentinels();
        settle(&sentinels, 0, 1);
        sentinels.announce(at(2));
        let (_, second) = sentinels.recently_known().unwrap();
        sentinels.doubt(&second);
        assert_eq!(known(&sentinels), None);
        assert_eq!(settle(&sentinels, 2, 1).0, 2);
        // A third server is news.
        assert_eq!(settle(&sentinels, 2, 3).0, 3);
        assert!(second.is_over());
    }

    #[test]
    fn an_answer_is_used_for_a_moment() {
        let sentinels = sentinels();
        assert_eq!(known(&sentinels), None);
        let (_, election) = settle(&sentinels, 0, 1);
        assert_eq!(known(&sentinels), Some(1));
        sentinels.doubt(&election);
        assert_eq!(known(&sentinels), None);
    }
}
