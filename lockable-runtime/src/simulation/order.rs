//! The order in which the calls of a process join their line and are served.

use std::sync::Arc;

use super::life::polled_worker;
use super::process::Process;
use crate::core::backend::{Fault, Outcome, TestStage};
use crate::core::types::key::LockKey;

/// Notified of each call that first requests, joins the line because the lock is busy, or is granted its lock.
pub(super) struct Order(pub(super) Arc<Process>);

impl TestStage for Order {
    fn next_fault(&self, key: &LockKey) -> Option<Fault> {
        let Process { number: process, ref world, .. } = *self.0;
        if let Some(worker) = polled_worker() {
            world.rules().asks(process, worker, key.as_str());
        }
        None
    }

    fn count(&self, key: &LockKey, outcome: Outcome) {
        let Process { number: process, ref world, .. } = *self.0;
        let Some(worker) = polled_worker() else { return };
        match outcome {
            Outcome::Busy => world.rules().joins(process, worker, key.as_str()),
            Outcome::Granted => {
                let overtaken = world.rules().served(process, worker, key.as_str());
                if let Some(count) = overtaken {
                    world.violation(|_| {
                        format!("{key}: p{process} w{worker} overtook {count} calls of its line")
                    });
                }
            }
            Outcome::Failed => {}
        }
    }
}
