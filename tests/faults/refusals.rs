//! Servers that answer, and refuse.

mod foreign_data;
mod refused_writes;
mod rights;
mod unready;
mod urls;
mod versions;
