//! Visits of all states of a model.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model, UniformChooser};

/// Visits all states, and prints how many there are.
pub(crate) fn visit<S: State, A: Action, W: World<S, A>>(model: W) -> impl Checker<W> {
    let found = model.checker().spawn_bfs().join();
    println!("{} states", found.unique_state_count());
    found
}

/// Visits the states after the fewest events, until this many were generated or one breaks a property, and prints how
/// many differ.
pub(crate) fn visit_first<S: State, A: Action, W: World<S, A>>(
    model: W,
    limit: usize,
) -> impl Checker<W> {
    let checker = model.checker().threads(2).target_state_count(limit);
    let found = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, different) = (found.state_count(), found.unique_state_count());
    println!(
        "{states} states, {different} of them different, after up to {} events",
        found.max_depth()
    );
    found
}

/// Draws orders of events, each to its end, until this many states were generated.
pub(crate) fn walk<S: State, A: Action, W: World<S, A>>(model: W, limit: usize) -> impl Checker<W> {
    let found = model.checker().target_state_count(limit);
    let found = found.spawn_simulation(1, UniformChooser).join();
    println!("{} states, after up to {} events", found.state_count(), found.max_depth());
    found
}

/// Whether there is an order of events after which the property is false.
pub(crate) fn breaks<S: State, A: Action>(model: impl World<S, A>, property: &'static str) -> bool {
    let until = HasDiscoveries::AnyOf([property].into());
    let found = model.checker().finish_when(until).spawn_bfs().join();
    found.discovery(property).is_some()
}

/// Whether there is an order of events after which this is true.
pub(crate) fn reaches<S: State, A: Action>(
    model: impl World<S, A>,
    possible: &'static str,
) -> bool {
    breaks(model, possible)
}

// What the checker needs.
pub(crate) trait State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static {}
pub(crate) trait Action: Clone + Debug + PartialEq {}
pub(crate) trait World<S, A>: Model<State = S, Action = A> + Send + Sync + 'static {}

impl<T: Clone + Debug + PartialEq + Hash + Send + Sync + 'static> State for T {}
impl<T: Clone + Debug + PartialEq> Action for T {}
impl<T: Model + Send + Sync + 'static> World<T::State, T::Action> for T {}
