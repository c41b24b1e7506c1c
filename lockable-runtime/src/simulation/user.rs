use std::sync::Arc;

use super::keys::known;
use super::process::Process;
use super::rules::Hold;
use super::world::World;
use crate::core::lease::Lease;
use crate::core::types::options::OnLost;

/// A call that uses its lock, until this is dropped.
pub(super) struct User {
    world: Arc<World>,
    pub(super) hold: Hold,
    lease: Lease,
}

impl User {
    pub(super) fn new(process: &Process, worker: usize, number: u64, lease: Lease) -> Self {
        let world = Arc::clone(&process.world);
        let hold = Hold {
            number,
            key: known(lease.key()),
            fence: world.fence(lease.fencing_token().into()),
            owner: lease.attempt().owner.as_ref().to_owned(),
        };
        world.rules().uses(&hold, &lease);
        world.note(|names| {
            let (process, owner) = (process.number, names.of(&hold.owner));
            let Hold { number: hold, key, fence, .. } = hold;
            format!("p{process} w{worker} has {key} as {owner}: hold {hold}, token {fence}")
        });
        Self { world, hold, lease }
    }

    /// A body that may finish without its lock believes in it only while its lease is held.
    pub(super) fn polled(&self) {
        if self.lease.on_lost() == OnLost::Cancel || self.lease.is_held() {
            self.world.polled(&self.hold);
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.world.rules().done(&self.hold);
    }
}
