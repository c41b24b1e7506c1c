//! The options as they were read.

use proc_macro2::Span;
use syn::{Expr, ExprClosure, Ident, LitStr, Path};

use crate::args::lease::LeaseArgs;
use crate::args::permits::Permits;
use crate::args::value::{Key, OnBusy};
use crate::args::wait::WaitArgs;

/// Each at most once, each well-formed by itself.
#[derive(Default)]
pub(crate) struct LockArgs {
    pub(crate) key: Option<Key>,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) wait: WaitArgs,
    pub(crate) permits: Option<Permits>,
    pub(crate) lease: LeaseArgs,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) on_error: Option<ExprClosure>,
    pub(crate) guard: Option<Ident>,
    pub(crate) locker: Option<Expr>,
    pub(crate) krate: Option<Path>,
    /// Everything that was written, also with a refused value.
    pub(super) given: Vec<(&'static str, Span)>,
    /// The options that unknown names probably mean: what needs them is no second mistake.
    pub(super) meant: Vec<&'static str>,
}

impl LockArgs {
    pub(crate) fn place_of(&self, name: &str) -> Option<Span> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, place)| *place)
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.place_of(name).is_some() || self.meant.contains(&name)
    }
}
