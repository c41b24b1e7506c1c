//! A cluster: which node a request goes to, and what follows from its answer.
//!
//! See "Why not the client's cluster connection?" in DESIGN.md.

use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use self::answers::Meaning;
use self::refreshes::Refreshes;
use self::table::{Changes, Events, Member, Table};
use super::reach::opener::Opener;
use super::reach::place::Place;
use super::wire::connection::Connection;
use crate::backend::redis::fault::cluster;
use crate::backend::{Attempt, Fault, Hook, Listener};
use crate::types::clock::{Moment, boot_time};
use crate::types::error::LockErrorKind;
use crate::types::slot::{SLOTS, Slot};
use crate::types::token::Origin;

mod answers;
mod hops;
mod in_parts;
mod refreshes;
mod renewals;
mod table;
mod votes;

pub(super) use self::hops::Hops;

/// The nodes of a cluster, each with its slots and its connections.
pub(super) struct Cluster {
    pub(super) opener: Opener,
    table: RwLock<Table>,
    refreshes: Refreshes,
    hook: OnceLock<Hook>,
    listener: OnceLock<Weak<dyn Listener>>,
    this: Weak<Self>,
}

impl Cluster {
    pub(super) fn new(opener: Opener, background: Handle) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let events = Arc::new(Weak::clone(this));
            let table = RwLock::new(Table::new(opener.clone(), background, events));
            let (hook, listener) = (OnceLock::new(), OnceLock::new());
            let (refreshes, this) = (Refreshes::default(), Weak::clone(this));
            Self { opener, table, refreshes, hook, listener, this }
        })
    }

    /// Makes sure that the cluster can be used from the calling task: that some node says which nodes there are,
    /// and one of these is connected to.
    pub(super) async fn connect(&self) -> Result<(), Fault> {
        if self.table().is_empty() {
            self.refreshed().await?;
        }
        let first = Slot::all().find_map(|slot| self.member(slot));
        match first {
            Some(member) => member.connections.ready().await.map(drop),
            None => Err(cluster::without_slots(&self.opener.server)),
        }
    }

    /// The connection of the calling task's runtime to the node of this slot.
    pub(super) async fn ready(
        &self,
        slot: Slot,
        hops: &mut Hops,
    ) -> Result<Arc<Connection>, Fault> {
        loop {
            let fault = match self.member(slot) {
                Some(member) => match member.connections.ready().await {
                    Ok(connection) => return Ok(connection),
                    Err(fault) if fault.kind == LockErrorKind::Unavailable => fault,
                    Err(fault) => return Err(fault),
                },
                None => self.unserved(slot).await?,
            };
            self.refresh_soon();
            hops.pause(fault, &self.opener).await?;
        }
    }

    /// No node is known to have the slot: the first request waits for the nodes' answers.
    async fn unserved(&self, slot: Slot) -> Result<Fault, Fault> {
        if self.table().is_empty() {
            self.refreshed().await?;
        }
        Ok(cluster::unserved(&self.opener.server, slot))
    }

    /// What follows from a fault of a node, whose request goes out again.
    ///
    /// # Errors
    /// With the fault, where that does not help.
    pub(super) async fn follow(
        &self,
        slot: Slot,
        connection: &Connection,
        fault: Fault,
        hops: &mut Hops,
    ) -> Result<(), Fault> {
        let Some(asked) = connection.node() else { return Err(fault) };
        match Meaning::of(&fault, asked) {
            Meaning::Moved(place) => {
                self.move_slot(slot, asked, &place);
                hops.redirect(fault, &self.opener).await
            }
            Meaning::Passes => self.again(fault, hops).await,
            Meaning::Asks(_) | Meaning::Split | Meaning::Stays if connection.is_retired() => {
                self.again(fault, hops).await
            }
            Meaning::Asks(_) | Meaning::Split | Meaning::Stays => Err(fault),
        }
    }

    /// The answer of a node. While it is missing, the others are asked whether that node still has its slots: one
    /// that hangs breaks no connection.
    pub(super) async fn doubting<F: Future>(&self, answer: F) -> F::Output {
        let mut answer = pin!(answer);
        loop {
            let patience = self.opener.command_deadline / 4;
            match self.opener.within(patience, answer.as_mut()).await {
                Some(answer) => return answer,
                None => self.refresh_soon(),
            }
        }
    }

    async fn again(&self, fault: Fault, hops: &mut Hops) -> Result<(), Fault> {
        self.refresh_soon();
        hops.pause(fault, &self.opener).await
    }

    /// Who hears of grants from now on.
    pub(super) fn listen(&self, listener: Weak<dyn Listener>) {
        drop(self.listener.set(listener));
    }

    /// Makes sure that a grant to this attempt is heard, if the slot's node lets it. Where it does not, the call
    /// finds its turn when it asks again, as it does once in a while in any case.
    pub(super) async fn listen_for(&self, attempt: &Attempt) {
        let origin = Origin::of(&attempt.owner);
        let (Some(origin), Some(listener)) = (origin, self.listener.get()) else { return };
        let Some(member) = self.member(attempt.slot) else { return };
        let heard = member.grants.listen(attempt.slot, origin, listener);
        // The request itself is to be answered within a command deadline.
        let _heard: Option<Result<(), Fault>> =
            self.opener.within(self.opener.command_deadline / 2, heard).await;
    }

    /// Whether the fault says that the slot of its request moves key by key: the verb has to be done in parts.
    pub(super) fn is_moving(fault: &Fault) -> bool {
        let nowhere = Place { host: String::new(), port: 0 };
        matches!(Meaning::of(fault, &nowhere), Meaning::Asks(_) | Meaning::Split)
    }

    /// The node that is known to have the slot.
    pub(super) fn member(&self, slot: Slot) -> Option<Arc<Member>> {
        self.table().owner(slot).cloned()
    }

    /// The node at this place, which may have no slot yet.
    fn member_at(&self, place: &Place, slot: Slot) -> Arc<Member> {
        self.table_mut().member(place, slot)
    }

    pub(super) fn place(&self, slot: Slot) -> usize {
        self.table().owner(slot).map_or(0, |member| member.number)
    }

    pub(super) fn moved_at(&self, slot: Slot) -> Moment {
        self.table().moved_at(slot)
    }

    /// The calling task gave up on an answer of the slot's node after that time.
    pub(super) fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        self.refresh_soon();
        match self.member(slot) {
            Some(member) => {
                member.connections.unanswered(waited);
                Fault::no_answer(&member.connections.opener.server, waited)
            }
            None => Fault::no_answer(&self.opener.server, waited),
        }
    }

    pub(super) fn when_connected(&self, hook: Hook) {
        drop(self.hook.set(hook));
    }

    /// A connection to this node was opened: it may have restarted, and lost its data.
    fn check_leases_of(&self, number: usize) {
        let of_node = |slot| self.place(slot) == number;
        if let Some(hook) = self.hook.get() {
            hook(&of_node);
        }
    }

    /// The node that was asked for a slot has said that it is at this place now.
    fn move_slot(&self, slot: Slot, from: &Place, to: &Place) {
        let changes = self.table_mut().move_slot(slot, from, to, boot_time());
        self.changed(&changes);
        // It is rarely the only one.
        self.refresh_soon();
    }

    /// What was known of the slots that changed hands counts no more: their fence counters are seeded again, and
    /// their leases checked.
    fn changed(&self, changes: &Changes) {
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
        for member in &changes.left {
            member.leave();
        }
        if let Some(hook) = self.hook.get() {
            hook(&|slot| moved.get(slot.index()).is_some_and(|moved| *moved));
        }
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
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

    fn on_unsubscribed(&self) {
        if let Some(cluster) = self.upgrade() {
            cluster.refresh_soon();
        }
    }
}
