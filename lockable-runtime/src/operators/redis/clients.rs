use std::time::{Duration, SystemTime};

use ::redis::{Cmd, FromRedisValue, RedisError, Value};

use super::call::{self, request};
use crate::core::backend::Fault;
use crate::core::naming::client_name::ClientName;
use crate::core::types::error::LockErrorKind;
use crate::operators::contract::LockerConnection;
use crate::redis::fault;
use crate::redis::route::Router;
use crate::redis::topology::server::Server;
use crate::redis::wire::command::{integer, unexpected};
use crate::redis::wire::server::Clock;

/// Our connections at all primaries that answer.
pub(super) async fn clients(router: &Router) -> Result<Vec<LockerConnection>, Fault> {
    let lists = each(router, async |server| {
        let reply = request(server, Cmd::new().arg("CLIENT").arg("LIST")).await?;
        let list = text(reply).map_err(|error| {
            let fault = call::fault(&server.readers().opener, &error);
            // A service that hides them says so in words of its own.
            let kind = if fault::passes(&error) { fault.kind } else { LockErrorKind::Refused };
            Fault { kind, ..fault }
        })?;
        Ok(list.lines().filter_map(client).collect::<Vec<_>>())
    });
    Ok(lists.await?.concat())
}

pub(super) async fn size(router: &Router) -> Result<u64, Fault> {
    let sizes = each(router, async |server| {
        let reply = request(server, Cmd::new().arg("DBSIZE")).await?;
        integer(&reply).map_err(|error| call::fault(&server.readers().opener, &error))
    });
    Ok(sizes.await?.into_iter().fold(0, u64::saturating_add))
}

/// What the primaries reply. A silent one does not hide the others.
async fn each<T>(
    router: &Router,
    asked: impl AsyncFn(&Server) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut answers = Vec::new();
    let mut silent = None;
    for server in router.topology.servers().await? {
        match asked(&server).await {
            Ok(answer) => answers.push(answer),
            Err(fault) if fault.kind == LockErrorKind::Unavailable => silent = Some(fault),
            Err(fault) => return Err(fault),
        }
    }
    silent.filter(|_| answers.is_empty()).map_or(Ok(answers), Err)
}

/// How far the clock of a primary is from that of this machine, at most.
pub(super) async fn clock_difference(router: &Router) -> Result<Duration, Fault> {
    let mut greatest = Duration::ZERO;
    for server in router.topology.servers().await? {
        let sent = SystemTime::now();
        let reply = request(&server, Cmd::new().arg("TIME")).await?.extract_error();
        let read = |time| Clock::of(&time, sent, SystemTime::now()).ok_or_else(unexpected);
        let clock = reply.and_then(read);
        let clock = clock.map_err(|error| call::fault(&server.readers().opener, &error))?;
        greatest = greatest.max(clock.difference());
    }
    Ok(greatest)
}

/// A verbatim text, which has its own type in RESP3.
fn text(reply: Value) -> Result<String, RedisError> {
    match reply.extract_error()? {
        Value::VerbatimString { text, .. } => Ok(text),
        other => Ok(String::from_utf8_lossy(&Vec::from_redis_value(other)?).into_owned()),
    }
}

/// One line of the list; `None` for a connection that is not ours.
fn client(line: &str) -> Option<LockerConnection> {
    let field = |name: &str| {
        let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
        fields.find_map(|(of, value)| (of == name).then_some(value))
    };
    let name = ClientName::parse(field("name")?)?;
    let age = field("age").and_then(|age| age.parse().ok()).unwrap_or_default();
    let address = field("addr").map(ToOwned::to_owned);
    Some(LockerConnection { name, address, age: Duration::from_secs(age) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_connection_of_ours() {
        let line = "id=7 addr=10.0.0.7:4711 laddr=10.0.0.1:6379 fd=8 \
                    name=lockable:0a1b2c:shop@web-3:88 age=12 idle=0 flags=N db=0";
        let found = client(line).unwrap();
        assert_eq!(found.name.service, "shop");
        assert_eq!(found.address.as_deref(), Some("10.0.0.7:4711"));
        assert_eq!(found.age, Duration::from_secs(12));
        assert!(client("id=7 addr=10.0.0.7:4711 name= age=12").is_none());
        assert!(client("").is_none());
    }
}
