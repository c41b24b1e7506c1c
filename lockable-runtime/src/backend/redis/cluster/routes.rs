//! The way of a request: to the node of its slot, and on from there as the answers say.
//!
//! See "Why not the client's cluster connection?" in DESIGN.md.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::answers::Meaning;
use super::hops::Hops;
use super::nodes::Cluster;
use super::table::Member;
use crate::backend::redis::connections::Connections;
use crate::backend::redis::fault::cluster;
use crate::backend::redis::reach::place::Place;
use crate::backend::redis::wire::connection::Connection;
use crate::backend::{Attempt, Fault, Listener};
use crate::types::error::LockErrorKind;
use crate::types::slot::Slot;
use crate::types::token::Origin;

/// Which of its connections a node is asked over.
pub(super) type Lines = fn(&Member) -> &Connections;

impl Cluster {
    /// Makes sure that the cluster can be used from the calling task: that some node says which nodes there are,
    /// and one of these is connected to. Another one may be away.
    pub(crate) async fn connect(&self) -> Result<(), Fault> {
        if self.table().is_empty() {
            self.refreshed().await?;
        }
        let (masters, limit) = (self.table().masters(), self.opener.connect_deadline / 2);
        let mut failed = cluster::without_slots(&self.opener.server);
        for master in masters {
            let connected = self.opener.within(limit, master.connections.ready()).await;
            match connected.unwrap_or_else(|| Err(master.connections.opener.late())) {
                Ok(_) => return Ok(()),
                Err(fault) if fault.kind == LockErrorKind::Unavailable => failed = fault,
                Err(fault) => return Err(fault),
            }
            self.refresh_soon();
        }
        Err(failed)
    }

    /// The connection of the calling task's runtime to the node of this slot.
    pub(crate) async fn ready(
        &self,
        slot: Slot,
        hops: &mut Hops,
    ) -> Result<Arc<Connection>, Fault> {
        self.ready_over(|member| &member.connections, slot, hops).await
    }

    /// The same of other connections.
    pub(super) async fn ready_over(
        &self,
        of: Lines,
        slot: Slot,
        hops: &mut Hops,
    ) -> Result<Arc<Connection>, Fault> {
        loop {
            let fault = match self.member(slot) {
                Some(member) => match self.doubting(of(&member).ready()).await {
                    Ok(connection) => return Ok(connection),
                    Err(fault) if fault.kind == LockErrorKind::Unavailable => fault,
                    Err(fault) => return Err(fault),
                },
                None => match self.unserved(slot).await? {
                    Some(fault) => fault,
                    None => continue,
                },
            };
            self.refresh_soon();
            hops.pause(fault, &self.opener).await?;
        }
    }

    /// No node is known to have the slot: the first request waits for the nodes' answers, however long they take.
    /// `None` where they name one.
    async fn unserved(&self, slot: Slot) -> Result<Option<Fault>, Fault> {
        if self.table().is_empty() {
            self.refreshed().await?;
            if self.member(slot).is_some() {
                return Ok(None);
            }
        }
        Ok(Some(cluster::unserved(&self.opener.server, slot)))
    }

    /// What follows from a fault of a node, whose request goes out again.
    ///
    /// # Errors
    /// With the fault, where that does not help.
    pub(crate) async fn follow(
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
    pub(crate) async fn doubting<F: Future>(&self, answer: F) -> F::Output {
        let mut answer = pin!(answer);
        loop {
            let patience = self.opener.command_deadline / 4;
            match self.opener.within(patience, answer.as_mut()).await {
                Some(answer) => return answer,
                None => self.refresh_soon(),
            }
        }
    }

    pub(super) async fn again(&self, fault: Fault, hops: &mut Hops) -> Result<(), Fault> {
        self.refresh_soon();
        hops.pause(fault, &self.opener).await
    }

    /// Who hears of grants from now on.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        drop(self.listener.set(listener));
    }

    /// Makes sure that a grant to this attempt is heard, if the slot's node lets it. Where it does not, the call
    /// finds its turn when it asks again, as it does once in a while in any case.
    pub(crate) async fn listen_for(&self, attempt: &Attempt) {
        let origin = Origin::of(&attempt.owner);
        let (Some(origin), Some(listener)) = (origin, self.listener.get()) else { return };
        let Some(member) = self.member(attempt.slot) else { return };
        let heard = member.grants.listen(attempt.slot, origin, listener);
        // The request itself is to be answered within a command deadline.
        let _heard: Option<Result<(), Fault>> =
            self.opener.within(self.opener.command_deadline / 2, heard).await;
    }

    /// The same without waiting.
    pub(crate) fn start_listening_for(&self, attempt: &Attempt) {
        let origin = Origin::of(&attempt.owner);
        let (Some(origin), Some(listener)) = (origin, self.listener.get()) else { return };
        if let Some(member) = self.member(attempt.slot) {
            member.grants.start_listening(attempt.slot, origin, listener);
        }
    }

    /// Whether the fault says that the slot of its request moves key by key: the verb has to be done in parts.
    pub(crate) fn is_moving(fault: &Fault) -> bool {
        let nowhere = Place { host: String::new(), port: 0 };
        matches!(Meaning::of(fault, &nowhere), Meaning::Asks(_) | Meaning::Split)
    }

    /// The calling task gave up on an answer of the slot's node after that time.
    pub(crate) fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        self.refresh_soon();
        match self.member(slot) {
            Some(member) => {
                member.connections.unanswered(waited);
                Fault::no_answer(&member.connections.opener.server, waited)
            }
            None => Fault::no_answer(&self.opener.server, waited),
        }
    }

    /// The node that was asked for a slot has said that it is at this place now.
    pub(super) fn move_slot(&self, slot: Slot, from: &Place, to: &Place) {
        self.change(|table, now| table.move_slot(slot, from, to, now));
        // It is rarely the only one.
        self.refresh_soon();
    }
}
