//! Models of what clients and the server do, which visit every order of a few events.

mod counters;
