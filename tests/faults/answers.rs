//! What follows from each answer that a node of a cluster can give, in each place.
//!
//! Stub nodes in front of two servers, which have all slots each, give the answers.

mod calls;
mod given;
mod majority;
mod moves;
mod one_shard;
mod places;
mod rows;
mod scene;
mod table;
