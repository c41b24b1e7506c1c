//! What servers answer to `ROLE`.

use ::redis::{FromRedisValue, Value};

use super::endpoint::Endpoint;

/// The names of the primaries that a Sentinel watches; none of another server, or where the user may not ask.
pub(crate) fn watched(role: &Value) -> Vec<String> {
    let role = <(String, Vec<String>)>::from_redis_value_ref(role);
    role.map(|(_, names)| names).unwrap_or_default()
}

/// The primary of a replica; none of another server, or where the user may not ask.
pub(crate) fn primary(role: &Value) -> Option<Endpoint> {
    let role = <(String, String, u16, String, i64)>::from_redis_value_ref(role);
    role.ok().map(|(_, host, port, ..)| Endpoint { host, port })
}
