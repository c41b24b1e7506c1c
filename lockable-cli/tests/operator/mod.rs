//! What an operator sees and does: `ls`, `show`, `release`, `wait` and `check`, and that the texts show it as it is.

mod codes;
mod holders;
mod keys;
mod kinds;
mod many;
mod names;
mod output;
mod pause;
mod permits;
mod release;
mod texts;
mod topologies;
mod transcripts;
mod waiting;
mod watch;
