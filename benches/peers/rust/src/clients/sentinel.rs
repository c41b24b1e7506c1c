//! The client for Sentinels. It gives connections, which do not come back: after an error the next call gets another one.

use std::sync::Arc;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClient, SentinelServerType};
use tokio::sync::Mutex;

use super::Way;
use crate::load::Client;

/// One connection at a time for the process.
pub fn client(hosts: Vec<String>, name: &str, way: Way) -> Sentinel {
    let client = SentinelClient::build(hosts, name.to_owned(), None, SentinelServerType::Master);
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(way.response_timeout()));
    let shared = Shared { client: client.expect("a client"), config, connection: None, number: 0 };
    Sentinel(Arc::new(Mutex::new(shared)))
}

#[derive(Clone)]
pub struct Sentinel(Arc<Mutex<Shared>>);

struct Shared {
    client: SentinelClient,
    config: AsyncConnectionConfig,
    connection: Option<MultiplexedConnection>,
    /// Of the connection.
    number: usize,
}

impl Sentinel {
    /// The connection that all tasks share, with its number.
    async fn connection(&self) -> Result<(MultiplexedConnection, usize), String> {
        let mut shared = self.0.lock().await;
        let Shared { client, config, connection, number } = &mut *shared;
        if connection.is_none() {
            let opened = client.get_async_connection_with_config(config).await;
            *connection = Some(opened.map_err(super::word)?);
            *number += 1;
        }
        Ok((connection.clone().expect("it was opened"), *number))
    }

    /// Whatever the error was; another task may have replaced the connection already.
    async fn drop_failed<T>(&self, failed: usize, outcome: &Result<T, String>) {
        if outcome.is_err() {
            let mut shared = self.0.lock().await;
            if shared.number == failed {
                shared.connection = None;
            }
        }
    }
}

impl Client for Sentinel {
    type Held = ();

    async fn acquire(&mut self, key: &str) -> Result<(), String> {
        let (mut connection, number) = self.connection().await?;
        let outcome = super::set(&mut connection, key).await;
        self.drop_failed(number, &outcome).await;
        outcome
    }

    async fn release(&mut self, key: &str, (): ()) -> Result<(), String> {
        let (mut connection, number) = self.connection().await?;
        let outcome = super::delete(&mut connection, key).await;
        self.drop_failed(number, &outcome).await;
        outcome
    }

    async fn close(&self) {}
}
