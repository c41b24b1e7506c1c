//! What happens to one process, and between it and its servers.

use std::time::Duration;

use lockable_tests::{Dice, Proxy};
use rustix::process::Signal;

use crate::nap;
use crate::slot::Slot;
use crate::world::World;

/// For up to three leases.
pub(super) fn stop(world: &World, dice: &mut Dice) -> Duration {
    let slot = slot(world, dice);
    slot.signal(Signal::STOP);
    let is_long = dice.is_one_of(3);
    nap(dice.millis(if is_long { 1_000..2_000 } else { 20..400 }));
    slot.signal(Signal::CONT);
    Duration::ZERO
}

/// Its locks end with their leases.
pub(super) fn kill(world: &World, dice: &mut Dice) -> Duration {
    slot(world, dice).replace(&world.record);
    LEASE
}

pub(super) fn cut(world: &World, dice: &mut Dice) -> Duration {
    each_stub_node(world, dice, Proxy::cut);
    LEASE
}

pub(super) fn cut_in_reply(world: &World, dice: &mut Dice) -> Duration {
    each_stub_node(world, dice, Proxy::cut_off);
    LEASE
}

pub(super) fn hold_requests(world: &World, dice: &mut Dice) -> Duration {
    during(world, dice, Proxy::hold_requests, Proxy::release_requests)
}

pub(super) fn hold_replies(world: &World, dice: &mut Dice) -> Duration {
    during(world, dice, Proxy::hold_replies, Proxy::release_replies)
}

pub(super) fn hold_messages(world: &World, dice: &mut Dice) -> Duration {
    during(world, dice, Proxy::hold_messages, Proxy::release_messages)
}

pub(super) fn delay(world: &World, dice: &mut Dice) -> Duration {
    let latency = dice.millis(1..300);
    during(
        world,
        dice,
        |stub_node| stub_node.delay(latency),
        |stub_node| stub_node.delay(Duration::ZERO),
    )
}

fn during(
    world: &World,
    dice: &mut Dice,
    begin: impl Fn(&Proxy),
    end: impl Fn(&Proxy),
) -> Duration {
    let stub_nodes = stub_nodes(world, dice);
    for stub_node in &stub_nodes {
        begin(stub_node);
    }
    let is_long = dice.is_one_of(4);
    nap(dice.millis(if is_long { 800..1_800 } else { 20..400 }));
    for stub_node in &stub_nodes {
        end(stub_node);
    }
    LEASE
}

fn each_stub_node(world: &World, dice: &mut Dice, strike: impl Fn(&Proxy)) {
    stub_nodes(world, dice).into_iter().for_each(strike);
}

/// All ways of a process, or one of those that it uses.
fn stub_nodes<'a>(world: &'a World, dice: &mut Dice) -> Vec<&'a Proxy> {
    let slot = slot(world, dice);
    let used: Vec<_> = slot.stub_nodes().iter().filter(|stub_node| stub_node.open() > 0).collect();
    let is_one = dice.is_one_of(2) && !used.is_empty();
    if is_one { vec![dice.pick(&used)] } else { slot.stub_nodes().iter().collect() }
}

fn slot<'a>(world: &'a World, dice: &mut Dice) -> &'a Slot {
    let places: Vec<usize> = (0..world.slots.len()).collect();
    &world.slots[dice.pick(&places)]
}

/// The longest one.
const LEASE: Duration = Duration::from_secs(1);
