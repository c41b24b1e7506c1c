//! The label of a lock in logs and metrics, and what is stored of each label.

pub(crate) mod grow_only;
pub(crate) mod label;
#[cfg(feature = "metrics")]
pub(crate) mod metric_keys;
#[cfg(not(feature = "metrics"))]
#[path = "no_metric_keys.rs"]
pub(crate) mod metric_keys;
