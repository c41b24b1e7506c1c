//! The backend of a simulated process: the verbs of the store in memory, over its connections. What a
//! client does beside that is done as in `backend/redis/mod.rs`.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::life::sleep;
use super::process::Process;
use super::subscription::listen;
use crate::backend::{
    self, Acquisition, Administration, Attempt, Audience, Backend, Checkup, Enqueued, Environment,
    Events, Fault, Grant, Held, Memory, Page, Queued, Release, Renewal, Renewed, Reply, Reserved,
    Revocation, Revoking, Seen,
};
use crate::check::Role;
use crate::types::clock::{Moment, tokio_time};
use crate::types::key::LockKey;
use crate::types::selection::Selection;
use crate::types::slot::Slot;
use crate::types::token::Origin;

pub(super) struct Client(pub(super) Arc<Process>);

impl Client {
    fn parts(&self) -> (Arc<Process>, Arc<Memory>) {
        (Arc::clone(&self.0), Arc::clone(&self.0.world.store))
    }
}

impl Backend for Client {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let (process, store) = self.parts();
        Box::pin(async move {
            let request = || {
                attempt.mark_sent(tokio_time());
                let reply = store.try_acquire(sent(&attempt));
                known(&process, &attempt, reply, |found| match found {
                    Acquisition::Granted { fencing_token, permit, .. } => {
                        let first = (*fencing_token).into();
                        Some((Reserved { first, passes: 0 }, permit.clone()))
                    }
                    Acquisition::Busy | Acquisition::Done => None,
                })
            };
            let found = process.ask("acquire", request).await?.answer;
            Ok(match (found, attempt.sent_at()) {
                (Acquisition::Granted { fencing_token, permit, .. }, Some(since)) => {
                    Acquisition::Granted { fencing_token, since, permit }
                }
                (Acquisition::Done, _) => Acquisition::Done,
                _ => Acquisition::Busy,
            })
        })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let (process, store) = self.parts();
        Box::pin(async move {
            let asked = process.ask("release", || store.release(sent(&attempt))).await?;
            sure(asked.answer, asked.is_second)
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        let (process, store) = self.parts();
        Box::pin(async move {
            let since = tokio_time();
            next.mark_sent(since);
            let request = || {
                let reply = store.release_to(sent(&attempt), sent(&next));
                known(&process, &next, reply, |(_, grant)| grant.as_ref().map(grant_of))
            };
            let mut given_up = GivenUp { process: &process, next: Some(&next) };
            let asked = process.ask("release to", request).await;
            given_up.next = None;
            let asked = asked?;
            let (found, grant) = asked.answer;
            let grant = grant.map(|grant| {
                process.times.learn(since, asked.server_time, tokio_time());
                Grant::answered(&next, grant.fence, since, next.ttl.provisional())
            });
            Ok((sure(found, asked.is_second)?, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let (process, store) = self.parts();
        Box::pin(async move {
            let since = tokio_time();
            attempt.mark_sent(since);
            let what = if attempt.had_turn() { "claim" } else { "question" };
            process.world.count(if attempt.had_turn() { "claims" } else { "questions" });
            if attempt.had_turn() {
                process.world.rules().claims(process.number, attempt.key.as_str());
            }
            let request = || {
                let reply = store.enqueue(sent(&attempt));
                known(&process, &attempt, reply, |found| match found {
                    Enqueued::Granted(grant) => Some(grant_of(grant)),
                    Enqueued::Queued { .. } | Enqueued::Done { .. } => None,
                })
            };
            let asked = process.ask(what, request).await?;
            process.times.learn(since, asked.server_time, tokio_time());
            Ok(match asked.answer {
                Enqueued::Granted(grant) => {
                    let Grant { key, fence, .. } = grant;
                    let grant = Grant::answered(&attempt, fence, since, attempt.ttl);
                    Enqueued::Granted(grant.of_permit(Some(key)))
                }
                queued @ (Enqueued::Queued { .. } | Enqueued::Done { .. }) => queued,
            })
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let (process, store) = self.parts();
        Box::pin(async move {
            process.ask("leave", || store.leave(sent(&attempt))).await.map(|asked| asked.answer)
        })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let (process, store) = self.parts();
        Box::pin(async move {
            process.ask("renewal", || store.renew(renewals.clone())).await.map(|asked| asked.answer)
        })
    }

    fn listen(&self, origin: Origin, events: Weak<dyn Events>) -> Reply<()> {
        let (process, _) = self.parts();
        Box::pin(async move {
            listen(&process, origin, events).await;
            Ok(())
        })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        self.0.world.store.inspect(key)
    }

    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool> {
        let (process, store) = self.parts();
        Box::pin(async move {
            let request = || store.is_any_taken(keys.clone());
            process.ask("above", request).await.map(|asked| asked.answer)
        })
    }
}

/// A release whose caller drops it: it may land after what it queues was withdrawn.
struct GivenUp<'a> {
    process: &'a Process,
    /// None once it was answered.
    next: Option<&'a Attempt>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(next) = self.next {
            self.process.world.rules().gives_up(next.owner.as_ref());
        }
    }
}

/// A release that was repeated and does not find its own proves nothing.
fn sure(found: Release, is_second: bool) -> Result<Release, Fault> {
    if is_second && found != Release::Released {
        return Err(Fault::unavailable("the connection broke during the release"));
    }
    Ok(found)
}

/// What a request says of an attempt. A server notes nothing in the attempt of the process.
fn sent(attempt: &Attempt) -> Arc<Attempt> {
    let Attempt { key, lane, owner, ttl, min_hold, .. } = attempt;
    let sent = match lane {
        None => Attempt::owned(key.clone(), *ttl, owner.clone()),
        Some(lane) => Attempt::in_lane(lane, *ttl, owner.clone()),
    };
    if let Some(rest) = min_hold.rest(tokio_time) {
        sent.min_hold.set_end(tokio_time().after(rest));
    }
    Arc::new(sent)
}

/// The fencing tokens of a grant, and the permit, where it is one.
type Tokens = (Reserved, Option<LockKey>);

fn grant_of(grant: &Grant) -> Tokens {
    (grant.fence, Some(grant.key.clone()))
}

/// The reply of the store, whose grant the rules know from when it is made.
fn known<T: Send + 'static>(
    process: &Process,
    attempt: &Arc<Attempt>,
    reply: Reply<T>,
    granted: fn(&T) -> Option<Tokens>,
) -> Reply<T> {
    let (world, attempt) = (Arc::clone(&process.world), Arc::clone(attempt));
    Box::pin(async move {
        let found = reply.await?;
        if let Some((fence, permit)) = granted(&found) {
            world.granted(permit.as_ref().unwrap_or(&attempt.key), attempt.owner.as_ref(), fence);
        }
        Ok(found)
    })
}

impl Administration for Client {
    fn sweep(&self, selection: Selection) -> Reply<Page> {
        self.0.world.store.sweep(selection)
    }

    fn look(&self, key: LockKey) -> Reply<Option<Seen>> {
        self.0.world.store.look(key)
    }

    fn queue(&self, key: LockKey) -> Reply<Vec<Queued>> {
        Administration::queue(&self.0.world.store, key)
    }

    fn clients(&self) -> Reply<Vec<backend::Client>> {
        self.0.world.store.clients()
    }

    fn clock_difference(&self) -> Reply<Option<Duration>> {
        self.0.world.store.clock_difference()
    }

    fn size(&self) -> Reply<u64> {
        self.0.world.store.size()
    }
}

impl Revoking for Client {
    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        self.0.world.store.send(revocation)
    }

    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
        self.0.world.store.force(key, owner)
    }
}

impl Environment for Client {
    fn name(&self) -> &'static str {
        "simulation"
    }

    fn store(&self) -> &'static str {
        "simulation"
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

    fn home(&self, _: bool) -> Handle {
        Handle::current()
    }

    fn connect(&self) -> Reply<()> {
        let (process, _) = self.parts();
        Box::pin(async move { process.ready().await.map(drop) })
    }

    fn report_to(&self, events: Weak<dyn Events>) {
        self.0.world.store.report_to(Weak::clone(&events));
        // The first one stays.
        drop(self.0.events.set(events));
    }

    fn unanswered(&self, _: Slot, waited: Duration) -> Fault {
        self.0.unanswered(waited);
        Fault::no_answer(self.name(), waited)
    }

    fn check(&self, prefix: &str, role: Role) -> Checkup {
        self.0.world.store.check(prefix, role)
    }
}
