//! What the tests of crowds share with the timings.

#[path = "../crowds/accounts.rs"]
pub(crate) mod accounts;
#[path = "../crowds/load.rs"]
pub(crate) mod load;
