//! Visits of all states of a model.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// Visits all states, and prints how many there are.
pub(crate) fn visit<S: State, A: Action, W: World<S, A>>(model: W) -> impl Checker<W> {
    let found = model.checker().spawn_bfs().join();
    println!("{} states", found.unique_state_count());
    found
}

/// Whether there is an order of events after which the property is false.
pub(crate) fn breaks<S: State, A: Action>(model: impl World<S, A>, property: &'static str) -> bool {
    let until = HasDiscoveries::AnyOf([property].into());
    let found = model.checker().finish_when(until).spawn_bfs().join();
    found.discovery(property).is_some()
}

// What the checker needs.
pub(crate) trait State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static {}
pub(crate) trait Action: Clone + Debug + PartialEq {}
pub(crate) trait World<S, A>: Model<State = S, Action = A> + Send + Sync + 'static {}

impl<T: Clone + Debug + PartialEq + Hash + Send + Sync + 'static> State for T {}
impl<T: Clone + Debug + PartialEq> Action for T {}
impl<T: Model + Send + Sync + 'static> World<T::State, T::Action> for T {}
