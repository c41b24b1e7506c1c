//! The events that this process logged about a lock, on any thread.

use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static LOGGED: Mutex<Vec<Logged>> = Mutex::new(Vec::new());

/// What no event and no span may contain, and those that did.
static SECRETS: Mutex<(Vec<String>, Vec<String>)> = Mutex::new((Vec::new(), Vec::new()));

/// One event: its level, and its fields as `name=value`.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) level: Level,
    pub(crate) fields: String,
}

/// Starts to listen, for the whole process: a loss is logged by the task that finds it.
pub(crate) fn listen() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
}

/// The words of the events at which the listener panics.
static MINES: Mutex<Vec<[&str; 2]>> = Mutex::new(Vec::new());

/// Panics at every event with both of these words from now on, as a user's subscriber may.
pub(crate) fn panic_at(words: [&'static str; 2]) {
    listen();
    mines().push(words);
}

fn mines() -> MutexGuard<'static, Vec<[&'static str; 2]>> {
    MINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks for this text in every event and span from now on.
pub(crate) fn keep_secret(text: &str) {
    listen();
    secrets().0.push(text.to_owned());
}

/// The events and spans that had one of the secrets.
pub(crate) fn leaks() -> Vec<String> {
    secrets().1.clone()
}

/// How often an event with this level, and these words, was logged about any lock.
pub(crate) fn logged_with(level: Level, words: &[&str]) -> usize {
    let is_it = |logged: &&Logged| {
        logged.level == level && words.iter().all(|words| logged.fields.contains(words))
    };
    logged().iter().filter(is_it).count()
}

/// What was logged about the lock of this whole name, which no other test uses.
pub(crate) fn about(key: &str) -> Vec<Logged> {
    let field = format!("key={key:?} ");
    logged().iter().filter(|logged| logged.fields.contains(&field)).cloned().collect()
}

/// How often an event of this level with this message was logged about a lock.
pub(crate) fn count(key: &str, level: Level, message: &str) -> usize {
    let is_it = |logged: &Logged| logged.level == level && logged.fields.contains(message);
    about(key).iter().filter(|logged| is_it(logged)).count()
}

/// Notes fields that have a secret.
fn look_at(fields: &str) {
    let mut secrets = secrets();
    if secrets.0.iter().any(|secret| fields.contains(secret.as_str())) {
        secrets.1.push(fields.to_owned());
    }
}

fn secrets() -> MutexGuard<'static, (Vec<String>, Vec<String>)> {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn logged() -> MutexGuard<'static, Vec<Logged>> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "lockable"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        look_at(&fields.0);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        look_at(&fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        look_at(&fields.0);
        let is_mine = mines().iter().any(|words| words.iter().all(|it| fields.0.contains(it)));
        logged().push(Logged { level: *event.metadata().level(), fields: fields.0 });
        assert!(!is_mine, "a subscriber panics");
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
