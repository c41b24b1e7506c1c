//! Renewed locks: for as long as they are held, whatever the holder's runtime does, and no longer.

mod after_release;
mod blocked_holders;
mod lengths;
mod panics;
mod reconnections;
mod refusals;
mod slow_openings;
