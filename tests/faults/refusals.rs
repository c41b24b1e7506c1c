//! Servers that answer, and refuse.

mod data;
mod rights;
mod states;
mod unready;
mod urls;
mod versions;
