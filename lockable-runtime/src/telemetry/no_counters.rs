//! Without the feature `metrics` nothing is counted.

use std::time::Duration;

pub(crate) fn describe() {}

pub(super) fn acquired(_: &'static str) {}

pub(super) fn count(_: &'static str) {}

pub(super) fn record(_: &'static str, _: Duration) {}

pub(crate) fn change(_: &'static str, _: f64) {}

pub(crate) fn handed_off(_: bool) {}

pub(super) fn lost(_: &'static str) {}

pub(super) fn renewed(_: &'static str, _: u64) {}

pub(super) fn released(_: &'static str) {}
