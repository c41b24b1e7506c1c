//! Client tracking: the server reports changes by others to renewed locks.
//!
//! See "How does client tracking detect a deleted lock?" in DESIGN.md.

use std::collections::BTreeMap;

use ::redis::{Cmd, PushInfo, PushKind, Value};

use crate::core::backend::Renewal;
use crate::redis::connect::reports::Reports;
use crate::redis::fault;

/// Turns it on, for keys whose read follows [`caching`], and not for writes of the same connection.
pub(crate) fn turn_on() -> Cmd {
    command(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"])
}

pub(crate) fn caching() -> Cmd {
    command(&["CLIENT", "CACHING", "YES"])
}

fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::with_capacity(words.len(), 64);
    command.arg(words);
    command
}

/// Reports keys that others have changed, a flush of the server, and the end of tracking.
pub(crate) fn pass_on(push: &PushInfo, reports: &Reports) {
    let Some(events) = reports.events() else { return };
    match (&push.kind, push.data.first()) {
        (PushKind::Invalidate, Some(Value::Array(keys))) => {
            // What is no text is no lock of ours.
            keys.iter().filter_map(text).for_each(|key| events.on_changed(key));
        }
        (PushKind::Invalidate, Some(Value::Nil)) => {
            events.on_flushed(&|slot| reports.concern(slot));
        }
        (PushKind::Disconnection, _) => events.on_untracked(&|slot| reports.concern(slot)),
        _ => {}
    }
}

fn text(key: &Value) -> Option<&str> {
    match key {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The commands after a renewal that track its locks: a plain read, because one in a script tracks nothing, or too
/// much.
pub(crate) struct Reads {
    commands: Vec<Cmd>,
    watched: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Every change of these locks from now on is reported.
    Tracked,
    /// At least one of the locks is gone, which will not be reported.
    Gone,
    Refused,
}

impl Reads {
    /// The reads for these renewals: one for all, or one for each slot.
    pub(crate) fn of(renewals: &[Renewal], are_together: bool) -> Self {
        let watched: Vec<_> = renewals.iter().map(|one| one.attempt.is_watched()).collect();
        let mut groups = BTreeMap::<Option<u16>, Cmd>::new();
        for (renewal, _) in renewals.iter().zip(&watched).filter(|(_, is_watched)| **is_watched) {
            let group = (!are_together).then_some(renewal.attempt.slot.number());
            let read = groups.entry(group).or_insert_with(|| command(&["EXISTS"]));
            read.arg(renewal.attempt.key.as_str());
        }
        let commands = groups.into_values().flat_map(|read| [caching(), read]).collect();
        Self { commands, watched }
    }

    pub(crate) fn none() -> Self {
        Self { commands: Vec::new(), watched: Vec::new() }
    }

    pub(crate) fn commands(&self) -> &[Cmd] {
        &self.commands
    }

    /// What the replies say, given which locks the renewals found. A single read may be refused, for its key or its
    /// slot, or a server be busy: then its locks are not tracked this time.
    pub(crate) fn shown(&self, replies: Vec<Value>, found: impl Iterator<Item = bool>) -> Shown {
        let mut there = 0_i64;
        let mut is_counted = true;
        for (number, reply) in replies.into_iter().enumerate() {
            let is_read = number % 2 == 1;
            match reply.extract_error() {
                Ok(Value::Int(count)) if is_read => there = there.saturating_add(count),
                Ok(_) => is_counted &= !is_read,
                Err(error) if is_read && fault::forbids_command(&error) => return Shown::Refused,
                Err(error) if !is_read && !fault::passes(&error) => return Shown::Refused,
                Err(_) => is_counted = false,
            }
        }
        let found = self.watched.iter().zip(found);
        let expected = found.filter(|(watched, is_there)| **watched && *is_there).count();
        let expected = i64::try_from(expected).unwrap_or(i64::MAX);
        if is_counted && there < expected { Shown::Gone } else { Shown::Tracked }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, Weak};

    use super::*;
    use crate::core::backend::{Attempt, Events, WakeUp};
    use crate::core::process::clock::boot_time;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Ttl;
    use crate::core::types::slot::Slot;

    fn reply(text: &str) -> Value {
        ::redis::parse_redis_value(format!("{text}\r\n").as_bytes()).unwrap()
    }

    #[derive(Default)]
    struct Noted(Mutex<Vec<String>>);

    impl Events for Noted {
        fn on_wake_up(&self, _: WakeUp) {}

        fn on_changed(&self, key: &str) {
            self.0.lock().unwrap().push(key.to_owned());
        }

        fn on_flushed(&self, concerns: &dyn Fn(Slot) -> bool) {
            self.0.lock().unwrap().push(format!("all: {}", concerns(Slot::default())));
        }
    }

    /// What a push with these bytes reports.
    fn invalidated(bytes: &[u8]) -> Vec<String> {
        let Ok(Value::Push { kind, data }) = ::redis::parse_redis_value(bytes) else { panic!() };
        let (noted, reports) = (Arc::<Noted>::default(), Reports::default());
        let events: Weak<Noted> = Arc::downgrade(&noted);
        reports.go_to(events);
        pass_on(&PushInfo { kind, data }, &reports);
        noted.0.lock().unwrap().clone()
    }

    #[test]
    fn a_push_names_keys_or_all_of_them() {
        let invalidate =
            |keys: &str| invalidated(format!(">2\r\n$10\r\ninvalidate\r\n{keys}\r\n").as_bytes());
        assert_eq!(invalidate("*2\r\n$1\r\na\r\n$1\r\nb"), ["a", "b"]);
        assert_eq!(invalidate("_"), ["all: true"]);
        assert_eq!(invalidate("*0"), [""; 0]);
        assert_eq!(invalidated(b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"), [""; 0]);
    }

    #[test]
    fn a_key_that_is_no_text_is_passed_over() {
        let push = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\n\xff\r\n$1\r\nb\r\n";
        assert_eq!(invalidated(push), ["b"]);
    }

    fn renewals(keys: &[&'static str], are_watched: bool) -> Vec<Renewal> {
        let renewal = |key: &&'static str| {
            let attempt = Arc::new(Attempt::drawn(LockKey::from_static(key), Ttl::DEFAULT));
            if are_watched {
                attempt.mark_watched();
            }
            Renewal::new(&attempt, None, boot_time())
        };
        keys.iter().map(renewal).collect()
    }

    fn words(reads: &Reads) -> Vec<String> {
        let packed = |command: &Cmd| String::from_utf8(command.get_packed_command()).unwrap();
        let words = |text: String| text.lines().skip(2).step_by(2).collect::<Vec<_>>().join(" ");
        reads.commands().iter().map(packed).map(words).collect()
    }

    #[test]
    fn keys_of_one_slot_are_read_together() {
        let renewals = renewals(&["{a}1", "{b}1", "{a}2"], true);
        let together = Reads::of(&renewals, true);
        assert_eq!(words(&together), ["CLIENT CACHING YES", "EXISTS {a}1 {b}1 {a}2"]);
        let apart = words(&Reads::of(&renewals, false));
        assert_eq!(apart.len(), 4);
        assert!(apart.contains(&"EXISTS {a}1 {a}2".to_owned()), "{apart:?}");
        assert!(apart.iter().step_by(2).all(|word| word == "CLIENT CACHING YES"));
    }

    #[test]
    fn what_is_not_watched_is_not_read() {
        assert_eq!(words(&Reads::of(&renewals(&["a", "b"], false), true)), [""; 0]);
    }

    #[test]
    fn a_count_that_is_too_low_shows_a_deletion() {
        let reads = Reads::of(&renewals(&["a", "b"], true), true);
        let shown = |replies: [&str; 2], found: [bool; 2]| {
            reads.shown(replies.map(reply).to_vec(), found.into_iter())
        };
        let held = [true; 2];
        assert_eq!(shown(["+OK", ":2"], held), Shown::Tracked);
        assert_eq!(shown(["+OK", ":1"], held), Shown::Gone);
        assert_eq!(shown(["+OK", ":1"], [false, true]), Shown::Tracked);
        let moved = "-MOVED 7 127.0.0.1:7000";
        assert_eq!(shown(["+OK", moved], held), Shown::Tracked);
        let key = "-NOPERM No permissions to access a key";
        assert_eq!(shown(["+OK", key], held), Shown::Tracked);
        let command = "-NOPERM User app has no permissions to run the 'exists' command";
        assert_eq!(shown(["+OK", command], held), Shown::Refused);
        assert_eq!(shown(["-ERR unknown subcommand", ":2"], held), Shown::Refused);
        let busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
        assert_eq!(shown([busy, busy], held), Shown::Tracked);
    }
}
