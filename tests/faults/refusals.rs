//! Servers that answer, and refuse.

mod data;
mod rights;
mod states;
mod urls;
mod versions;
