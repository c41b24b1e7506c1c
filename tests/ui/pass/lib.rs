//! Functions that the attribute must take without a warning of rustc or clippy, in each edition:
//! `ui/pass` is a package of edition 2024, `ui/edition-2021` one of 2021.
#![deny(warnings)]
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "nobody calls them"
)]

pub mod attributes;
pub mod boxed;
pub mod flow;
pub mod generics;
pub mod keys;
pub mod late;
pub mod lease;
pub mod methods;
pub mod parameters;
pub mod returns;
pub mod sync;
pub mod waiting;

/// Waits once.
async fn pause() {
    std::future::ready(()).await;
}
