use ::redis::{FromRedisValue, Value};

use super::endpoint::Endpoint;

/// The primaries that a Sentinel watches; none for another server, or without the right.
pub(crate) fn watched(role: &Value) -> Vec<String> {
    let role = <(String, Vec<String>)>::from_redis_value_ref(role);
    role.map(|(_, names)| names).unwrap_or_default()
}

/// The primary of a replica; `None` for another server, or without the right.
pub(crate) fn primary(role: &Value) -> Option<Endpoint> {
    let role = <(String, String, u16, String, i64)>::from_redis_value_ref(role);
    role.ok().map(|(_, host, port, ..)| Endpoint { host, port })
}
