//! Clusters whose nodes speak TLS.

use lockable_runtime::{LockerBuilder, Pem};
use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::{Cluster, Tls};

use crate::support::{LIMIT, LONG, ample};

#[tokio::test(flavor = "multi_thread")]
async fn locks_of_a_cluster_over_tls_survive_a_failover() {
    let tls = Tls::generate();
    let cluster = Cluster::builder().tls(&tls).start();
    let locker = ample(&cluster.url()).root_certificate(tls.roots());
    survives_a_failover(&cluster, locker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_reaches_every_node() {
    let tls = Tls::generate();
    let cluster = Cluster::builder().mutual_tls(&tls).start();
    let without = ample(&cluster.url()).root_certificate(tls.roots());
    let error = without.clone().connect().await.unwrap_err();
    assert!(error.to_string().contains("client_certificate"), "{error}");
    let client = tls.client();
    let locker = without.client_certificate(Pem::from(client));
    survives_a_failover(&cluster, locker).await;
}

/// Locks of every shard, held and waited for.
async fn survives_a_failover(cluster: &Cluster, builder: LockerBuilder) {
    cluster.set_node_timeout(LIMIT);
    let builder = builder.command_deadline(LONG).connect_deadline(LONG);
    let lockers = [builder.clone().connect().await.unwrap(), builder.connect().await.unwrap()];
    let mut held = Vec::new();
    for number in 0..12 {
        held.push(lockers[0].lock(format!("k{number}")).renew().acquire().await.unwrap());
    }
    cluster.fail_over("disLock:k0");
    for guard in held {
        let request =
            lockers[1].lock(guard.lease().key().as_str().strip_prefix("disLock:").unwrap());
        let waiter = tokio::spawn(request.wait(LONG).acquire());
        assert!(guard.lease().is_held());
        guard.release().await.unwrap();
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    is_clean_everywhere(cluster).await;
}
