//! Commands that look at locks, each with a limit of its own.

use ::redis::{Cmd, RedisError, Value};

use crate::core::backend::Fault;
use crate::redis::connect::opener::Opener;
use crate::redis::fault;
use crate::redis::topology::server::Server;
use crate::redis::wire::command::pipeline;
use crate::redis::wire::connection::Connection;

/// Sends the commands in one go. A connection that does not reply in time is retired.
pub(super) async fn call(
    connection: &Connection,
    commands: impl IntoIterator<Item = Cmd>,
) -> Result<Vec<Value>, Fault> {
    let replies = connection.call_in_time(&pipeline(commands)).await;
    replies.inspect_err(|_| connection.retire())
}

pub(super) async fn request(server: &Server, command: &Cmd) -> Result<Value, Fault> {
    let connection = server.readers().ready().await?;
    call(&connection, [command.clone()]).await.map(first)
}

pub(super) fn fault(opener: &Opener, error: &RedisError) -> Fault {
    fault::About::Looking(opener.channels).fault(&opener.server, error)
}

pub(super) fn first(replies: Vec<Value>) -> Value {
    replies.into_iter().next().unwrap_or(Value::Nil)
}
