//! The fields of events, for tests.

use std::fmt::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber, subscriber};

use super::release_abandoned;
use crate::core::backend::Fault;
use crate::core::types::redact::DisplayKey;

pub(crate) fn logged(log: impl FnOnce()) -> String {
    let listener = Listener::default();
    let seen = Arc::clone(&listener.0);
    LazyLock::force(&OTHERS);
    subscriber::with_default(listener, log);
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

/// Of a single subscriber, `tracing` asks the thread that logs first, and a thread without it disables the event for
/// all. Of several, one that wants the event is enough.
static OTHERS: LazyLock<[Dispatch; 2]> =
    LazyLock::new(|| [Dispatch::new(Listener::default()), Dispatch::new(Listener::default())]);

#[derive(Default)]
struct Listener(Arc<Mutex<String>>);

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

#[test]
fn an_abandoned_release_shows_no_redacted_key() {
    let text = logged(|| {
        let fault = Fault::unavailable("the queue of mail:ada hangs");
        release_abandoned(DisplayKey::new("mail:ada", true), fault);
    });
    assert!(text.contains("could not be released") && !text.contains("ada"), "{text}");
    assert_eq!(text.matches("redacted:").count(), 2, "{text}");
}
