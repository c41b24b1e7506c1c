//! The backend of a simulated process: the verbs of the store in memory, over its connections, and the client's own
//! part as in `redis/mod.rs`.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::life::sleep;
use super::nodes::Part;
use super::process::{Ask, Asked, NoAnswer, Process};
use super::server::Does;
use super::slot_owners::Topology;
use super::subscription::{PATIENCE, listen};
use crate::core::backend::{
    AcquireReply, Attempt, Backend, Enqueued, Environment, Events, Fault, Grant, Release, Renewal,
    Renewed, Reply, Reserved, Transferred,
};
use crate::core::memory::Memory;
use crate::core::process::clock::{Moment, tokio_time, within};
use crate::core::types::key::LockKey;
use crate::core::types::owner::{Held, Origin};
use crate::core::types::slot::Slot;
use crate::redis::sure;

pub(super) struct Client(pub(super) Arc<Process>);

pub(super) const SERVER: &str = "simulation";

impl Ask {
    /// With all keys.
    fn whole(what: &'static str, slot: Slot, does: Does) -> Self {
        Self { what, slot, does, part: None }
    }

    /// With the key of the lock alone.
    fn of_lock(what: &'static str, does: Does, attempt: &Attempt) -> Self {
        Self { what, slot: attempt.slot, does, part: Some(Part::Lock(attempt.key.clone())) }
    }
}

impl Process {
    fn released(&self, attempt: &Arc<Attempt>, found: Release) {
        if found == Release::Released {
            self.ended(attempt);
        }
    }

    /// The server has neither lock nor queue entry of the attempt.
    fn ended(&self, attempt: &Arc<Attempt>) {
        self.latest_releases.add(Arc::clone(attempt), tokio_time());
    }

    /// Repeats the latest releases on the new primary.
    pub(super) async fn move_in(self: Arc<Self>) {
        let client = Client(Arc::clone(&self));
        drop(self.ready(self.servers()[0]).await);
        for attempt in self.latest_releases.take() {
            let release = client.release(Arc::clone(&attempt));
            let left = attempt.was_queued().then(|| client.leave(attempt));
            drop(tokio::spawn(async move {
                if release.await.is_ok()
                    && let Some(left) = left
                {
                    drop(left.await);
                }
            }));
        }
    }

    async fn is_any_taken(self: &Arc<Self>, keys: Vec<LockKey>) -> Result<bool, Fault> {
        let Some(slot) = keys.first().map(Slot::of) else { return Ok(false) };
        let ask = Ask::whole("above", slot, Does::Reads);
        match self.ask(ask, |store| store.is_any_taken(keys.clone())).await {
            Ok(asked) => Ok(asked.answer),
            Err(NoAnswer::Moves) => self.is_any_taken_in_parts(&keys).await,
            Err(NoAnswer::Fault(fault)) => Err(fault),
        }
    }

    /// Batches by server; where servers share the slots, each renewal is sent alone.
    async fn renew(
        self: &Arc<Self>,
        renewals: Vec<Renewal>,
    ) -> Result<Vec<Result<Renewed, Fault>>, Fault> {
        let Some(first) = renewals.first() else { return Ok(Vec::new()) };
        if self.world.mix.topology != Topology::Slots {
            let slot = first.attempt.slot;
            return self.renew_together(slot, renewals).await.map_err(NoAnswer::fault);
        }
        let alone = |renewal: Renewal| {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.renew_alone(renewal).await })
        };
        let running: Vec<_> = renewals.into_iter().map(alone).collect();
        let mut outcomes = Vec::new();
        for running in running {
            outcomes.push(running.await.unwrap());
        }
        Ok(outcomes)
    }

    async fn renew_alone(self: &Arc<Self>, renewal: Renewal) -> Result<Renewed, Fault> {
        match self.renew_together(renewal.attempt.slot, vec![renewal.clone()]).await {
            Ok(mut outcomes) => outcomes.remove(0),
            Err(NoAnswer::Moves) => self.renew_in_parts(&renewal).await,
            Err(NoAnswer::Fault(fault)) => Err(fault),
        }
    }

    async fn renew_together(
        self: &Arc<Self>,
        slot: Slot,
        renewals: Vec<Renewal>,
    ) -> Result<Vec<Result<Renewed, Fault>>, NoAnswer> {
        let ask = Ask::whole("renewal", slot, Does::Writes);
        let request = |store: &Arc<Memory>| self.renewed(store, renewals.clone());
        self.ask(ask, request).await.map(|asked| asked.answer)
    }

    /// The reply of a store; rules and servers learn of it.
    pub(super) fn renewed(
        &self,
        store: &Arc<Memory>,
        renewals: Vec<Renewal>,
    ) -> Reply<Vec<Result<Renewed, Fault>>> {
        let (world, number) = (Arc::clone(&self.world), self.number);
        let server = usize::from(!Arc::ptr_eq(store, world.store(0)));
        let reply = store.renew(renewals.clone());
        Box::pin(async move {
            let outcomes = reply.await?;
            for (Renewal { attempt, .. }, outcome) in renewals.iter().zip(&outcomes) {
                if matches!(outcome, Ok(Renewed::Held)) {
                    world.confirms(server, attempt.owner.as_ref());
                    if attempt.is_watched() {
                        world.tracks(number, &attempt.key, attempt.owner.as_ref());
                    }
                }
            }
            Ok(outcomes)
        })
    }

    /// The rules learn of the transfer when the store makes it.
    fn transferred(
        &self,
        store: &Arc<Memory>,
        from: &Arc<Attempt>,
        to: &Arc<Attempt>,
    ) -> Reply<Transferred> {
        to.mark_sent(tokio_time());
        let (world, from, to) = (Arc::clone(&self.world), Arc::clone(from), Arc::clone(to));
        let server = usize::from(!Arc::ptr_eq(store, world.store(0)));
        let reply = store.transfer(sent(&from), sent(&to));
        Box::pin(async move {
            let answer = reply.await?;
            if answer.found == Renewed::Held {
                world.transferred(server, &from, &to);
            }
            Ok(answer)
        })
    }

    async fn try_acquire(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<AcquireReply, Fault> {
        let granted = |found: &AcquireReply| match found {
            AcquireReply::Granted(grant) => Some(grant_of(grant)),
            AcquireReply::Busy | AcquireReply::Done => None,
        };
        let request = |store: &Arc<Memory>| {
            attempt.mark_sent(tokio_time());
            known(self, store, attempt, store.try_acquire(sent(attempt)), granted)
        };
        let ask = Ask::whole("acquire", attempt.slot, Does::Grows);
        let asked = match self.ask(ask, request).await {
            Ok(asked) => asked,
            Err(NoAnswer::Moves) => return self.acquire_in_parts(attempt).await,
            Err(NoAnswer::Fault(fault)) => return Err(fault),
        };
        Ok(match (asked.answer, attempt.sent_at()) {
            (AcquireReply::Granted(grant), Some(since)) => {
                AcquireReply::Granted(counted(&grant, attempt, since).of_epoch(asked.epoch))
            }
            (AcquireReply::Done, _) => AcquireReply::Done,
            _ => AcquireReply::Busy,
        })
    }

    async fn enqueue(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<Enqueued, Fault> {
        self.world.count("queries");
        let request = |store: &Arc<Memory>| {
            attempt.mark_sent(tokio_time());
            known(self, store, attempt, store.enqueue(sent(attempt)), |found| match found {
                Enqueued::Granted(grant) => Some(grant_of(grant)),
                Enqueued::Queued(_) | Enqueued::Done(_) => None,
            })
        };
        let ask = Ask::whole("query", attempt.slot, Does::Grows);
        let asked = match self.ask(ask, request).await {
            Ok(asked) => asked,
            Err(NoAnswer::Moves) => return self.enqueue_in_parts(attempt).await,
            Err(NoAnswer::Fault(fault)) => return Err(fault),
        };
        Ok(match asked.answer {
            Enqueued::Granted(grant) => {
                Enqueued::Granted(counted(&grant, attempt, asked.sent).of_epoch(asked.epoch))
            }
            queued @ (Enqueued::Queued(_) | Enqueued::Done(_)) => queued,
        })
    }
}

impl Backend for Client {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<AcquireReply> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            process.world.begins_request(&attempt);
            let found = process.try_acquire(&attempt).await?;
            process.world.ends_request(&attempt);
            Ok(found)
        })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            let ask = Ask::whole("release", attempt.slot, Does::Writes);
            let request = |store: &Arc<Memory>| store.release(sent(&attempt));
            match process.ask(ask, request).await {
                Ok(Asked { answer, before, .. }) => {
                    let found = sure(answer, &before, SERVER)?;
                    process.released(&attempt, found);
                    Ok(found)
                }
                Err(NoAnswer::Moves) => process.release_in_parts(&attempt).await,
                Err(NoAnswer::Fault(fault)) => Err(fault),
            }
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            let since = tokio_time();
            next.mark_sent(since);
            let request = |store: &Arc<Memory>| {
                let reply = store.release_to(sent(&attempt), sent(&next));
                known(&process, store, &next, reply, |(_, grant)| grant.as_ref().map(grant_of))
            };
            let ask = Ask::whole("release to", attempt.slot, Does::Grows);
            let mut given_up = GivenUp { process: &process, next: Some(&next) };
            let asked = process.ask(ask, request).await;
            given_up.next = None;
            let Asked { answer, epoch, before, .. } = match asked {
                Ok(asked) => asked,
                Err(NoAnswer::Moves) => {
                    return Ok((process.release_in_parts(&attempt).await?, None));
                }
                Err(NoAnswer::Fault(fault)) => return Err(fault),
            };
            let (found, grant) = answer;
            let grant = grant.map(|grant| counted(&grant, &next, since).of_epoch(epoch));
            let found = sure(found, &before.map(|(found, _)| found), SERVER)?;
            process.released(&attempt, found);
            Ok((found, grant))
        })
    }

    fn transfer(&self, from: Arc<Attempt>, to: Arc<Attempt>) -> Reply<Transferred> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            let ask = Ask::of_lock("transfer", Does::Grows, &from);
            let asked = process.ask(ask, |store| process.transferred(store, &from, &to)).await;
            let Asked { answer, epoch, .. } = asked.map_err(NoAnswer::fault)?;
            Ok(Transferred { epoch, ..answer })
        })
    }

    fn count_fence(&self, attempt: Arc<Attempt>) -> Reply<u64> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            let part = Some(Part::Counter(attempt.slot));
            let ask = Ask { what: "count", slot: attempt.slot, does: Does::Grows, part };
            let asked = process.ask(ask, |store| store.count_fence(sent(&attempt))).await;
            asked.map(|asked| asked.answer).map_err(NoAnswer::fault)
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            process.world.begins_request(&attempt);
            let _heard: Option<()> = within(|| sleep(PATIENCE), listen(&process)).await;
            let found = process.enqueue(&attempt).await?;
            process.world.ends_request(&attempt);
            Ok(found)
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            let ask = Ask::whole("leave", attempt.slot, Does::Writes);
            match process.ask(ask, |store| store.leave(sent(&attempt))).await {
                Ok(_) => {
                    process.ended(&attempt);
                    Ok(())
                }
                Err(NoAnswer::Moves) => process.leave_in_parts(&attempt).await,
                Err(NoAnswer::Fault(fault)) => Err(fault),
            }
        })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let process = Arc::clone(&self.0);
        Box::pin(async move { process.renew(renewals).await })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        self.0.world.store(0).inspect(key)
    }

    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool> {
        let process = Arc::clone(&self.0);
        Box::pin(async move { process.is_any_taken(keys).await })
    }
}

/// A release whose caller drops it: it may arrive after what it queues was withdrawn.
struct GivenUp<'a> {
    process: &'a Process,
    /// None after the answer.
    next: Option<&'a Attempt>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(next) = self.next {
            self.process.world.rules().gives_up(next.owner.as_ref());
        }
    }
}

/// A copy of the attempt, in which a server may note things.
pub(super) fn sent(attempt: &Attempt) -> Arc<Attempt> {
    let Attempt { key, local_permit, owner, ttl, min_hold, .. } = attempt;
    let sent = match local_permit {
        None => Attempt::owned(key.clone(), *ttl, owner.clone()),
        Some(local_permit) => Attempt::in_local_permit(local_permit, *ttl, owner.clone()),
    };
    if let Some(rest) = min_hold.rest(tokio_time) {
        sent.min_hold.set_end(tokio_time().after(rest));
    }
    Arc::new(sent)
}

type Tokens = (Reserved, Option<LockKey>);

fn grant_of(grant: &Grant) -> Tokens {
    (grant.fence(), grant.permit().cloned())
}

/// The grant as the process counts it, from the sending of its request.
fn counted(grant: &Grant, attempt: &Attempt, sent: Moment) -> Grant {
    Grant::answered(attempt, grant.fence(), sent).of_permit(grant.permit().cloned())
}

/// The rules learn of the grant when the store makes it.
fn known<T: Send + 'static>(
    process: &Process,
    store: &Arc<Memory>,
    attempt: &Arc<Attempt>,
    reply: Reply<T>,
    granted: fn(&T) -> Option<Tokens>,
) -> Reply<T> {
    let (world, attempt) = (Arc::clone(&process.world), Arc::clone(attempt));
    let server = usize::from(!Arc::ptr_eq(store, world.store(0)));
    Box::pin(async move {
        let found = reply.await?;
        if let Some((fence, permit)) = granted(&found) {
            let key = permit.as_ref().unwrap_or(&attempt.key);
            world.granted(server, key, attempt.owner.as_ref(), fence);
        }
        Ok(found)
    })
}

impl Environment for Client {
    fn name(&self) -> &'static str {
        SERVER
    }

    fn store(&self) -> &'static str {
        SERVER
    }

    fn now(&self) -> Moment {
        tokio_time()
    }

    fn timer(&self, duration: Duration) -> Sleep {
        sleep(duration)
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(tokio::spawn(task));
    }

    fn renewal_runtime(&self, _: bool) -> Handle {
        Handle::current()
    }

    fn connect(&self) -> Reply<()> {
        let process = Arc::clone(&self.0);
        Box::pin(async move { process.ready(process.servers()[0]).await.map(drop) })
    }

    fn report_to(&self, origin: Origin, events: Weak<dyn Events>) {
        // The first one stays.
        drop(self.0.events.set((origin, events)));
    }

    fn server_index(&self, slot: Slot) -> usize {
        self.0.server_of(slot)
    }

    fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        self.0.unanswered(slot, waited);
        Fault::no_answer(self.name(), waited)
    }
}
