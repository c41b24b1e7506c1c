//! The events that a test's own thread logged, and the spans that it opened.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static LISTENS: Cell<bool> = const { Cell::new(false) };
    static LOGGED: RefCell<Vec<Logged>> = const { RefCell::new(Vec::new()) };
    static SPANS: RefCell<Vec<(Id, Span)>> = const { RefCell::new(Vec::new()) };
    /// The spans that the thread is in, the outermost first.
    static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) };
}

/// One event: its level, its name, and its fields as `name=value`.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) level: Level,
    pub(crate) name: &'static str,
    pub(crate) fields: String,
    /// The names of the spans that it was logged in, the outermost first.
    pub(crate) spans: Vec<&'static str>,
}

impl Logged {
    fn has(&self, wanted: &[&str]) -> bool {
        wanted.iter().all(|field| self.fields.contains(field))
    }
}

/// One span: its level, its name, all that was recorded, and the span that it was opened in.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) level: Level,
    pub(crate) name: &'static str,
    pub(crate) fields: String,
    pub(crate) parent: Option<&'static str>,
}

/// Starts to listen; forgets what this thread logged before.
///
/// One subscriber for the whole process: a test has a thread of its own, and subscribers of single
/// threads race when an event is logged for the first time.
pub(crate) fn listen() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
    LISTENS.set(true);
    take_all();
    spans();
}

/// What this thread logged since, at info level and above.
pub(crate) fn take() -> Vec<Logged> {
    take_all().into_iter().filter(|logged| logged.level <= Level::INFO).collect()
}

/// What this thread logged since, at every level.
pub(crate) fn take_all() -> Vec<Logged> {
    LOGGED.with_borrow_mut(std::mem::take)
}

/// How many events at error level were logged since; each has these in its fields.
#[track_caller]
pub(crate) fn count_errors(wanted: &[&str]) -> usize {
    let logged = take();
    let errors: Vec<_> = logged.iter().filter(|event| event.level == Level::ERROR).collect();
    assert!(errors.iter().all(|error| error.has(wanted)), "{wanted:?} in {logged:#?}");
    errors.len()
}

/// Asserts that nothing else was logged since, at info level and above, than one event at this level with these in its
/// fields.
#[track_caller]
pub(crate) fn assert_only(level: Level, wanted: &[&str]) {
    let logged = take();
    let is_it = |event: &Logged| event.level == level && event.has(wanted);
    assert!(matches!(&*logged, [event] if is_it(event)), "{level} {wanted:?} in {logged:#?}");
}

/// The spans that this thread opened since, in order.
pub(crate) fn spans() -> Vec<Span> {
    SPANS.with_borrow_mut(std::mem::take).into_iter().map(|(_, span)| span).collect()
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "lockable" && LISTENS.get()
    }

    /// Asked each time, because the answer is another one on each thread.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == "lockable" { Interest::sometimes() } else { Interest::never() }
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = Id::from_u64(NEXT.fetch_add(1, Ordering::Relaxed));
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        let metadata = attributes.metadata();
        let parent = entered().pop();
        let (level, name) = (*metadata.level(), metadata.name());
        let span = Span { level, name, fields: fields.0, parent };
        SPANS.with_borrow_mut(|spans| spans.push((id.clone(), span)));
        id
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        SPANS.with_borrow_mut(|spans| {
            if let Some((_, span)) = spans.iter_mut().find(|(other, _)| other == id) {
                span.fields.push_str(&fields.0);
            }
        });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let (level, name, spans) = (*metadata.level(), metadata.name(), entered());
        LOGGED.with_borrow_mut(|all| all.push(Logged { level, name, fields: fields.0, spans }));
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.clone()));
    }

    fn exit(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            let last = entered.iter().rposition(|other| other == id);
            last.map(|at| entered.remove(at))
        });
    }
}

fn entered() -> Vec<&'static str> {
    let name = |id: &Id| {
        let is_it = |(other, _): &&(Id, Span)| other == id;
        SPANS.with_borrow(|spans| spans.iter().find(is_it).map(|(_, span)| span.name))
    };
    ENTERED.with_borrow(|ids| ids.iter().filter_map(name).collect())
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
