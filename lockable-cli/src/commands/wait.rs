//! `lockable wait`: returns when the present holder of a lock is done, and never waits in the lock's queue.
//!
//! See "Why does `lockable wait` never stand in the queue?" in DESIGN.md.

use std::time::Duration;

use lockable_runtime::admin::{Admin, HeldLock};
use lockable_runtime::{HolderKind, LockError};
use serde::Serialize;

use crate::arguments::{Await, Connection};
use crate::clock::{Moment, boot_time};
use crate::commands::changes::ChangeFeed;
use crate::commands::next::{Next, next};
use crate::commands::{advice, no_lock};
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::escape::printable;
use crate::output::lock::holder;
use crate::output::times::{milliseconds, short};
use crate::output::{json, note, write_line};
use crate::process_index::ProcessIndex;

pub(crate) async fn wait(
    connection: &Connection,
    arguments: Await,
    json: bool,
) -> Result<u8, Failure> {
    let (admin, begun) = (connect::locker(connection)?.admin(), boot_time());
    let first = Waited::at(&admin, &arguments).await?;
    if let (None, Some(advice)) = (&first.held, advice(&admin, connection, &arguments.key)) {
        note(json, &format!("`{}` is the name of one lock; {advice}", arguments.key));
    }
    let looks = Waiting { admin: &admin, arguments: &arguments, json, silent: None };
    let (now, end) = looks.until_end(&first, begun).await?;
    let waited = boot_time().since(begun);
    let held = first.held.as_ref().or(now.held.as_ref());
    let next = match (&first.held, end) {
        (Some(held), End::Ended) => next(&admin, held).await,
        _ => None,
    };
    let process_index = match &next {
        Some(_) => ProcessIndex::of(&admin).await,
        None => ProcessIndex::unknown(),
    };
    let key = format!("{}{}", admin.prefix(), arguments.key);
    let next = next.as_ref().map(|next| Next::of(next, &process_index));
    Report { key: &key, name: &arguments.key, held, end, waited, next }.print(json);
    Ok(0)
}

/// What is under the key, and who waits.
#[derive(Clone)]
struct Waited {
    held: Option<HeldLock>,
    /// How many processes wait, where that counts.
    waiting: usize,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum End {
    /// The hold that was there at first has ended.
    Ended,
    /// No one has the lock.
    Free,
    /// A run of `once` was done already.
    Done,
    /// The holder was done already, and `min_hold` keeps the lock.
    Kept,
}

impl Waited {
    async fn at(admin: &Admin, arguments: &Await) -> Result<Self, LockError> {
        let held = admin.holder(&arguments.key).await?;
        let waiting = match &held {
            Some(held) => held.queued(),
            None if arguments.free => {
                let queue = admin.queue(&arguments.key).await?;
                queue.iter().filter(|waiter| waiter.is_listening() != Some(false)).count()
            }
            None => 0,
        };
        Ok(Self { held, waiting })
    }

    /// When to look again without a report: the server may report later that a key has expired.
    fn may_end_within(&self) -> Duration {
        let left = self.held.as_ref().and_then(|held| held.holder().remaining());
        left.map_or(RECHECK, |left| left.saturating_add(EXPIRY).min(RECHECK))
    }

    /// # Errors
    /// For data that are no lock, which may stay for ever.
    fn end_of(&self, first: Option<&HeldLock>, free: bool) -> Result<Option<End>, Failure> {
        let Some(now) = &self.held else {
            return Ok((!free || self.waiting == 0).then_some(End::Free));
        };
        let is_first = first.is_some_and(|first| first.holder().id() == now.holder().id());
        Ok(match now.holder().kind() {
            HolderKind::NoLock => return Err(no_lock(now.name())),
            _ if free => None,
            _ if !is_first => Some(End::Ended),
            HolderKind::Done => Some(End::Done),
            HolderKind::KeptByMinHold => Some(End::Kept),
            _ => None,
        })
    }
}

/// The looks behind the first one.
struct Waiting<'a> {
    admin: &'a Admin,
    arguments: &'a Await,
    json: bool,
    /// Since when no server replies.
    silent: Option<Moment>,
}

impl Waiting<'_> {
    /// Waiting until the wait is over; returns what was there at last, and why it is over.
    async fn until_end(mut self, first: &Waited, begun: Moment) -> Result<(Waited, End), Failure> {
        let Self { admin, arguments, .. } = self;
        let (mut now, mut feed) = (first.clone(), None);
        loop {
            if let Some(end) = now.end_of(first.held.as_ref(), arguments.free)? {
                return Ok((now, end));
            }
            let waited = boot_time().since(begun);
            let left = arguments.limit.map(|limit| limit.0.saturating_sub(waited));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(still_held(arguments, &now, waited));
            }
            match &mut feed {
                // What has changed meanwhile is seen by a snapshot at once.
                None => feed = Some(ChangeFeed::of(admin, &arguments.key).await),
                Some(feed) => {
                    let most = if feed.are_heard() { now.may_end_within() } else { PAUSE };
                    feed.next(Duration::ZERO, most.min(left.unwrap_or(most))).await;
                }
            }
            now = self.again(now).await?;
        }
    }

    /// What is there now. While no server replies, as in a failover, it is what was there before.
    async fn again(&mut self, before: Waited) -> Result<Waited, Failure> {
        match Waited::at(self.admin, self.arguments).await {
            Ok(look) => {
                self.silent = None;
                Ok(look)
            }
            Err(error) if error.is_unavailable() && self.is_patient() => {
                if self.silent.is_none() {
                    note(self.json, &format!("{error}; the wait continues"));
                    self.silent = Some(boot_time());
                }
                Ok(before)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_patient(&self) -> bool {
        self.silent.is_none_or(|since| boot_time().since(since) < PATIENCE)
    }
}

fn still_held(arguments: &Await, now: &Waited, waited: Duration) -> Failure {
    let waited = short(waited);
    let Some(held) = &now.held else {
        let waiting = now.waiting;
        let message = format!("no one has the lock, and {waiting} still wait after {waited}");
        return Failure::new("busy", code::BUSY, message).of_lock(&arguments.key);
    };
    let (id, who) = (held.holder().id(), holder(held.holder()));
    let message = format!("the lock is still held after {waited}, with the id {id} ({who})");
    Failure::new("busy", code::BUSY, message).of_lock(held.name()).about(held)
}

/// What a wait has come to.
struct Report<'a> {
    key: &'a str,
    name: &'a str,
    /// The hold that was there at first.
    held: Option<&'a HeldLock>,
    end: End,
    waited: Duration,
    next: Option<Next<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    name: &'a str,
    id: Option<String>,
    outcome: End,
    after_ms: u64,
    /// For how long a lock that no one holds stays taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_ms: Option<u64>,
    next: Option<Next<'a>>,
}

impl Report<'_> {
    fn print(self, json: bool) {
        let Self { key, name, held, end, waited, next } = self;
        let id = held.map(|held| held.holder().id().to_string());
        let is_kept = matches!(end, End::Done | End::Kept);
        let kept = held.filter(|_| is_kept).and_then(|held| held.holder().remaining());
        if json {
            let (after_ms, kept_ms) = (milliseconds(waited), kept.map(milliseconds));
            json::print(&Line { key, name, id, outcome: end, after_ms, kept_ms, next });
            return;
        }
        let (name, after, rest) = (printable(name), short(waited), kept.map(short));
        let rest = rest.map_or_else(|| "without an end".to_owned(), |rest| format!("for {rest}"));
        let next = next.map(|next| printable(&next.words)).unwrap_or_default();
        write_line(&match (end, id) {
            (End::Ended, Some(id)) => format!("{name}: {id} no longer has it after {after}{next}"),
            (End::Ended | End::Free, None) => format!("{name}: free"),
            (End::Free, Some(_)) => format!("{name}: free after {after}"),
            (End::Done, _) => {
                format!("{name}: its run is done; `once` keeps it {rest}, which --free waits for")
            }
            (End::Kept, _) => {
                format!(
                    "{name}: its holder is done; `min_hold` keeps it {rest}, which --free waits for"
                )
            }
        });
    }
}

/// Sets the pause between two looks where changes are not reported.
const PAUSE: Duration = Duration::from_millis(800);

/// Limits the pause between two looks where changes are reported: a report may be lost with its connection.
const RECHECK: Duration = Duration::from_secs(5);

/// A key is gone at the latest this long after the end of its time.
const EXPIRY: Duration = Duration::from_millis(20);

/// For so long no server has to reply: a failover takes less.
const PATIENCE: Duration = Duration::from_secs(60);
