//! Calls that are given up while they are under way leave no lock behind.

mod late_requests;
mod polls;
