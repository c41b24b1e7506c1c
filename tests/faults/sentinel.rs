//! Locks over failovers of a server that Sentinels watch, and over failures of the Sentinels.

mod answers;
mod frozen;
mod isolated;
mod lossy;
mod runtimes;
