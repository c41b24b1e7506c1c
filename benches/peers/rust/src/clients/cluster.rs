//! The client for Redis Cluster.

use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;

use super::Way;
use crate::load::{Client, DEADLINE};

/// One connection for the process.
pub async fn client(hosts: Vec<String>, way: Way) -> Cluster {
    let builder = ClusterClientBuilder::new(hosts).response_timeout(way.response_timeout());
    let builder = match way {
        Way::Defaults => builder,
        Way::Tuned => builder.overall_response_timeout(Some(DEADLINE)).min_retry_wait(5),
    };
    let client = builder.build().expect("a client");
    Cluster(client.get_async_connection().await.expect("a connection"))
}

#[derive(Clone)]
pub struct Cluster(ClusterConnection);

impl Client for Cluster {
    type Held = ();

    async fn acquire(&mut self, key: &str) -> Result<(), String> {
        super::set(&mut self.0, key).await
    }

    async fn release(&mut self, key: &str, (): ()) -> Result<(), String> {
        super::delete(&mut self.0, key).await
    }

    async fn close(&self) {}
}
