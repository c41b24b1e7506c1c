//! What the attribute means: arguments and function together, proven to be expandable.
//!
//! This is the only place that refuses a combination.

use proc_macro2::Span;
use syn::{Expr, ExprClosure, Ident, LitStr, Path, Result, ReturnType, Signature};

use crate::args::{Expire, Key, LockArgs, OnBusy};
use crate::mistakes::Mistakes;
use crate::names;
use crate::output;
use crate::target::Target;

/// A function that can be locked, and how.
pub(crate) struct LockedFn {
    pub(crate) target: Target,
    pub(crate) key: Key,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) expire: Option<Expire>,
    pub(crate) locker: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) on_error: Option<ExprClosure>,
    /// Where the runtime lives, if not at its own name.
    pub(crate) krate: Option<Path>,
}

impl LockedFn {
    /// Proves that the function can be locked as the arguments say.
    pub(crate) fn prove(args: LockArgs, target: Target, mut mistakes: Mistakes) -> Result<Self> {
        check_function(&target, &mut mistakes);
        check_guard(args.guard.as_ref(), &target.sig, &mut mistakes);
        if let Some(Key::Template(template, _)) = &args.key {
            template.check_length(args.prefix.as_ref(), &mut mistakes);
        }
        let LockArgs { key, prefix, expire, on_busy, on_error, guard, locker, krate, .. } = args;
        let locked = key.map(|key| Self {
            target,
            key,
            prefix,
            expire,
            locker,
            guard,
            on_busy,
            on_error,
            krate,
        });
        mistakes.or(locked)
    }
}

fn check_function(target: &Target, mistakes: &mut Mistakes) {
    if let Some(second) = &target.second_lock {
        let message = "only one `#[distributed_lock]` per function\n\
             help: the lower one would be acquired first";
        let span =
            second.path().segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        mistakes.add(span, message);
    }
    let sig = &target.sig;
    if sig.asyncness.is_some() {
        return;
    }
    if let (Some(future), ReturnType::Type(_, ty)) =
        (output::returned_future(&sig.output), &sig.output)
    {
        let message = format!(
            "the future would run after the lock is released\n\
             help: write it as `async fn {}(..){future}`",
            sig.ident
        );
        mistakes.push(syn::Error::new_spanned(ty, message));
    } else if let Some(constness) = &sig.constness {
        mistakes.add(constness.span, "`#[distributed_lock]` needs an `async fn`");
    } else {
        let message = "`#[distributed_lock]` needs an `async fn`\nhelp: add `async`";
        mistakes.add(sig.fn_token.span, message);
    }
}

fn check_guard(guard: Option<&Ident>, sig: &Signature, mistakes: &mut Mistakes) {
    let Some(guard) = guard else { return };
    if names::parameters(sig).any(|param| param.ident == guard) {
        let message = format!("`guard = {guard}` would hide the parameter `{guard}`");
        mistakes.add(guard.span(), message);
    }
    if guard == "_" {
        mistakes.add(guard.span(), "`guard` takes a name that the body can use");
    }
}
