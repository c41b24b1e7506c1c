//! The events that a test's own thread told.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static TOLD: RefCell<Vec<Told>> = const { RefCell::new(Vec::new()) };
}

/// One event: its level, and its fields as `name=value`.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) level: Level,
    pub(crate) fields: String,
}

/// Starts to listen; forgets what this thread told before.
///
/// One subscriber for the whole process: a test has a thread of its own, and subscribers of single
/// threads race when an event is told for the first time.
pub(crate) fn listen() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
    take();
}

/// What this thread told since.
pub(crate) fn take() -> Vec<Told> {
    TOLD.with_borrow_mut(std::mem::take)
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
        let told = Told { level: *event.metadata().level(), fields: fields.0 };
        TOLD.with_borrow_mut(|all| all.push(told));
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
