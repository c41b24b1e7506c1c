//! The options of one attribute as they were read.

use proc_macro2::Span;
use syn::{Expr, ExprClosure, Ident, LitStr, Path};

use crate::args::lease::LeaseArgs;
use crate::args::permits::Permits;
use crate::args::value::{Key, OnBusy};
use crate::args::wait::WaitArgs;

/// The options of one attribute, each at most once, each well-formed by itself.
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
    /// The options by name, and where, as far as they were written at all; a refused value counts.
    pub(super) given: Vec<(&'static str, Span)>,
    /// The options whose names others have most likely been written for: what needs them is not a mistake too.
    pub(super) meant: Vec<&'static str>,
}

impl LockArgs {
    /// Where the option was written, with whatever value.
    pub(crate) fn place_of(&self, name: &str) -> Option<Span> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, place)| *place)
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.place_of(name).is_some() || self.meant.contains(&name)
    }
}
