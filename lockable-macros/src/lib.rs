#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use proc_macro2::TokenStream;

use crate::args::LockArgs;
use crate::mistakes::Mistakes;
use crate::model::LockedFn;
use crate::target::Target;

mod args;
mod duration;
mod expand;
mod fallback;
mod key;
mod mistakes;
mod model;
mod names;
mod output;
mod target;
#[cfg(test)]
mod tests;
mod warnings;

/// Depend on `lockable-runtime` for this attribute: it re-exports it together with its documentation.
#[proc_macro_attribute]
pub fn distributed_lock(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    attribute(args.into(), item.into()).into()
}

/// Depend on `lockable-runtime` for this macro: it re-exports it together with its documentation.
#[proc_macro]
pub fn lock_key(key: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::lock_key(key.into()).into()
}

/// The attribute as a function of tokens, which is what the tests call.
fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let item = target::without_invisible_groups(item);
    let target = match Target::parse(&item) {
        Ok(target) => target,
        Err(mistake) => return fallback::refused(item, &mistake),
    };
    let mut mistakes = Mistakes::default();
    let args = LockArgs::parse(args, &mut mistakes);
    let guard_is_named = args.guard.is_some();
    match LockedFn::prove(args, target, mistakes) {
        Ok(locked) => expand::expand(&locked),
        Err(mistakes) if guard_is_named => fallback::refused_without_body(item, &mistakes),
        Err(mistakes) => fallback::refused(item, &mistakes),
    }
}
