//! Every way out of a held lock frees it.

mod bodies;
mod exits;
mod guards;
mod processes;
