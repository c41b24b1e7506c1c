//! The events that this process told about a lock, on whatever thread.

use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());

/// One event: its level, and its fields as `name=value`.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) level: Level,
    pub(crate) fields: String,
}

/// Starts to listen, for the whole process: a loss is told by whoever finds it.
pub(crate) fn listen() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
}

/// What was told about the lock of this whole name, which no other test uses.
pub(crate) fn about(key: &str) -> Vec<Told> {
    let field = format!("key={key:?} ");
    told().iter().filter(|told| told.fields.contains(&field)).cloned().collect()
}

/// How often an event of this level with this message was told about a lock.
pub(crate) fn count(key: &str, level: Level, message: &str) -> usize {
    let is_it = |told: &Told| told.level == level && told.fields.contains(message);
    about(key).iter().filter(|told| is_it(told)).count()
}

fn told() -> MutexGuard<'static, Vec<Told>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "lockable"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        told().push(Told { level: *event.metadata().level(), fields: fields.0 });
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
