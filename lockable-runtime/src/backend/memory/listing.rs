//! What operators ask a store in memory for.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use super::Memory;
use super::state::State;
use crate::backend::administration::{Administration, LockerConnection, Page, Queued, Seen};
use crate::backend::{Attempt, Reply};
use crate::types::client_name::ClientName;
use crate::types::clock::{Moment, tokio_time};
use crate::types::key::LockKey;
use crate::types::owner::Held;
use crate::types::selection::Selection;

impl Administration for Arc<Memory> {
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

    /// This process, which alone can have the store.
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
}

fn seen(state: &mut State, key: &LockKey, now: Moment) -> Option<Seen> {
    state.with_queue(key, |state| {
        let place = state.places.get(key)?;
        let Held { owner, remaining } = place.held(now)?;
        let key = key.clone();
        Some(Seen { key, owner: Some(owner), remaining, queued: place.queue.len() })
    })
}
