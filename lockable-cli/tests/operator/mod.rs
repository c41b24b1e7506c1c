//! What an operator sees and does: `ls`, `show`, `release` and `check`, and that the texts show it as it is.

mod holders;
mod names;
mod output;
mod permits;
mod release;
mod texts;
mod topologies;
mod transcripts;
