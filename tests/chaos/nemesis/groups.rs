//! What happens to servers that stand in for each other.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Dice, Sentinels, Server, wait};

use super::Effect;
use super::servers::stub_nodes;
use crate::nap;
use crate::record::boot_time;
use crate::world::{LOCKS, Servers, World, quiet_lock, time};

/// The old primary is there all the time.
pub(super) fn fail_over(world: &World) -> Duration {
    match &world.servers {
        Servers::Sentinels(group) => {
            group.fail_over();
            settle(group);
        }
        Servers::Cluster(cluster) => {
            cluster.fail_over(&next_shard(world, cluster));
            // An old master that has not heard of it yet would be taken for the next one.
            cluster.wait_until_healthy();
            world.elected.store(boot_time(), Ordering::SeqCst);
        }
        Servers::One(_) => panic!("there is one server"),
    }
    LEASE
}

/// The primary grants what no replica hears of, and dies.
pub(super) fn lose_primary(world: &World, dice: &mut Dice) -> Duration {
    let group = sentinels(world);
    let primary = group.primary();
    group.pause_replicas();
    nap(dice.millis(20..600));
    primary.kill();
    group.resume_replicas();
    if !dice.is_one_of(4) {
        // Otherwise they find out by themselves, which takes its time.
        group.start_failover();
    }
    let next = group.other_than(primary);
    primary.restart();
    // The Sentinels would do so seconds later, and until then there would be two.
    primary.admin().follow(next.addr());
    settle(group);
    LEASE
}

/// Waits until the Sentinels could begin another failover.
fn settle(group: &Sentinels) {
    let is_fit = |replica: &HashMap<String, String>| {
        replica["flags"] == "slave" && replica["master-link-status"] == "ok"
    };
    let words = ["SENTINEL", "REPLICAS", Sentinels::NAME];
    wait::until(LIMIT, || {
        group.sentinels().iter().all(|sentinel| {
            let replicas: Vec<HashMap<String, String>> = sentinel.admin().command(&words);
            replicas.iter().filter(|replica| is_fit(replica)).count() + 1 == group.servers().len()
        })
    });
}

pub(super) fn move_slots(world: &World, dice: &mut Dice) -> Duration {
    let cluster = cluster(world);
    let lock = dice.pick(&LOCKS);
    let to = another_master(cluster, cluster.master_of(lock), dice);
    move_slot(cluster, lock, to, dice);
    LEASE
}

fn move_slot(cluster: &Cluster, lock: &str, to: &Server, dice: &mut Dice) {
    let slot = slot(lock);
    cluster.begin_move(slot, to);
    nap(dice.millis(20..400));
    end_move(cluster, slot);
}

/// A key that is there already is one that was made meanwhile: the next time moves it.
fn end_move(cluster: &Cluster, slot: u16) {
    wait::until(LIMIT, || cluster.end_move(slot).is_ok());
}

fn another_master<'a>(cluster: &'a Cluster, from: &Server, dice: &mut Dice) -> &'a Server {
    let others: Vec<_> = cluster.masters().filter(|to| to.addr() != from.addr()).collect();
    dice.pick(&others)
}

/// A master joins, has the slots of two locks for a while, and leaves.
pub(super) fn add_node(world: &World, dice: &mut Dice) -> Duration {
    let cluster = cluster(world);
    let added = cluster.join();
    // Locks of one slot move together.
    let mut locks = [dice.pick(&LOCKS[..2]), dice.pick(&LOCKS[2..])];
    dice.shuffle(&mut locks);
    let former = locks.map(|lock| cluster.master_of(lock));
    for lock in locks {
        move_slot(cluster, lock, added, dice);
    }
    nap(dice.millis(0..400));
    for (lock, former) in locks.into_iter().zip(former) {
        move_slot(cluster, lock, former, dice);
    }
    cluster.leave(added);
    LEASE
}

/// A master fails over while one of its slots moves. Before Valkey 9, its replica does not know of the move, and has the
/// whole slot, without the locks that are elsewhere already.
pub(super) fn fail_over_in_move(world: &World, dice: &mut Dice) -> Effect {
    let cluster = cluster(world);
    // Most often one that is free where it was, so that calls acquire it.
    let lock = if dice.is_one_of(4) { dice.pick(&LOCKS) } else { quiet_lock() };
    let to = another_master(cluster, cluster.master_of(lock), dice);
    cluster.begin_move(slot(lock), to);
    // A call has sent half of its commands when the master is another one.
    let latency = dice.millis(20..60);
    stub_nodes(world).for_each(|stub_node| stub_node.delay(latency));
    nap(dice.millis(400..700));
    let new = cluster.take_over(lock);
    let lost = time(new);
    nap(dice.millis(200..600));
    stub_nodes(world).for_each(|stub_node| stub_node.delay(Duration::ZERO));
    if !cluster.forget_move(slot(lock), new, to) {
        cluster.wait_until_healthy();
        end_move(cluster, slot(lock));
    }
    cluster.wait_until_healthy();
    Effect { felt: LEASE, lost: Some(lost) }
}

/// The operator gives a move up, and deletes the locks that are elsewhere already.
///
/// Calls that have sent the first half of their commands send the second one when that is done: commands take their time,
/// and those that write have to wait at the master of the slot.
pub(super) fn give_up_move(world: &World, dice: &mut Dice) -> Effect {
    let cluster = cluster(world);
    let master = cluster.master_of(quiet_lock());
    let (admin, to) = (master.admin(), another_master(cluster, master, dice));
    let latency = dice.millis(10..30);
    stub_nodes(world).for_each(|stub_node| stub_node.delay(latency));
    cluster.begin_move(slot(quiet_lock()), to);
    nap(latency * 8);
    admin.command::<()>(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    // Two answers, and the way there.
    nap(latency * 5);
    let lost = time(master);
    cluster.give_up_move(slot(quiet_lock()));
    stub_nodes(world).for_each(|stub_node| stub_node.delay(Duration::ZERO));
    Effect { felt: LEASE, lost: Some(lost) }
}

/// It is still a master when it continues, until the others reach it.
pub(super) fn freeze_master(world: &World, dice: &mut Dice) -> Duration {
    let cluster = cluster(world);
    let name = next_shard(world, cluster);
    let master = cluster.master_of(&name);
    master.pause();
    cluster.other_than(&name, master);
    nap(dice.millis(0..500));
    master.resume();
    cluster.wait_until_healthy();
    world.elected.store(boot_time(), Ordering::SeqCst);
    LEASE
}

/// The name of a key there. Each shard has its turn: a replica that was elected seconds ago and is to be promoted again
/// counts the votes of then, and is the master for a moment only.
fn next_shard(world: &World, cluster: &Cluster) -> String {
    let since = boot_time() - world.elected.load(Ordering::SeqCst);
    nap(BETWEEN_ELECTIONS.saturating_sub(Duration::from_nanos(since)));
    let shards = cluster.first_masters().count();
    let shard = world.turns.fetch_add(1, Ordering::SeqCst) % shards;
    let nodes = cluster.servers().skip(shard).step_by(shards);
    let is_master = |server: &&Server| server.admin().info("replication").contains("role:master");
    let master = nodes.filter(|server| server.is_running()).find(is_master);
    cluster.name_at(master.expect("the cluster is healthy"), "chaos:")
}

fn sentinels(world: &World) -> &Sentinels {
    match &world.servers {
        Servers::Sentinels(group) => group,
        Servers::One(_) | Servers::Cluster(_) => panic!("there are no Sentinels"),
    }
}

fn cluster(world: &World) -> &Cluster {
    match &world.servers {
        Servers::Cluster(cluster) => cluster,
        Servers::One(_) | Servers::Sentinels(_) => panic!("there is no cluster"),
    }
}

/// The longest one.
const LEASE: Duration = Duration::from_secs(1);

/// Far more than a group takes.
const LIMIT: Duration = Duration::from_secs(60);

/// So that the turns of one shard are further apart than twice the timeout of the nodes.
const BETWEEN_ELECTIONS: Duration = Duration::from_millis(1_500);
