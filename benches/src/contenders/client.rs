//! The redis client alone.

use std::fmt;
use std::sync::Arc;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use super::DEADLINE;

/// One connection for the process.
#[derive(Clone)]
pub struct Client {
    /// For commands other than scripts.
    pub connection: MultiplexedConnection,
}

/// A script that the server knows, by its digest.
#[derive(Debug, Clone)]
pub struct Script(Arc<str>);

impl Client {
    /// The client's defaults, but without Nagle's algorithm, which would wait for more to send, and with
    /// longer deadlines.
    pub async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = client.get_connection_info().clone().set_tcp_settings(tcp);
        let client = redis::Client::open(info).expect("a client");
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(DEADLINE))
            .set_response_timeout(Some(DEADLINE));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.expect("a connection");
        Self { connection }
    }

    /// Has the server know a script.
    pub async fn load(&mut self, script: &str) -> Script {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(script);
        Script(load.query_async::<String>(&mut self.connection).await.expect("it loads").into())
    }

    /// Calls a script.
    pub async fn call(&mut self, script: &Script, keys: &[&str], arguments: &[&str]) -> i64 {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&*script.0).arg(keys.len()).arg(keys).arg(arguments);
        call.query_async(&mut self.connection).await.expect("an answer")
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}
