//! A table of all slots: the nodes of a cluster, and what this process does when one of them changes.

use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use tokio::runtime::Handle;

use super::pace::Pace;
use super::seats::Seats;
use super::server::Server;
use super::table::{Changes, Events, Table};
use crate::backend::redis::reach::opener::Opener;
use crate::backend::redis::reach::place::Place;
use crate::backend::{ChangeHook, Changed, Hook, Listener, Reply};
use crate::types::clock::{Moment, boot_time};
use crate::types::slot::{SLOTS, Slot};

/// The nodes of a cluster, each with its slots and its connections.
pub(super) struct Slots {
    pub(super) opener: Opener,
    table: RwLock<Table>,
    /// Of the requests which node has which slots.
    pub(super) pace: Pace,
    hook: OnceLock<Hook>,
    when_changed: OnceLock<ChangeHook>,
    /// Who receives grants.
    listener: OnceLock<Weak<dyn Listener>>,
    pub(super) this: Weak<Self>,
}

impl Slots {
    pub(super) fn new(opener: Opener, background: Handle) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let events = Arc::new(Weak::clone(this));
            Self {
                table: RwLock::new(Table::new(opener.clone(), background, events)),
                opener,
                pace: Pace::default(),
                hook: OnceLock::new(),
                when_changed: OnceLock::new(),
                listener: OnceLock::new(),
                this: Weak::clone(this),
            }
        })
    }

    /// Others have changed locks of this node.
    fn pass_on(&self, number: usize, changed: Changed<'_>) {
        let Some(hook) = self.when_changed.get() else { return };
        let of_node = |slot| self.number(slot) == Some(number);
        hook(match changed {
            Changed::Key(_) => changed,
            Changed::All(_) => Changed::All(&of_node),
            Changed::Broken(fault, _) => Changed::Broken(fault, &of_node),
            Changed::Unheard(_) => Changed::Unheard(&of_node),
        });
    }

    /// A connection to this node was opened: it may have restarted, and lost its data.
    fn check_leases_of(&self, number: usize) {
        let of_node = |slot| self.number(slot) == Some(number);
        if let Some(hook) = self.hook.get() {
            hook(&of_node);
        }
    }

    /// Makes a change that nodes have reported. What was known of the slots that changed hands counts no more: their
    /// fence counters are seeded again, and their leases checked.
    pub(super) fn change(&self, change: impl FnOnce(&mut Table, Moment) -> Changes) {
        let changes = change(&mut self.table_mut(), boot_time());
        for server in &changes.left {
            server.leave();
        }
        if changes.moves.is_empty() {
            return;
        }
        let mut moved = vec![false; SLOTS];
        for (slot, servers) in &changes.moves {
            for server in servers {
                server.forget_fence(*slot);
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

impl Seats for Slots {
    fn server(&self, slot: Slot) -> Option<Arc<Server>> {
        self.table().owner(slot).cloned()
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        self.table().masters()
    }

    fn number(&self, slot: Slot) -> Option<usize> {
        self.table().owner(slot).map(|server| server.number)
    }

    fn server_at(&self, place: &Place, slot: Slot) -> Option<Arc<Server>> {
        Some(self.table_mut().server_at(place, slot))
    }

    fn left_at(&self, slot: Slot) -> Moment {
        self.table().moved_at(slot)
    }

    fn move_slot(&self, slot: Slot, from: &Place, to: &Place) {
        self.change(|table, now| table.move_slot(slot, from, to, now));
        // It is rarely the only one.
        self.refresh_soon();
    }

    fn are_shared(&self) -> bool {
        true
    }

    fn refresh_soon(&self) {
        self.start_refresh();
    }

    fn refreshed(&self) -> Reply<()> {
        let this = Weak::clone(&self.this);
        Box::pin(async move {
            match this.upgrade() {
                Some(slots) => slots.refresh_and_wait().await,
                None => Ok(()),
            }
        })
    }

    fn when_connected(&self, hook: Hook) {
        drop(self.hook.set(hook));
    }

    fn when_changed(&self, hook: ChangeHook) {
        drop(self.when_changed.set(hook));
    }

    fn listen(&self, listener: Weak<dyn Listener>) {
        drop(self.listener.set(listener));
    }

    fn listener(&self) -> Option<&Weak<dyn Listener>> {
        self.listener.get()
    }
}

impl Events for Weak<Slots> {
    fn on_opened(&self, number: usize) {
        if let Some(slots) = self.upgrade() {
            slots.check_leases_of(number);
        }
    }

    fn on_changed(&self, number: usize, changed: Changed<'_>) {
        if let Some(slots) = self.upgrade() {
            slots.pass_on(number, changed);
        }
    }

    fn on_unsubscribed(&self) {
        if let Some(slots) = self.upgrade() {
            slots.start_refresh();
        }
    }
}
