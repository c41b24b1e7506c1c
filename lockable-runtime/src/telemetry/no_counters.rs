//! Without the feature `metrics` nothing is counted.

pub(super) fn lost(_: &'static str) {}

pub(super) fn completed_after_loss() {}

pub(super) fn renewal_unanswered(_: usize) {}

pub(super) fn release_abandoned() {}
