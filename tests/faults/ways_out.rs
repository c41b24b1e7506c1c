//! Every way out of a held lock frees it.

mod bodies;
mod draining;
mod exits;
mod guards;
