//! What must be true at every moment, and what must be possible.

use stateright::Property;

use crate::queue::process::Process;
use crate::queue::state::State;
use crate::queue::world::World;

pub(crate) const EXCLUSION: &str = "one body runs at a time";

pub(crate) const HELD: &str = "the server has the lock for each body that runs";

pub(crate) const RISING: &str = "tokens rise from holder to holder";

/// So none of them is another's.
pub(crate) const RESERVED: &str = "each token is reserved";

pub(crate) const ONCE: &str = "each attempt is in the queue once";

/// A try may overtake after the end of a lease, or if the first waiters are gone.
pub(crate) const FIFO: &str = "no attempt is given a lock before one that waits in front of it";

pub(crate) const OVERTAKEN: &str = "a try overtakes only after the end of a lease";

pub(crate) const HEARD: &str = "no lock is handed off to a process that does not listen";

/// Also where a request has landed after it was given up, but no message was lost.
pub(crate) const TAKEN: &str = "a lock that is handed off has a call";

/// Where each request is answered.
pub(crate) const OWNED: &str = "each lock has a call";

/// Where each request is answered. A place without a call costs a grant in vain.
pub(crate) const WANTED: &str = "each place has a call";

/// Where each request is answered and no lease ends: a waiter is there that need not ask twice.
pub(crate) const SERVED: &str = "each waiter is in the queue of a lock that is held";

/// Where each request is answered and no lease ends.
pub(crate) const FOUND: &str = "each release finds its lock";

pub(crate) const ALWAYS: [&str; 13] = [
    EXCLUSION, HELD, RISING, RESERVED, ONCE, FIFO, OVERTAKEN, HEARD, TAKEN, OWNED, WANTED, SERVED,
    FOUND,
];

pub(crate) const ALL_SERVED: &str = "all calls are served";
pub(crate) const HANDED_OFF: &str = "a lock is handed off";
pub(crate) const PASSED: &str = "a turn is passed on";
pub(crate) const CLAIMED: &str = "a lock is claimed";
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
            state.running().all(|hold| state.server.has(hold.owner))
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
            !state.server.was_overtaken || state.left.expiries < world.budget.expiries
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
        Property::always(TAKEN, |world, state: &State| {
            let lock = state.server.lock.filter(|lock| lock.is_published && is_calm(state));
            let is_heard = state.left.losses == world.budget.losses;
            lock.is_none_or(|lock| {
                !is_heard || !state.server.listens(lock.owner.process) || state.is_known(lock.owner)
            })
        }),
        Property::always(OWNED, |world, state: &State| {
            let lock = state.server.lock.filter(|_| is_calm(state) && is_answered(world, state));
            lock.is_none_or(|lock| state.is_known(lock.owner))
        }),
        Property::always(WANTED, |world, state: &State| {
            let is_asked = is_calm(state) && is_answered(world, state);
            !is_asked || state.server.queue.iter().all(|owner| state.is_known(*owner))
        }),
        Property::always(SERVED, |world, state: &State| {
            let is_asked = is_calm(state) && is_answered(world, state) && !has_ended(world, state);
            !is_asked
                || state.processes.iter().filter_map(|process| process.place).all(|place| {
                    state.server.lock.is_some() && state.server.queue.contains(&place.owner)
                })
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
            is_calm(state)
                && is_free
                && state.left == world.budget
                && state.processes.iter().all(is_over)
        }),
        Property::sometimes(HANDED_OFF, |_, state: &State| {
            state.running().any(|hold| hold.has_turn)
        }),
        Property::sometimes(PASSED, |_, state: &State| {
            let turns = state.processes.iter().filter_map(|process| process.turn);
            turns.into_iter().any(|turn| turn.passes > 0)
        }),
        Property::sometimes(CLAIMED, |_, state: &State| {
            state.processes.iter().any(|process| process.claims)
        }),
        Property::sometimes(NEWCOMER, |_, state: &State| state.server.was_overtaken),
    ]
}

fn is_calm(state: &State) -> bool {
    state.net.is_empty()
}

/// Whether each request was answered, if perhaps late, and no process has died.
fn is_answered(world: &World, state: &State) -> bool {
    let (all, left) = (world.budget, state.left);
    (left.losses, left.delays, left.kills) == (all.losses, all.delays, all.kills)
}

fn has_ended(world: &World, state: &State) -> bool {
    state.left.expiries < world.budget.expiries
}
