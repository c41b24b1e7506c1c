//! The redis client alone.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;

/// One connection for the process, and a script that the server knows.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) connection: MultiplexedConnection,
}

/// A script by its digest.
#[derive(Clone)]
pub(super) struct Script(Arc<str>);

impl Client {
    /// The client's defaults, but without Nagle's algorithm, which would wait for more to send.
    pub(super) async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = client.get_connection_info().clone().set_tcp_settings(tcp);
        let client = redis::Client::open(info).expect("a client");
        let connection = client.get_multiplexed_async_connection().await.expect("a connection");
        Self { connection }
    }

    pub(super) async fn load(&mut self, script: &str) -> Script {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(script);
        Script(load.query_async::<String>(&mut self.connection).await.expect("it loads").into())
    }

    /// Calls a script with one key.
    pub(super) async fn call(&mut self, script: &Script, key: &str, arguments: &[&str]) -> i64 {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&*script.0).arg(1).arg(key).arg(arguments);
        call.query_async(&mut self.connection).await.expect("an answer")
    }
}

pub(super) const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";
