//! Renewed locks: for as long as they are held, whatever the holder's runtime does, and no longer.

mod holders;
mod reconnections;
mod refusals;
mod released;
