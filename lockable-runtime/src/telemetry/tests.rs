//! What events show, and how unit tests see that.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::callsite::rebuild_interest_cache;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

use super::release_abandoned;
use crate::types::redact::DisplayKey;

/// The fields of the events that this logs.
pub(crate) fn logged(log: impl Fn()) -> String {
    let listener = Listener::default();
    let seen = Arc::clone(&listener.0);
    subscriber::with_default(listener, || {
        // Another thread that logs the same event for the first time just now can hide it for a moment.
        for _ in 0..1_000 {
            rebuild_interest_cache();
            log();
            if !seen.lock().unwrap().is_empty() {
                break;
            }
        }
    });
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

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
        release_abandoned(DisplayKey::new("mail:ada", true), "the queue of mail:ada hangs");
    });
    assert!(text.contains("could not be released") && !text.contains("ada"), "{text}");
    assert_eq!(text.matches("redacted:").count(), 2, "{text}");
}
