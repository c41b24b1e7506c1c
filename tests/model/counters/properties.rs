//! What must be true at every moment.

use stateright::Property;

use crate::counters::call::Call;
use crate::counters::history::Tokens;
use crate::counters::server::{Counter, RESERVATION};
use crate::counters::state::State;
use crate::counters::world::World;

/// The tokens of each holder are above those of all before it. Not so where a request came apart and its lock was
/// lost between the parts.
pub(crate) const RISING: &str = "tokens rise from holder to holder";

/// The same without that exception.
pub(crate) const RISING_IN_PARTS: &str = "tokens rise also where a request came apart";

/// What is left of it behind a proxy that leads open connections to another server.
pub(crate) const RISING_AS_SEEN: &str = "tokens rise over those that the connection had seen";

pub(crate) const NEAR: &str = "no counter is ahead of the clock by more than a reservation";

pub(crate) const ENDING: &str = "a counter without an end is about to be seeded";

pub(crate) const NEEDED: &str = "no second request is sent before something was lost";

pub(crate) fn all() -> Vec<Property<World>> {
    vec![
        Property::always(RISING, |world, state| {
            setbacks(world, state).all(|(former, _)| former.came_apart)
        }),
        Property::always(RISING_IN_PARTS, |world, state| setbacks(world, state).next().is_none()),
        Property::always(RISING_AS_SEEN, |world, state| {
            setbacks(world, state).all(|(former, later)| is_unseen(former, later))
        }),
        Property::always(NEAR, |world, state: &State| {
            let limit = state.server.clock + state.set_back(world) + RESERVATION;
            counters(state).all(|counter| counter.value < limit)
        }),
        Property::always(ENDING, |_, state: &State| {
            let have_ends = counters(state).all(|counter| counter.end.is_some());
            have_ends || state.calls.iter().any(Call::will_seed)
        }),
        Property::always(NEEDED, |_, state: &State| !state.was_needless),
    ]
}

fn counters(state: &State) -> impl Iterator<Item = Counter> {
    state.server.data.counters.into_iter().flatten()
}

/// Where tokens went back: a holder's, and those of a later one. A clock that is set back counts only for the key
/// whose leases keep the counter for longer than that.
fn setbacks(world: &World, state: &State) -> impl Iterator<Item = (Tokens, Tokens)> {
    let step = state.set_back(world);
    let keys = [0, 1].into_iter().filter(move |key| world.lives[*key] > step);
    keys.flat_map(|key| state.histories[key].setbacks())
}

/// Whether the later holder's connection trusted the counter, and had not seen it come to the former's tokens.
fn is_unseen(former: Tokens, later: Tokens) -> bool {
    former.came_apart || later.seen.is_some_and(|seen| seen < former.last)
}
