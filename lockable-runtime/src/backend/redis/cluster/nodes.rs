//! The nodes of a cluster, and what this process does when one of them changes.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use tokio::runtime::Handle;

use super::pace::Pace;
use super::table::{Changes, Events, Member, Table};
use crate::backend::redis::reach::opener::Opener;
use crate::backend::redis::reach::place::Place;
use crate::backend::redis::wait::revocations::Revocations;
use crate::backend::{ChangeHook, Changed, Fault, Hook, Listener};
use crate::types::clock::{Moment, boot_time};
use crate::types::slot::{SLOTS, Slot};

/// The nodes of a cluster, each with its slots and its connections.
pub(crate) struct Cluster {
    pub(crate) opener: Opener,
    table: RwLock<Table>,
    /// Of the questions which node has which slots.
    pub(super) pace: Pace,
    hook: OnceLock<Hook>,
    when_changed: OnceLock<ChangeHook>,
    /// Who hears of grants.
    pub(super) listener: OnceLock<Weak<dyn Listener>>,
    pub(crate) revocations: Revocations,
    pub(super) this: Weak<Self>,
}

impl Cluster {
    pub(crate) fn new(opener: Opener, background: Handle) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let events = Arc::new(Weak::clone(this));
            let table = RwLock::new(Table::new(opener.clone(), background, events));
            let (hook, when_changed, listener) = Default::default();
            let (pace, this) = (Pace::default(), Weak::clone(this));
            let cluster = Weak::clone(&this);
            let opener_at = move |attempt| cluster.upgrade()?.any_opener(attempt);
            let revocations = Revocations::new(Arc::new(opener_at));
            Self { opener, table, pace, hook, when_changed, listener, revocations, this }
        })
    }

    /// The node that is known to have the slot.
    pub(crate) fn member(&self, slot: Slot) -> Option<Arc<Member>> {
        self.table().owner(slot).cloned()
    }

    /// All nodes that have slots, as far as is known.
    pub(crate) async fn masters(&self) -> Result<Vec<Arc<Member>>, Fault> {
        if self.table().is_empty() {
            self.refreshed().await?;
        }
        Ok(self.table().masters())
    }

    /// The nodes of the slots that have changed hands since then, or whose change was not known, as they say now.
    pub(crate) async fn moved_since(&self, moment: Moment) -> Result<Vec<Arc<Member>>, Fault> {
        self.refreshed().await?;
        let masters = self.table().masters();
        let table = self.table();
        let has_moved = |slot: &Slot| table.moved_at(*slot) > moment;
        let slots = (0..SLOTS).filter_map(|index| u16::try_from(index).ok()).map(Slot::new);
        let owners = slots.filter(has_moved).filter_map(|slot| Some(table.owner(slot)?.number));
        let owners: HashSet<_> = owners.collect();
        Ok(masters.into_iter().filter(|master| owners.contains(&master.number)).collect())
    }

    /// How a node is reached, another one at each try: what is published at one arrives at all.
    fn any_opener(&self, attempt: usize) -> Option<Opener> {
        let masters = self.table().masters();
        let at = attempt.checked_rem(masters.len())?;
        masters.get(at).map(|member| member.connections.opener.clone())
    }

    /// The node at this place, which may have no slot yet.
    pub(super) fn member_at(&self, place: &Place, slot: Slot) -> Arc<Member> {
        self.table_mut().member(place, slot)
    }

    /// The number of the slot's node.
    pub(crate) fn place(&self, slot: Slot) -> usize {
        self.table().owner(slot).map_or(0, |member| member.number)
    }

    /// When it was known last that the slot has changed hands; zero if never.
    pub(crate) fn moved_at(&self, slot: Slot) -> Moment {
        self.table().moved_at(slot)
    }

    pub(crate) fn when_connected(&self, hook: Hook) {
        drop(self.hook.set(hook));
    }

    pub(crate) fn when_changed(&self, hook: ChangeHook) {
        drop(self.when_changed.set(hook));
    }

    /// Others have changed locks of this node.
    fn pass_on(&self, number: usize, changed: Changed<'_>) {
        let Some(hook) = self.when_changed.get() else { return };
        let of_node = |slot| self.place(slot) == number;
        hook(match changed {
            Changed::Key(_) => changed,
            Changed::All(_) => Changed::All(&of_node),
            Changed::Broken(fault, _) => Changed::Broken(fault, &of_node),
            Changed::Unheard(_) => Changed::Unheard(&of_node),
        });
    }

    /// A connection to this node was opened: it may have restarted, and lost its data.
    fn check_leases_of(&self, number: usize) {
        let of_node = |slot| self.place(slot) == number;
        if let Some(hook) = self.hook.get() {
            hook(&of_node);
        }
    }

    /// Makes a change that nodes have reported. What was known of the slots that changed hands counts no more: their
    /// fence counters are seeded again, and their leases checked.
    pub(super) fn change(&self, change: impl FnOnce(&mut Table, Moment) -> Changes) {
        let changes = change(&mut self.table_mut(), boot_time());
        for member in &changes.left {
            member.leave();
        }
        if changes.moves.is_empty() {
            return;
        }
        let mut moved = vec![false; SLOTS];
        for (slot, members) in &changes.moves {
            for member in members {
                member.forget_fence(*slot);
            }
            if let Some(moved) = moved.get_mut(slot.index()) {
                *moved = true;
            }
        }
        if let Some(hook) = self.hook.get() {
            hook(&|slot| moved.get(slot.index()).is_some_and(|moved| *moved));
        }
    }

    pub(super) fn table(&self) -> RwLockReadGuard<'_, Table> {
        // Every change leaves a sound table at each of its steps, so a panic elsewhere does no harm.
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events for Weak<Cluster> {
    fn on_opened(&self, number: usize) {
        if let Some(cluster) = self.upgrade() {
            cluster.check_leases_of(number);
        }
    }

    fn on_changed(&self, number: usize, changed: Changed<'_>) {
        if let Some(cluster) = self.upgrade() {
            cluster.pass_on(number, changed);
        }
    }

    fn on_unsubscribed(&self) {
        if let Some(cluster) = self.upgrade() {
            cluster.refresh_soon();
        }
    }
}
