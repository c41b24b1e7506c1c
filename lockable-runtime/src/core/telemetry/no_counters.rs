//! Without the feature `metrics` nothing is counted.

use std::time::Duration;

use crate::core::labels::label::Label;

pub(crate) fn describe() {}

pub(super) fn acquired(_: &Label, _: &'static str) {}

pub(super) fn failed(_: &Label, _: &'static str) {}

pub(super) fn count(_: &Label, _: &'static str) {}

pub(super) fn record(_: &Label, _: &'static str, _: Duration) {}

pub(crate) fn change(_: &Label, _: &'static str, _: f64) {}

pub(crate) fn handed_off(_: &Label, _: bool) {}

pub(super) fn lost(_: &Label, _: &'static str) {}

pub(super) fn renewed(_: &Label, _: &'static str) {}

pub(super) fn released(_: &Label, _: &'static str) {}
