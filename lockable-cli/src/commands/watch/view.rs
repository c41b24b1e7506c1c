//! Where a watch shows what it sees: a terminal, a file of texts, or a program that reads JSON.

use std::time::{Duration, SystemTime};

use lockable_runtime::LockError;
use serde::Serialize;
use tokio::time::Instant;

use super::history::{Change, Entry};
use crate::clock::{Moment, boot_time};
use crate::failure::Failure;
use crate::output::escape::printable;
use crate::output::lock::LockLine;
use crate::output::screen::{Line, Screen, Tone};
use crate::output::times::{iso, short};
use crate::output::{json, note, write_line};

/// Where the output goes.
pub(super) enum View {
    /// One picture, which is drawn again.
    Terminal(Screen),
    /// One text after the other, each under its time.
    Text,
    /// A line for each change.
    Json,
}

impl View {
    pub(super) fn new(json: bool) -> Self {
        if json {
            return Self::Json;
        }
        Screen::of_terminal().map_or(Self::Text, Self::Terminal)
    }

    /// How long a change stays marked. A text shows it once, in the snapshot that has found it.
    pub(super) fn glance(&self) -> Duration {
        match self {
            Self::Terminal(_) => GLANCE,
            Self::Text | Self::Json => Duration::ZERO,
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Shows a whole picture; `false` where no one reads it any more.
    pub(super) fn show(&mut self, lines: Vec<Line>, foot: Vec<String>) -> bool {
        match self {
            Self::Terminal(screen) => {
                screen.draw(lines, foot.into_iter().map(Line::plain).collect())
            }
            Self::Text => {
                let texts = lines.into_iter().map(|line| line.text);
                let time = [iso(SystemTime::now())];
                time.into_iter().chain(texts).chain([String::new()]).all(|text| write_line(&text))
            }
            Self::Json => true,
        }
    }

    /// Shows a change to a program; `false` where no one reads it any more.
    pub(super) fn event(&self, change: Change, lock: LockLine<'_>) -> bool {
        match (self, name(change)) {
            (Self::Json, Some(change)) => {
                json::print(&Event { change, at: iso(SystemTime::now()), lock })
            }
            _ => true,
        }
    }
}

/// When to show how far a long snapshot is.
pub(super) async fn due(last: Instant) {
    tokio::time::sleep_until(last + FRAME).await;
}

#[derive(Serialize)]
struct Event<'a> {
    change: &'static str,
    at: String,
    #[serde(flatten)]
    lock: LockLine<'a>,
}

/// For programs. That a snapshot has failed is an error and no change.
fn name(change: Change) -> Option<&'static str> {
    match change {
        Change::Listed => Some("listed"),
        Change::New => Some("new"),
        Change::Changed => Some("changed"),
        Change::Renewed => Some("renewed"),
        Change::Waiting => Some("waiting"),
        Change::Gone => Some("gone"),
        Change::Unseen => None,
    }
}

/// For people.
pub(super) fn mark(change: Change) -> (&'static str, Tone) {
    match change {
        Change::Listed | Change::Waiting => ("", Tone::Plain),
        Change::New => ("+", Tone::Green),
        Change::Changed => ("~", Tone::Yellow),
        Change::Renewed => ("^", Tone::Plain),
        Change::Gone => ("-", Tone::Faint),
        Change::Unseen => ("?", Tone::Faint),
    }
}

/// What the marks mean.
pub(super) const MARKS: &str = "+ new, ~ another holder, ^ renewed, - gone";

/// `######....`: what is left of the longest rest.
pub(super) fn bar<T>(entry: &Entry<T>, now: Moment) -> String {
    let bar = |share| "#".repeat(share) + &".".repeat(STEPS.saturating_sub(share));
    entry.share(now, STEPS).map(bar).unwrap_or_default()
}

pub(super) fn left<T>(entry: &Entry<T>, now: Moment) -> String {
    entry.left(now).map_or_else(|| "no end".to_owned(), short)
}

/// `14:03:22Z`.
pub(super) fn time() -> String {
    let moment = iso(SystemTime::now());
    format!("{}Z", moment.get(11..19).unwrap_or_default())
}

/// Why the last snapshot has failed, if it has.
#[derive(Default)]
pub(super) struct Trouble(Option<(String, Moment)>);

impl Trouble {
    /// A server that does not reply may do so again, as after a failover, and the watch continues.
    ///
    /// # Errors
    /// Where it will not.
    pub(super) fn note(&mut self, error: LockError, view: &View) -> Result<(), Failure> {
        if !error.is_unavailable() {
            return Err(error.into());
        }
        let message = Failure::from(error).message().to_owned();
        if self.0.is_none() {
            view.note(&format!("{message}; the watch continues"));
        }
        let since = self.0.take().map_or_else(boot_time, |(_, since)| since);
        self.0 = Some((message, since));
        Ok(())
    }

    /// A snapshot has succeeded.
    pub(super) fn end(&mut self, view: &View) {
        if self.0.take().is_some() {
            view.note("all servers reply again");
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// A line of a picture.
    pub(super) fn line(&self) -> Option<String> {
        let (message, since) = self.0.as_ref()?;
        let age = short(boot_time().since(*since));
        Some(format!("? not seen for {age}: {}", printable(message)))
    }
}

impl View {
    /// On a terminal it is a line of the picture.
    pub(super) fn note(&self, text: &str) {
        match self {
            Self::Terminal(_) => {}
            Self::Text => note(false, text),
            Self::Json => note(true, text),
        }
    }
}

/// A change has to be seen by someone who looks at another line.
const GLANCE: Duration = Duration::from_secs(3);

/// How often a picture is drawn while a snapshot lasts.
const FRAME: Duration = Duration::from_secs(1);

const STEPS: usize = 10;
