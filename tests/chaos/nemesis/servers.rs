//! What happens to servers.

use std::time::Duration;

use lockable_tests::{Admin, Dice, Proxy, Server, wait};

use super::Effect;
use crate::address::Address;
use crate::nap;
use crate::slot::Slot;
use crate::world::{Servers, World, time};

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
    let server = address(world).primary();
    server.pause();
    nap(dice.millis(50..1_800));
    server.resume();
    LEASE
}

pub(super) fn restart_with_data(world: &World, dice: &mut Dice) -> Duration {
    let address = address(world);
    if !is_logged(address.primary()) {
        // What is written from here on is lost.
        address.catch_up();
        save(address.primary());
    }
    restart(address.primary(), dice)
}

/// A replica may have begun to fetch all data.
fn save(server: &Server) {
    let admin = server.admin();
    wait::until(PATIENCE, || admin.try_command(&["SAVE"]).is_ok());
}

pub(super) fn restart_without_data(world: &World, dice: &mut Dice) -> Duration {
    let address = address(world);
    address.catch_up();
    address.primary().admin().flush();
    if !is_logged(address.primary()) {
        save(address.primary());
    }
    restart(address.primary(), dice)
}

fn restart(server: &Server, dice: &mut Dice) -> Duration {
    server.kill();
    nap(dice.millis(0..600));
    server.restart();
    // It answers some commands before it has read its file.
    let is_ready = |server: &Server| {
        server.admin().info("persistence").lines().any(|line| line == "loading:0")
    };
    wait::until(LIMIT, || is_ready(server));
    LEASE
}

/// The other server, whose clock is ahead a little, gets the messages of all first, and then the commands of all: nothing
/// is lost. Some processes are far away by then, so that what the others do comes before the first answer that they get.
pub(super) fn fail_over(world: &World, dice: &mut Dice) -> Effect {
    let address = address(world);
    let (old, new) = (address.primary(), address.standby());
    let (old_admin, new_admin) = (old.admin(), new.admin());
    wait::until(LIMIT, || new_admin.info("replication").contains("master_link_status:up"));
    // With clocks further apart, no grant could seem to be one that an answer of the other server dates.
    address.catch_up();
    address.advance_standby(dice.millis(50..150));
    stub_nodes(world).for_each(|stub_node| stub_node.redirect(new));
    old_admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    // A subscription is opened again after a pause.
    nap(dice.millis(150..300));
    let latency = dice.millis(150..300);
    let mut far: Vec<_> = stub_nodes(world).collect();
    dice.shuffle(&mut far);
    far.truncate(far.len() / 2);
    for stub_node in &far {
        stub_node.delay(latency);
    }
    old_admin.wait_for_replica();
    new_admin.promote();
    demote(&old_admin, new);
    let lost = time(new);
    address.swap();
    nap(dice.millis(400..800));
    for stub_node in &far {
        stub_node.delay(Duration::ZERO);
    }
    Effect { felt: LEASE, lost: Some(lost) }
}

/// No client finds a replica where its primary was.
fn demote(old: &Admin, new: &Server) {
    let (host, port) = (new.addr().ip().to_string(), new.addr().port().to_string());
    old.command::<()>(&["MULTI"]);
    for words in [&["CLIENT", "KILL", "TYPE", "normal"][..], &["REPLICAOF", &host, &port]] {
        old.command::<()>(words);
    }
    old.command::<()>(&["EXEC"]);
}

pub(super) fn stub_nodes(world: &World) -> impl Iterator<Item = &Proxy> {
    world.slots.iter().flat_map(Slot::stub_nodes)
}

fn is_logged(server: &Server) -> bool {
    server.admin().info("persistence").contains("aof_enabled:1")
}

pub(super) fn set_clock_forward(world: &World, dice: &mut Dice) -> Duration {
    address(world).step_clock(millis(dice, 200..3_000));
    LEASE
}

/// What is locked stays so for that much longer.
pub(super) fn set_clock_back(world: &World, dice: &mut Dice) -> Duration {
    let by = millis(dice, 50..1_000);
    address(world).step_clock(-by);
    LEASE + Duration::from_millis(by.unsigned_abs())
}

pub(super) fn set_clock_to_and_fro(world: &World, dice: &mut Dice) -> Duration {
    let address = address(world);
    for _ in 0..5 {
        let by = millis(dice, 4..2_000);
        address.step_clock(by);
        nap(dice.millis(5..100));
        address.step_clock(-by);
        nap(dice.millis(5..100));
    }
    LEASE + Duration::from_secs(2)
}

fn millis(dice: &mut Dice, range: std::ops::Range<u64>) -> i64 {
    i64::try_from(dice.millis(range).as_millis()).expect("it is short")
}

fn each(world: &World, strike: impl Fn(&Admin)) {
    world.servers.running().for_each(|server| strike(&server.admin()));
}

fn address(world: &World) -> &Address {
    match &world.servers {
        Servers::One(address) => address,
        Servers::Sentinels(_) | Servers::Cluster(_) => panic!("there are several addresses"),
    }
}

/// The longest one.
const LEASE: Duration = Duration::from_secs(1);

/// Far more than a replica takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Longer than a replica takes to fetch all data.
const PATIENCE: Duration = Duration::from_secs(10);
