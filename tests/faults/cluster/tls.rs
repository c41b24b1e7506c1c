//! Clusters whose nodes speak TLS.

use lockable_runtime::LockerBuilder;
use lockable_tests::sections::{SWITCH, is_clean_everywhere};
use lockable_tests::{Cluster, Sections, Tls};

use crate::support::{LIMIT, patient};

#[tokio::test(flavor = "multi_thread")]
async fn locks_of_a_cluster_over_tls_survive_a_failover() {
    let tls = Tls::generate();
    let cluster = Cluster::builder().tls(&tls).start();
    let locker = patient(&cluster.url()).root_certificate(tls.ca_pem());
    survives_a_failover(&cluster, locker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_reaches_every_node() {
    let tls = Tls::generate();
    let cluster = Cluster::builder().mutual_tls(&tls).start();
    let without = patient(&cluster.url()).root_certificate(tls.ca_pem());
    let error = without.clone().connect().await.unwrap_err();
    assert!(error.to_string().contains("client_certificate"), "{error}");
    let client = tls.client();
    let locker = without.client_certificate(client.certificate, client.key);
    survives_a_failover(&cluster, locker).await;
}

/// Locks of every shard, held and waited for. Handshakes take long in a debug build.
async fn survives_a_failover(cluster: &Cluster, builder: LockerBuilder) {
    let builder = builder.command_deadline(LIMIT).connect_deadline(LIMIT);
    let lockers = [builder.clone().connect().await.unwrap(), builder.connect().await.unwrap()];
    let sections = Sections::default();
    let mut held = Vec::new();
    for number in 0..12 {
        let guard = lockers[0].lock(format!("k{number}")).renew().acquire().await.unwrap();
        sections.enter(&guard);
        held.push(guard);
    }
    cluster.fail_over("disLock:k0");
    for guard in held {
        let request = lockers[1].lock(guard.key().as_str().strip_prefix("disLock:").unwrap());
        let waiter = tokio::spawn(request.wait_at_most(SWITCH).acquire());
        assert!(guard.is_held());
        sections.leave(&guard);
        guard.release().await.unwrap();
        let guard = waiter.await.unwrap().unwrap();
        sections.enter(&guard);
        sections.leave(&guard);
        guard.release().await.unwrap();
    }
    sections.assert_sound();
    is_clean_everywhere(cluster).await;
}
