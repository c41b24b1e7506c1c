//! Servers that answer, and refuse.

mod elsewhere;
mod foreign_data;
mod refused_writes;
mod rights;
mod spread_keys;
mod unready;
mod urls;
mod versions;
