//! Functions that the attribute must take without a warning of rustc or clippy, in edition 2021.
#![deny(warnings)]
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "nobody calls them"
)]

#[path = "../../pass/attributes.rs"]
pub mod attributes;
#[path = "../../pass/boxed.rs"]
pub mod boxed;
#[path = "../../pass/flow.rs"]
pub mod flow;
#[path = "../../pass/generics.rs"]
pub mod generics;
#[path = "../../pass/keys.rs"]
pub mod keys;
#[path = "../../pass/lease.rs"]
pub mod lease;
#[path = "../../pass/methods.rs"]
pub mod methods;
#[path = "../../pass/parameters.rs"]
pub mod parameters;
#[path = "../../pass/returns.rs"]
pub mod returns;
#[path = "../../pass/sync.rs"]
pub mod sync;
#[path = "../../pass/waiting.rs"]
pub mod waiting;

/// Waits once.
async fn pause() {
    std::future::ready(()).await;
}
