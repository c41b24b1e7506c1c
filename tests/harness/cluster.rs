//! A cluster shares its keys, loses masters and moves slots as it should.

use std::time::Duration;

use lockable_tests::cluster::{SLOTS, has_tool, slot};
use lockable_tests::{Admin, Cluster, Server, Tls, wait};

#[test]
fn a_cluster_starts_with_masters_and_their_replicas() {
    let cluster = Cluster::shared();
    let masters: Vec<_> = cluster.first_masters().collect();
    assert_eq!((masters.len(), cluster.servers().count()), (3, 6));
    for master in masters {
        let name = cluster.name_at(master, "started:");
        assert_eq!(cluster.master_of(&name).addr(), master.addr());
        master.admin().set(&name, "value");
        let replica = cluster.replica_of(&name).admin();
        replica.command::<()>(&["READONLY"]);
        wait::until(LIMIT, || replica.get(&name).is_some());
    }
}

#[test]
fn slots_are_those_that_the_servers_compute() {
    let cluster = Cluster::shared();
    let admin = cluster.master_of("any").admin();
    for number in 0..200 {
        for name in [format!("{number}"), format!("a{{{number}}}b"), format!("{{}}{number}")] {
            assert_eq!(slot(&name), admin.command::<u16>(&["CLUSTER", "KEYSLOT", &name]), "{name}");
        }
    }
}

#[test]
fn a_killed_master_is_replaced_by_its_replica() {
    let cluster = Cluster::start();
    let replica = cluster.replica_of("name").addr();
    let before = cluster.kill_master("name");
    assert_eq!(cluster.other_than("name", before).addr(), replica);
    cluster.wait_until_healthy();
    cluster.master_of("name").admin().set("name", "value");
    before.restart();
    cluster.wait_until_healthy();
    assert_eq!(cluster.replica_of("name").addr(), before.addr());
}

#[test]
fn a_failover_replaces_a_master_that_runs() {
    let cluster = Cluster::start();
    for _ in 0..2 {
        let before = cluster.master_of("name");
        assert_ne!(cluster.fail_over("name").addr(), before.addr());
        assert_eq!(cluster.replica_of("name").addr(), before.addr());
    }
}

/// Goal: no one answers for a frozen shard, and it comes back as it was or with the other master.
#[test]
fn a_frozen_shard_comes_back() {
    let cluster = Cluster::start();
    let other = cluster.name_at(cluster.first_masters().last().unwrap(), "name:");
    let name = cluster.name_at(cluster.first_masters().next().unwrap(), "name:");
    let frozen = cluster.freeze_shard(&name);
    assert_eq!(frozen.len(), 2);
    let admin = cluster.master_of(&other).admin();
    let is_down = || admin.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:fail");
    wait::until(LIMIT, is_down);
    frozen.into_iter().for_each(Server::resume);
    cluster.wait_until_healthy();
    cluster.master_of(&name).admin().set(&name, "value");
}

#[test]
fn a_slot_moves_key_by_key() {
    let cluster = Cluster::builder().replicas(1).start();
    let [from, to] = two_masters(&cluster);
    let names = ["", "2", "3"].map(|end| format!("{{{}}}{end}", cluster.name_at(from, "k")));
    let number = slot(&names[0]);
    for name in &names {
        from.admin().set(name, "value");
    }
    cluster.begin_move(number, to);
    assert_eq!(cluster.move_key(&names[0]), Ok(true));
    assert_eq!(cluster.move_key(&names[0]), Ok(false));
    assert_eq!(redirection(from, &names[0]), "ASK");
    assert_eq!(from.admin().get(&names[1]).as_deref(), Some("value"));
    assert_eq!(cluster.master_of(&names[0]).addr(), from.addr());
    cluster.end_move(number).unwrap();
    assert_eq!(redirection(from, &names[2]), "MOVED");
    assert_eq!(to.admin().get(&names[2]).as_deref(), Some("value"));
    assert_eq!(cluster.master_of(&names[0]).addr(), to.addr());
    cluster.wait_until_healthy();
}

/// Goal: a client that writes a key at the target, which the source still has, is found out.
#[test]
fn a_key_at_both_masters_cannot_be_moved() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let [from, to] = two_masters(&cluster);
    let name = cluster.name_at(from, "k");
    from.admin().set(&name, "value");
    cluster.begin_move(slot(&name), to);
    let target = to.admin();
    target.command::<()>(&["ASKING"]);
    target.set(&name, "other");
    let error = cluster.end_move(slot(&name)).unwrap_err();
    assert!(error.to_string().contains("BUSYKEY"), "{error}");
}

#[test]
fn slots_move_in_every_way() {
    // Otherwise a master without slots becomes a replica.
    let builder = Cluster::builder().config("cluster-allow-replica-migration", "no");
    let cluster = builder.replicas(1).start();
    let [from, to] = two_masters(&cluster);
    let name = cluster.name_at(from, "k");
    from.admin().set(&name, "value");
    let (all, here) = (cluster.slots_of(from), cluster.slots_of(to).len());
    // All of them, so that the key is among them.
    cluster.reshard(all.len(), from, to).unwrap();
    assert_eq!(cluster.slots_of(to).len(), here + all.len());
    assert_eq!(to.admin().get(&name).as_deref(), Some("value"));
    cluster.wait_until_healthy();
    cluster.move_at_once(100, to, from).unwrap();
    assert_eq!(cluster.slots_of(from).len(), 100);
    cluster.wait_until_healthy();
    if has_tool() {
        cluster.reshard_by_tool(200, to, from).unwrap();
        assert_eq!(cluster.slots_of(from).len(), 300);
    }
}

#[test]
fn clusters_with_passwords_and_certificates_work_too() {
    let tls = Tls::generate();
    let secret = Cluster::builder().password("one").user("app", "on >word ~* +@all");
    for builder in [secret.clone(), secret.clone().tls(&tls), secret.mutual_tls(&tls)] {
        let cluster = builder.start();
        let master = cluster.fail_over("name");
        Admin::connect(&master.url_with("app", "word", 0)).set("name", "value");
        let to = cluster.servers().find(|server| server.addr() != master.addr());
        let to = cluster.master_of(&cluster.name_at(to.unwrap(), "k"));
        cluster.begin_move(slot("name"), to);
        cluster.end_move(slot("name")).unwrap();
        assert_eq!(to.admin().get("name").as_deref(), Some("value"));
    }
}

#[test]
fn all_slots_have_a_master() {
    let cluster = Cluster::shared();
    let counts = cluster.first_masters().map(|master| cluster.slots_of(master).len());
    assert_eq!(counts.sum::<usize>(), usize::from(SLOTS));
}

fn two_masters(cluster: &Cluster) -> [&Server; 2] {
    let masters: Vec<_> = cluster.first_masters().take(2).collect();
    masters.try_into().unwrap()
}

/// The first word of the error.
fn redirection(server: &Server, name: &str) -> String {
    let error = server.admin().try_command(&["GET", name]).unwrap_err();
    error.code().unwrap_or_default().to_owned()
}

const LIMIT: Duration = Duration::from_secs(20);
