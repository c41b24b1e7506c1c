//! The runtime of a worker.

use std::future::Future;

use tokio::runtime::Builder;

/// A kind of runtime, with the defaults of Tokio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// One thread, which is the process's own.
    CurrentThread,
    /// A thread a core: what `#[tokio::main]` makes.
    MultiThread,
}

impl Flavour {
    /// What Tokio calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CurrentThread => "current-thread",
            Self::MultiThread => "multi-thread",
        }
    }

    /// The one of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::CurrentThread, Self::MultiThread].into_iter().find(|flavour| flavour.name() == name)
    }
}

/// Runs a worker on a runtime of its own.
pub fn run(flavour: Flavour, work: impl Future<Output = ()>) {
    let mut builder = match flavour {
        Flavour::CurrentThread => Builder::new_current_thread(),
        Flavour::MultiThread => Builder::new_multi_thread(),
    };
    builder.enable_all().build().expect("a runtime").block_on(work);
}
