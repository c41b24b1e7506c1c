//! Faults that take a while, and those of servers.

use std::sync::Arc;
use std::time::Duration;

use super::keys::{SLOTS, slot};
use super::life::sleep;
use super::mix::Kind;
use super::news::News;
use super::process::Process;
use super::server::Refusal;
use super::world::World;
use crate::core::process::clock::{Moment, tokio_time};

/// Where nothing else fails, for less time than a renewed lease can lack its renewal.
pub(super) fn refuse(world: &World) {
    let refusal = world.roll(|dice| dice.one_of(&Refusal::ALL));
    let limit = if world.mix.kind == Kind::Refusing { 300 } else { 3_000 };
    world.any_server().refuse_until(soon(world, &[limit]), refusal);
}

/// The replica takes over, without the last writes; the former primary may answer for a moment more, as in a planned
/// failover.
pub(super) fn fail_over(world: &Arc<World>) {
    if std::mem::replace(&mut world.slot_owners().is_failing_over, true) {
        return;
    }
    let world = Arc::clone(world);
    drop(tokio::spawn(async move {
        let former = world.slot_owners().primary();
        let snapshot = world.store(former).snapshot();
        sleep(Duration::from_millis(1) + up_to(&world, 500)).await;
        world.note(|_| format!("s{} takes over", 1 - former));
        world.fail_over(snapshot);
        for process in world.processes() {
            let is_heard_of = world.roll(|dice| dice.chance(900));
            let after = up_to(&world, 800);
            if is_heard_of {
                drop(tokio::spawn(async move {
                    sleep(after).await;
                    process.life().until(tokio_time()).await;
                    process.hears(News::Primary);
                }));
            }
        }
        sleep(up_to(&world, 1_000)).await;
        world.note(|_| format!("s{former} is a replica"));
        world.store(former).flush();
        for process in world.processes() {
            process.hears(News::Left(former));
        }
        world.slot_owners().is_failing_over = false;
    }));
}

pub(super) fn move_slot(world: &Arc<World>) {
    let slot_owner = usize::try_from(world.roll(|dice| dice.below(SLOTS as u64))).unwrap();
    let Some((from, to)) = world.slot_owners().begin_move(slot_owner) else { return };
    let world = Arc::clone(world);
    drop(tokio::spawn(async move {
        world.note(|_| format!("slot {slot_owner} moves from s{from} to s{to}"));
        let mut parts = World::parts(slot_owner);
        while !parts.is_empty() {
            sleep(up_to(&world, 200)).await;
            let next = world.roll(|dice| dice.below(parts.len() as u64));
            let part = parts.swap_remove(usize::try_from(next).unwrap());
            world.note(|_| format!("slot {slot_owner}: {part:?} moves"));
            world.migrate(&part, from, to);
        }
        for part in World::parts(slot_owner) {
            if world.store(from).has(&part) {
                world.violation(|_| format!("{part:?} was made where it had left"));
            }
        }
        world.slot_owners().end_move(slot_owner);
        world.note(|_| format!("slot {slot_owner} is at s{to}"));
        for process in world.processes() {
            let arrives = tokio_time().after(world.message_way());
            drop(tokio::spawn(async move {
                process.life().until(arrives).await;
                process.hears(News::Moved(slot(slot_owner)));
            }));
        }
    }));
}

/// Often zero.
fn up_to(world: &World, millis: u64) -> Duration {
    world.roll(|dice| if dice.chance(300) { Duration::ZERO } else { dice.millis_below(millis) })
}

pub(super) fn soon(world: &World, limits: &[u64]) -> Moment {
    tokio_time().after(world.roll(|dice| {
        let limit = dice.one_of(limits);
        dice.millis_below(limit)
    }))
}

pub(super) fn cut(process: &Process) {
    process.connections().iter().for_each(|open| open.cut());
    process.world.untrack(process.number);
}

/// No message arrives until the process notices that its subscription is broken.
pub(super) async fn deafen(process: Arc<Process>) {
    let set = |is_deaf| process.subscription().is_deaf = is_deaf;
    set(true);
    sleep(process.world.roll(|dice| dice.millis_below(6_000))).await;
    set(false);
    process.broken.notify_one();
}
