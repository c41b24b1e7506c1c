use std::sync::atomic::{AtomicU32, Ordering};

use metrics::{Key, Label};

use crate::core::labels::grow_only::GrowOnly;

/// The keys of one lock's metrics. Each is made when it is first needed, and then found without an allocation,
/// whichever recorder it is sent to.
pub(crate) struct MetricKeys {
    known: GrowOnly<KnownKey>,
    /// The recorder's generation when the keys were last compared with it.
    since: AtomicU32,
}

struct KnownKey {
    name: &'static str,
    other: Option<(&'static str, &'static str)>,
    key: Key,
}

impl MetricKeys {
    pub(crate) const fn new() -> Self {
        Self { known: GrowOnly::new(), since: AtomicU32::new(0) }
    }

    /// Whether this is the first look since that event, which is a number from one on.
    pub(crate) fn is_first_since(&self, event: u32) -> bool {
        self.since.load(Ordering::Relaxed) != event
            && self.since.swap(event, Ordering::Relaxed) != event
    }

    pub(crate) fn get(
        &self,
        name: &'static str,
        lock: &'static str,
        other: Option<(&'static str, &'static str)>,
    ) -> &Key {
        let is_wanted = |known: &KnownKey| known.name == name && known.other == other;
        let make = || {
            let labels = [("lock", lock)].into_iter().chain(other);
            let labels: Vec<_> = labels.map(|(label, value)| Label::new(label, value)).collect();
            KnownKey { name, other, key: Key::from_parts(name, labels) }
        };
        &self.known.find_or_add(is_wanted, make).key
    }
}
