//! What happens to servers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lockable_tests::{Admin, Dice, Server};

use crate::nap;
use crate::world::{Servers, World};

pub(super) fn kill_clients(world: &World, kind: &str) -> Duration {
    each(world, |admin| {
        admin.command::<u64>(&["CLIENT", "KILL", "TYPE", kind]);
    });
    LEASE
}

/// Shorter than a silent server of a group may be.
pub(super) fn pause_clients(world: &World, dice: &mut Dice) -> Duration {
    let (length, what) = (dice.millis(50..1_200), dice.pick(&["ALL", "WRITE"]));
    let millis = length.as_millis().to_string();
    each(world, |admin| admin.command(&["CLIENT", "PAUSE", &millis, what]));
    nap(length);
    LEASE
}

pub(super) fn flush_scripts(world: &World) -> Duration {
    each(world, |admin| admin.command(&["SCRIPT", "FLUSH"]));
    Duration::ZERO
}

pub(super) fn run_out_of_memory(world: &World, dice: &mut Dice) -> Duration {
    each(world, |admin| admin.command(&["CONFIG", "SET", "maxmemory", "1"]));
    nap(dice.millis(50..900));
    each(world, |admin| admin.command(&["CONFIG", "SET", "maxmemory", "0"]));
    LEASE
}

pub(super) fn withdraw_right(world: &World, dice: &mut Dice) -> Duration {
    let right = dice.pick(&["set", "evalsha", "publish", "incr"]);
    let set = |sign: &str| {
        let rule = format!("{sign}{right}");
        each(world, |admin| admin.command(&["ACL", "SETUSER", "default", &rule]));
    };
    set("-");
    nap(dice.millis(50..900));
    set("+");
    LEASE
}

pub(super) fn stop(world: &World, dice: &mut Dice) -> Duration {
    let server = alone(world);
    server.pause();
    nap(dice.millis(50..1_800));
    server.resume();
    LEASE
}

pub(super) fn restart_with_data(world: &World, dice: &mut Dice) -> Duration {
    let server = alone(world);
    if !is_logged(server) {
        server.admin().command::<()>(&["SAVE"]);
    }
    restart(server, dice)
}

pub(super) fn restart_without_data(world: &World, dice: &mut Dice) -> Duration {
    let server = alone(world);
    server.admin().flush();
    if !is_logged(server) {
        server.admin().command::<()>(&["SAVE"]);
    }
    restart(server, dice)
}

fn restart(server: &Server, dice: &mut Dice) -> Duration {
    server.kill();
    nap(dice.millis(0..600));
    server.restart();
    LEASE
}

fn is_logged(server: &Server) -> bool {
    server.admin().info("persistence").contains("aof_enabled:1")
}

pub(super) fn set_clock_forward(world: &World, dice: &mut Dice) -> Duration {
    turn(world, millis(dice, 200..3_000));
    LEASE
}

/// What is locked stays so for that much longer.
pub(super) fn set_clock_back(world: &World, dice: &mut Dice) -> Duration {
    let by = dice.millis(50..1_000);
    turn(world, -i64::try_from(by.as_millis()).expect("it is short"));
    LEASE + by
}

pub(super) fn set_clock_to_and_fro(world: &World, dice: &mut Dice) -> Duration {
    for _ in 0..5 {
        let by = millis(dice, 4..2_000);
        turn(world, by);
        nap(dice.millis(5..100));
        turn(world, -by);
        nap(dice.millis(5..100));
    }
    LEASE + Duration::from_secs(2)
}

fn millis(dice: &mut Dice, range: std::ops::Range<u64>) -> i64 {
    i64::try_from(dice.millis(range).as_millis()).expect("it is short")
}

fn turn(world: &World, millis: i64) {
    let offset = world.clock.fetch_add(millis, Ordering::SeqCst) + millis;
    let distance = Duration::from_millis(offset.unsigned_abs());
    if offset < 0 {
        alone(world).set_clock_back(distance);
    } else {
        alone(world).set_clock_forward(distance);
    }
}

fn each(world: &World, strike: impl Fn(&Admin)) {
    world.servers.running().for_each(|server| strike(&server.admin()));
}

fn alone(world: &World) -> &Server {
    match &world.servers {
        Servers::One(server) => server,
        Servers::Sentinels(_) | Servers::Cluster(_) => panic!("there are several servers"),
    }
}

/// The longest one.
const LEASE: Duration = Duration::from_secs(1);
