//! Every way out of a held lock frees it.

mod bodies;
mod guards;
mod processes;
