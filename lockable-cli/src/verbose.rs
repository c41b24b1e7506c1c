//! The events of the library as notes: with `--verbose` each, of what is sent to which server too; otherwise those that
//! say what a call waits for, and that a certificate ends soon.

use std::error::Error;
use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::output::note;
use crate::words;

/// Notes events from here on.
pub(crate) fn begin(json: bool, is_verbose: bool) {
    // Only the first subscriber of a process is one, and this is it.
    tracing::subscriber::set_global_default(Notes { json, is_verbose }).ok();
}

struct Notes {
    json: bool,
    is_verbose: bool,
}

impl Subscriber for Notes {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        let is_noted =
            self.is_verbose || matches!(of.name(), "wait" | "found_done" | "certificate");
        of.is_event() && of.target() == "lockable" && is_noted
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        note(self.json, &format!("{}{}", text.message, text.fields));
    }

    // Spans are not enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let error = value.downcast_ref();
        self.add(field, &error.map_or_else(|| value.to_string(), words::of_error));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

impl Text {
    fn add(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            // Writing to a text never fails.
            name => write!(self.fields, "; {name}: {value}").unwrap_or_default(),
        }
    }
}
