//! What happens to servers that stand in for each other.

use std::collections::HashMap;
use std::time::Duration;

use lockable_tests::{Cluster, Dice, Sentinels, wait};

use crate::nap;
use crate::world::{LOCKS, Servers, World};

/// The old primary is there all the time.
pub(super) fn fail_over(world: &World, dice: &mut Dice) -> Duration {
    match &world.servers {
        Servers::Sentinels(group) => {
            group.fail_over();
            settle(group);
        }
        Servers::Cluster(cluster) => {
            cluster.fail_over(dice.pick(&LOCKS));
            // An old master that has not heard of it yet would be taken for the next one.
            cluster.wait_until_healthy();
            // A replica takes late votes of the last election for those of its own, and is master for a moment.
            nap(Duration::from_millis(1_500));
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
    let from = cluster.master_of(lock);
    let others: Vec<_> = cluster.masters().filter(|to| to.addr() != from.addr()).collect();
    let places: Vec<usize> = (0..others.len()).collect();
    let slot = lockable_tests::cluster::slot(lock);
    cluster.begin_move(slot, others[dice.pick(&places)]);
    nap(dice.millis(20..400));
    // A key that is there already is one that was made meanwhile: the next time moves it.
    while cluster.end_move(slot).is_err() {
        nap(Duration::from_millis(20));
    }
    LEASE
}

/// It is still a master when it continues, until the others reach it.
pub(super) fn freeze_master(world: &World, dice: &mut Dice) -> Duration {
    let cluster = cluster(world);
    let lock = dice.pick(&LOCKS);
    let master = cluster.master_of(lock);
    master.pause();
    cluster.other_than(lock, master);
    nap(dice.millis(0..500));
    master.resume();
    cluster.wait_until_healthy();
    LEASE
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
