//! What must be true at every moment, and what must be possible.

use stateright::Property;

use crate::queue::process::{Place, Process};
use crate::queue::state::State;
use crate::queue::world::World;

pub(crate) const EXCLUSION: &str = "one body runs at a time";

/// A lock that is only kept may end before the lease.
pub(crate) const HELD: &str =
    "the server has the lock for each body that runs, for its whole lease";

pub(crate) const RISING: &str = "tokens rise from holder to holder";

/// So none of them is another's.
pub(crate) const RESERVED: &str = "each token is reserved";

pub(crate) const ONCE: &str = "each attempt is in the queue once";

/// A try may overtake after the end of a lease, or if the first waiters are gone.
pub(crate) const FIFO: &str = "no attempt is given a lock before one that waits in front of it";

pub(crate) const OVERTAKEN: &str = "a try overtakes only after the end of a lease";

pub(crate) const HEARD: &str = "no lock is reserved for a process that does not listen";

/// Where each request is answered. A lock that is kept has one too: a place that asks, or a turn at whose end the attempt
/// leaves.
pub(crate) const OWNED: &str = "each lock has a call";

/// Where each request is answered. A place without a call costs a wake-up in vain.
pub(crate) const WANTED: &str = "each place has a call";

/// Where each request is answered, no lease ends and no wake-up is forged: a waiter is there that need not ask twice.
///
/// Otherwise the lock may be reserved for it after the query of an earlier wake-up has found it taken, and before that is
/// answered. Then no query follows from its wake-up: the line asks by itself later, or the kept lock lapses.
pub(crate) const SERVED: &str = "each waiter is in the queue of a lock that is held";

/// Where each request is answered and no lease ends.
pub(crate) const FOUND: &str = "each release finds its lock";

pub(crate) const ALWAYS: [&str; 12] =
    [EXCLUSION, HELD, RISING, RESERVED, ONCE, FIFO, OVERTAKEN, HEARD, OWNED, WANTED, SERVED, FOUND];

pub(crate) const ALL_SERVED: &str = "all calls are served";
pub(crate) const HANDED_OFF: &str = "a lock is handed off";
pub(crate) const PASSED: &str = "a turn is passed on";
pub(crate) const NEWCOMER: &str = "a try overtakes";

pub(crate) fn all() -> Vec<Property<World>> {
    let mut all = moments();
    all.extend(calm());
    all.extend(possible());
    all
}

fn moments() -> Vec<Property<World>> {
    vec![
        Property::always(EXCLUSION, |_, state: &State| state.running().count() <= 1),
        Property::always(HELD, |_, state: &State| {
            let lock = state.server.lock.filter(|lock| !lock.is_kept);
            state.running().all(|hold| lock.is_some_and(|lock| lock.owner == hold.owner))
        }),
        Property::always(RISING, |_, state: &State| !state.went_back),
        Property::always(RESERVED, |_, state: &State| {
            state.running().all(|hold| hold.fence <= state.server.fence)
        }),
        Property::always(ONCE, |_, state: &State| {
            let queue = &state.server.queue;
            queue.iter().enumerate().all(|(place, owner)| !queue[..place].contains(owner))
        }),
        Property::always(FIFO, |_, state: &State| !state.server.was_unfair),
        Property::always(OVERTAKEN, |world, state: &State| {
            !state.server.was_overtaken || has_ended(world, state)
        }),
        Property::always(HEARD, |_, state: &State| !state.server.was_unheard),
        Property::always(FOUND, |world, state: &State| {
            !state.was_gone || !is_answered(world, state) || has_ended(world, state)
        }),
    ]
}

/// When nothing is under way.
fn calm() -> Vec<Property<World>> {
    vec![
        Property::always(OWNED, |world, state: &State| {
            let lock = state.server.lock.filter(|_| is_calm(world, state));
            lock.is_none_or(|lock| {
                let p = &state.processes[usize::from(lock.owner.process)];
                state.is_known(lock.owner)
                    && !(lock.is_kept && p.place.is_some_and(|place| place.owner == lock.owner))
            })
        }),
        Property::always(WANTED, |world, state: &State| {
            let mut queue = state.server.queue.iter();
            !is_calm(world, state) || queue.all(|owner| state.is_known(*owner))
        }),
        Property::always(SERVED, |world, state: &State| {
            let mut places = state.processes.iter().filter_map(|process| process.place);
            let is_queued = |place: Place| state.server.queue.contains(&place.owner);
            !is_calm(world, state)
                || has_ended(world, state)
                || places.all(|place| state.server.lock.is_some() && is_queued(place))
        }),
    ]
}

fn possible() -> Vec<Property<World>> {
    vec![
        Property::sometimes(ALL_SERVED, |world, state: &State| {
            let is_over = |process: &Process| {
                process.calls + process.waiting == 0 && process.holds.is_empty()
            };
            let is_free = state.server.lock.is_none() && state.server.queue.is_empty();
            let is_calm = is_free && is_calm(world, state) && state.left == world.budget;
            is_calm && state.processes.iter().all(is_over)
        }),
        Property::sometimes(HANDED_OFF, |_, state: &State| {
            state.running().any(|hold| hold.has_turn)
        }),
        Property::sometimes(PASSED, |_, state: &State| {
            let mut turns = state.processes.iter().filter_map(|process| process.turn);
            turns.any(|turn| turn.passes > 0)
        }),
        Property::sometimes(NEWCOMER, |_, state: &State| state.server.was_overtaken),
    ]
}

fn is_calm(world: &World, state: &State) -> bool {
    state.net.is_empty() && is_answered(world, state)
}

/// Whether each request of a process that lives was answered, if perhaps late.
fn is_answered(world: &World, state: &State) -> bool {
    let (all, left) = (world.budget, state.left);
    (left.losses, left.delays) == (all.losses, all.delays)
}

fn has_ended(world: &World, state: &State) -> bool {
    state.left.expiries < world.budget.expiries
}
