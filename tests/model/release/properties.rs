//! What must be true at every moment.

use stateright::Property;

use crate::release::call::Step;
use crate::release::server::Form;
use crate::release::state::State;
use crate::release::world::World;

/// So no two hold it.
pub(crate) const HELD: &str = "the server has the lock for each holder";

pub(crate) const KEPT: &str = "a native delete removes no lock of another";

/// Marked or not.
pub(crate) const KNOWN: &str = "no call takes its own lock for another's";

/// A lock that is free by a release, and not by the end of a lease, has no waiter.
pub(crate) const SERVED: &str = "no waiter who has asked since a lease ended is at a free lock";

pub(crate) const ENDED: &str = "no lock is left behind by its holder";

/// So it is passed over until then at most.
pub(crate) const ASKING: &str = "each waiter that is passed over will ask again";

pub(crate) const ENDING: &str = "each lock has an end";

/// Not so after the end of a lease, or after a request that arrives late.
pub(crate) const MARKED: &str = "each native token that has a waiter is marked";

pub(crate) fn all() -> Vec<Property<World>> {
    vec![
        Property::always(HELD, |_, state: &State| {
            let mut holders = state.calls.iter().filter(|call| call.step == Step::Holding);
            holders.all(|call| state.server.has(call.owner))
        }),
        Property::always(KEPT, |_, state: &State| !state.took_others),
        Property::always(KNOWN, |_, state: &State| !state.was_wrong),
        Property::always(SERVED, |_, state: &State| {
            state.server.lock.is_some() || !state.server.queue.iter().any(|entry| entry.is_told)
        }),
        Property::always(ENDED, |_, state: &State| !state.is_left_behind()),
        Property::always(ASKING, |_, state: &State| {
            let mut waiters = state.calls.iter().filter(|call| call.step == Step::Waiting);
            let is_handed_off = |owner| state.server.has(owner);
            waiters.all(|call| {
                let entry = state.server.queue.iter().find(|entry| entry.owner == call.owner);
                let is_passed_over = entry.is_none_or(|entry| !entry.is_told);
                !is_passed_over || is_handed_off(call.owner) || state.may_ask(call)
            })
        }),
        Property::always(ENDING, |_, state: &State| {
            state.server.lock.is_none_or(|lock| lock.has_end)
        }),
        Property::always(MARKED, |_, state: &State| {
            let lock = state.server.lock.filter(|lock| lock.owner.form == Form::Native);
            lock.is_none_or(|lock| lock.is_marked || state.server.queue.is_empty())
        }),
    ]
}
