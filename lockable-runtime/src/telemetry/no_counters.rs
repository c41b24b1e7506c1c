//! Without the feature `metrics` nothing is counted.

use std::time::Duration;

pub(crate) fn describe() {}

pub(super) fn acquired(_: &'static str) {}

pub(super) fn waited(_: Duration) {}

pub(super) fn waiters(_: f64) {}

pub(crate) fn handed_off(_: bool) {}

pub(super) fn held(_: Duration) {}

pub(super) fn lost(_: &'static str) {}

pub(super) fn completed_after_loss() {}

pub(super) fn renewed(_: &'static str, _: u64) {}

pub(super) fn released(_: &'static str) {}

pub(super) fn release_abandoned() {}

pub(crate) fn backlog_grows() {}

pub(crate) fn backlog_shrinks() {}
