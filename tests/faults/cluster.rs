//! Locks on a cluster: masters that fail, slots that change hands, and the ways in.

mod channels;
mod frozen;
mod moving;
mod replicas;
mod seeds;
mod tls;
