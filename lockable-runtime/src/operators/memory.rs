use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use super::check::{Report, Role};
use super::contract::{Audience, Checkup, LockerConnection, Operations, Page, Queued, Seen};
use super::selection::Selection;
use crate::core::backend::{Attempt, Environment, Release, Reply, Revocation};
use crate::core::memory::Memory;
use crate::core::memory::state::State;
use crate::core::naming::client_name::ClientName;
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::key::LockKey;
use crate::core::types::owner::Held;
use crate::findings::{Code, Finding, Severity};

impl Operations for Arc<Memory> {
    fn sweep(&self, selection: Selection) -> Reply<Page> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let mut state = store.state.lock();
            let now = tokio_time();
            let selected = state.places.keys().filter(|key| selection.has(key.as_str()));
            let selected: Vec<_> = selected.cloned().collect();
            let seen = selected.iter().filter_map(|key| seen(&mut state, key, now)).collect();
            let scanned = u64::try_from(state.places.len()).unwrap_or(u64::MAX);
            Ok(Page { seen, scanned, fault: None, rest: None })
        })
    }

    fn look(&self, key: LockKey) -> Reply<Option<Seen>> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let now = tokio_time();
            Ok(seen(&mut store.state.lock(), &key, now))
        })
    }

    fn queue(&self, key: LockKey) -> Reply<Vec<Queued>> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let state = store.state.lock();
            let queued = |attempt: &Arc<Attempt>| {
                let owner = attempt.owner.as_ref().to_owned();
                let locker = state.lockers.iter().find(|(origin, _)| origin.is_of(&owner));
                let is_listening = locker.is_some_and(|(_, events)| events.strong_count() > 0);
                Queued { owner, is_listening: Some(is_listening) }
            };
            Ok(state.queue(&key).map(queued).collect())
        })
    }

    fn clients(&self) -> Reply<Vec<LockerConnection>> {
        let age = tokio_time().since(self.born);
        let name = ClientName::current(self.service.as_deref());
        let client = name.map(|name| vec![LockerConnection { name, address: None, age }]);
        Box::pin(ready(client.map_err(Into::into)))
    }

    fn clock_difference(&self) -> Reply<Option<Duration>> {
        Box::pin(ready(Ok(None)))
    }

    fn size(&self) -> Reply<u64> {
        let now = tokio_time();
        let state = self.state.lock();
        let count = state.places.values().filter(|place| now < place.expires()).count();
        Box::pin(ready(Ok(u64::try_from(count).unwrap_or(u64::MAX))))
    }

    /// The holder knows it when the reply is there.
    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let lockers: Vec<_> =
                store.state.lock().lockers.iter().filter_map(|(_, it)| it.upgrade()).collect();
            for locker in &lockers {
                locker.on_revocation(&revocation);
            }
            Ok(if lockers.is_empty() { Audience::Silence } else { Audience::Listens })
        })
    }

    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
        self.reply(key, move |change| match change.inspect() {
            None => Release::Absent,
            Some(held) if held.owner.as_bytes() != owner => Release::Taken,
            Some(_) => {
                change.evict();
                Release::Released
            }
        })
    }

    fn check(&self, _: &str, _: Role) -> Checkup {
        let mut report = Report::new(self.name());
        report.add([Finding::new(
            Severity::Info,
            Code::OneProcess,
            "these locks are in the memory of this process: no other one sees them, and they end \
             with it",
        )]);
        Box::pin(ready(report))
    }
}

fn seen(state: &mut State, key: &LockKey, now: Moment) -> Option<Seen> {
    state.with_queue(key, |state| {
        let place = state.places.get(key)?;
        let Held { owner, remaining } = place.held(now)?;
        let key = key.clone();
        Some(Seen { key, owner: Some(owner), remaining, queued: place.queue.len() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::backend::Backend;
    use crate::core::types::options::Ttl;

    #[tokio::test(start_paused = true)]
    async fn locks_that_have_ended_are_not_counted() {
        let store = Memory::open("").unwrap();
        let attempt = Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT);
        drop(store.try_acquire(Arc::new(attempt)).await.unwrap());
        assert_eq!(store.size().await.unwrap(), 1);
        tokio::time::advance(Ttl::DEFAULT.duration()).await;
        assert_eq!(store.size().await.unwrap(), 0);
    }
}
