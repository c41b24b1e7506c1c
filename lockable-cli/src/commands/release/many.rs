//! Many locks at once: nothing is sent before it was shown what would be.
//!
//! See "What overlaps after `force_release`?" in DESIGN.md.

use std::collections::BTreeMap;
use std::time::Duration;

use lockable_runtime::LockError;
use lockable_runtime::admin::{Admin, Forced, HeldLock, Revoked};
use tokio::task::JoinSet;

use super::asking::{answer, forced, taken};
use super::chosen::{Chosen, Listed, Means};
use super::outcome::{ENDED, Outcome};
use super::typed;
use crate::arguments::{Connection, Release, Span};
use crate::commands::liveness::LivenessCheck;
use crate::commands::next::{Next, next};
use crate::commands::{HEADINGS, none};
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::lock::{LockLine, row};
use crate::output::table::Table;
use crate::output::{json, note, write_error, write_line};
use crate::process_index::ProcessIndex;

/// All locks that match are to be released.
pub(super) async fn of_pattern(
    connection: &Connection,
    admin: &Admin,
    arguments: &Release,
    reason: &str,
    json: bool,
) -> Result<u8, Failure> {
    let pattern = arguments.key.as_deref().unwrap_or_default();
    if arguments.force || arguments.id.is_some() {
        return Err(Failure::usage(by_ids(connection, pattern)));
    }
    let chosen = Chosen::by_pattern(admin, pattern).await;
    if chosen.locks.is_empty() && chosen.failed.is_none() {
        let others = chosen.others().map(|others| format!("; {others}")).unwrap_or_default();
        let message = none(admin, connection, Some(pattern), &[]) + &others;
        return Err(Failure::new("free", code::FREE, message));
    }
    let many = Many { connection, admin, arguments, reason, json };
    many.release(chosen, Means::Request).await
}

/// All holds that a file names are to be released.
pub(super) async fn of_file(
    connection: &Connection,
    admin: &Admin,
    arguments: &Release,
    reason: &str,
    json: bool,
) -> Result<u8, Failure> {
    let means = if arguments.force { Means::Force } else { Means::Request };
    let file = arguments.ids.as_deref().unwrap_or("-".as_ref());
    let chosen = Chosen::by_file(admin, file, means).await?;
    Many { connection, admin, arguments, reason, json }.release(chosen, means).await
}

/// How the locks of a pattern are taken away.
fn by_ids(connection: &Connection, pattern: &str) -> String {
    let list = connect::command(connection, "ls --json", &[pattern]);
    let release = connect::command(connection, "release --ids held.json --force", &[]);
    format!(
        "a pattern names no hold, so that --force and --id could end a later one; list the holds, and keep the lines \
         that you mean: {list} > held.json; then: {release}"
    )
}

/// A command about many locks.
struct Many<'a> {
    connection: &'a Connection,
    admin: &'a Admin,
    arguments: &'a Release,
    reason: &'a str,
    json: bool,
}

/// What a lock's server and its holder have answered.
enum Answered {
    Asked(LivenessCheck, Result<Revoked, LockError>),
    Forced(HeldLock, Result<Forced, LockError>),
}

impl Many<'_> {
    async fn release(&self, chosen: Chosen, means: Means) -> Result<u8, Failure> {
        if let Some(others) = chosen.others() {
            note(self.json, &others);
        }
        let process_index = ProcessIndex::of(self.admin).await;
        if !self.arguments.yes && chosen.locks.is_empty() && chosen.failed.is_none() {
            return Err(Failure::new("free", code::FREE, "no hold in --ids has its lock still"));
        }
        if !self.arguments.yes {
            return Err(self.shown(&chosen, means, &process_index));
        }
        let mut tally = Tally::default();
        for Listed { key, name, id } in &chosen.ended {
            Outcome::print_ended(key, name, id, self.json);
            tally.count(ENDED);
        }
        let mut locks = chosen.locks.into_iter();
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(lock) = locks.next()
            {
                asked.spawn(ended(
                    self.admin.clone(),
                    lock,
                    self.reason.to_owned(),
                    self.grace(means),
                    self.arguments.delay,
                ));
            }
            match asked.join_next().await {
                None => break,
                Some(Ok(answered)) => self.report(answered, &process_index, &mut tally).await,
                Some(Err(error)) => return Err(Failure::internal(error.to_string())),
            }
        }
        if let Some(error) = chosen.failed {
            tally.fails(&error.into(), self.json);
        }
        Ok(tally.end(self.json))
    }

    /// For how long a holder is waited for; `None` where it is not asked.
    fn grace(&self, means: Means) -> Option<Duration> {
        (means == Means::Request).then_some(self.arguments.grace.0)
    }

    /// Lists what would be released; the failure says how to release it.
    fn shown(&self, chosen: &Chosen, means: Means, process_index: &ProcessIndex) -> Failure {
        let mut table = Table::new(HEADINGS);
        for lock in &chosen.locks {
            if self.json {
                json::print(&LockLine::new(lock, process_index));
            } else {
                table.add(row(lock, process_index));
            }
        }
        table.flush();
        let count = chosen.locks.len();
        let what = match (means, count) {
            (Means::Request, 1) => "to ask the holder of this lock to stop".to_owned(),
            (Means::Request, _) => format!("to ask the holders of these {count} locks to stop"),
            (Means::Force, 1) => "to take this lock away".to_owned(),
            (Means::Force, _) => format!("to take these {count} locks away"),
        };
        let failed = chosen.failed.as_ref().map(|error| format!("{error}; ")).unwrap_or_default();
        let ended = match chosen.ended.len() {
            0 => String::new(),
            ended => format!("holds of the file that have ended: {ended}; "),
        };
        let message = format!("{failed}{ended}nothing was sent; {what}: {}", typed::confirmed());
        Failure::new("unconfirmed", code::USAGE, message)
    }

    /// Says what became of a lock.
    async fn report(&self, answered: Answered, process_index: &ProcessIndex, tally: &mut Tally) {
        let (held, outcome) = match answered {
            Answered::Asked(first, Ok(asked)) => {
                let forced = |held: &HeldLock| self.forced(held);
                let answer = answer(self.admin, &first, self.connection, asked, forced).await;
                (first.held, answer)
            }
            Answered::Asked(first, Err(error)) => (first.held, Err(error.into())),
            Answered::Forced(held, Ok(forced)) => {
                let delay = self.arguments.delay.map(|delay| delay.0);
                let outcome = taken(&held, forced).map(|outcome| outcome.paused(delay));
                (held, outcome)
            }
            Answered::Forced(held, Err(error)) => (held, Err(error.into())),
        };
        match outcome {
            Ok(outcome) => {
                let next = next(self.admin, &held).await;
                let next = next.as_ref().map(|next| Next::of(next, process_index));
                outcome.print(&held, next, self.json);
                tally.count(outcome.in_summary());
            }
            Err(failure) => tally.fails(&failure.of_lock(held.name()), self.json),
        }
    }

    /// What takes one of them away.
    fn forced(&self, held: &HeldLock) -> String {
        let verb = format!("release --id {} --force", held.holder().id());
        connect::command(self.connection, &verb, &[held.name()])
    }
}

/// Ends one hold.
async fn ended(
    admin: Admin,
    lock: HeldLock,
    reason: String,
    grace: Option<Duration>,
    delay: Option<Span>,
) -> Answered {
    let Some(grace) = grace else {
        let forced = forced(&admin, &lock, &reason, delay).await;
        return Answered::Forced(lock, forced);
    };
    let first = LivenessCheck::at(lock.clone());
    let asked = admin.revoke(&lock, &reason, grace).await;
    Answered::Asked(first, asked)
}

/// How many locks came to what end, and the exit code.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, usize>,
    code: u8,
}

impl Tally {
    fn count(&mut self, end: &'static str) {
        *self.counts.entry(end).or_default() += 1;
    }

    /// The worst failure decides the exit code.
    fn fails(&mut self, failure: &Failure, json: bool) {
        write_error(&failure.line(json));
        self.code = self.code.max(failure.code());
        self.count("not released");
    }

    fn end(self, json: bool) -> u8 {
        if !json && self.counts.values().sum::<usize>() > 1 {
            let counts = self.counts.iter().map(|(end, count)| format!("{count} {end}"));
            write_line(&counts.collect::<Vec<_>>().join(", "));
        }
        self.code
    }
}

/// This number of holders is waited for at a time.
const AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_failure_decides_about_the_exit_code() {
        let mut tally = Tally::default();
        for code in [code::UNANSWERED, code::UNAVAILABLE, code::UNANSWERED] {
            tally.fails(&Failure::new("failed", code, "a failure"), false);
        }
        assert_eq!(tally.end(true), code::UNAVAILABLE);
    }
}
