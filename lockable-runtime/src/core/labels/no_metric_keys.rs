//! Without the feature `metrics` there are none.

pub(crate) struct MetricKeys;

impl MetricKeys {
    pub(crate) const fn new() -> Self {
        Self
    }
}
