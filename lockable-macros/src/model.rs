//! What the attribute means: arguments and function together, proven to be expandable.
//!
//! This is the only place that refuses a combination.

use std::collections::BTreeMap;

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Error, Expr, ExprClosure, Ident, LitStr, Path, Result, ReturnType, Signature, Type};

use crate::args::{Expire, Key, KeyArgument, LockArgs, OnBusy};
use crate::key::KeyTemplate;
use crate::mistakes::Mistakes;
use crate::names;
use crate::output;
use crate::target::Target;

/// A function that can be locked, and how.
pub(crate) struct LockedFn {
    pub(crate) target: Target,
    pub(crate) road: Road,
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

/// How a call reaches its lock and its body.
pub(crate) enum Road {
    /// An `async fn`.
    Async,
    /// A plain function, which waits on its thread.
    Sync,
    /// A plain function that returns a boxed future with this output.
    Boxed(Box<Type>),
}

impl LockedFn {
    /// Proves that the function can be locked as the arguments say.
    pub(crate) fn prove(args: LockArgs, target: Target, mut mistakes: Mistakes) -> Result<Self> {
        check_single(&target, &mut mistakes);
        let road = road(&target.sig, &mut mistakes);
        check_guard(args.guard.as_ref(), &target.sig, &mut mistakes);
        if let Some(Key::Template(template, _)) = &args.key {
            template.check_length(args.prefix.as_ref(), &mut mistakes);
            let bound = names::bound_by(&target.sig);
            let is_bound = |name: &str| bound.iter().any(|b| names::unraw(b.ident) == name);
            template.check_hashes(is_bound, &mut mistakes);
        }
        if let (Road::Boxed(_), Some(Key::Template(template, arguments))) = (&road, &args.key) {
            check_destructured(template, arguments, &target, &mut mistakes);
        }
        let LockArgs { key, prefix, expire, on_busy, on_error, guard, locker, krate, .. } = args;
        let locked = key.map(|key| Self {
            target,
            road,
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

fn check_single(target: &Target, mistakes: &mut Mistakes) {
    let Some(second) = &target.second_lock else { return };
    let message = "only one `#[distributed_lock]` per function\n\
         help: the lower one would be acquired first";
    let last = second.path().segments.last();
    mistakes.add(last.map_or_else(Span::call_site, |last| last.ident.span()), message);
}

fn road(sig: &Signature, mistakes: &mut Mistakes) -> Road {
    if sig.asyncness.is_some() {
        return Road::Async;
    }
    if let Some(constness) = &sig.constness {
        let message = "`#[distributed_lock]` cannot be put on a `const fn`\n\
             help: nothing can be locked at compile time; remove `const`";
        mistakes.add(constness.span, message);
    } else if let Some(output) = output::of_boxed_future(&sig.output) {
        return Road::Boxed(Box::new(output));
    } else if let (Some(future), ReturnType::Type(_, ty)) =
        (output::returned_future(&sig.output), &sig.output)
    {
        let message = format!(
            "the future would run after the lock is released\n\
             help: write it as `async fn {}(..){future}`",
            sig.ident
        );
        mistakes.push(Error::new_spanned(ty, message));
    }
    Road::Sync
}

/// Refuses a key that names what only the body of a boxed future destructures.
///
/// `#[async_trait]` calls such a parameter `__arg1`, and takes it apart inside the future, where the
/// lock is held already.
fn check_destructured(
    template: &KeyTemplate,
    arguments: &[KeyArgument],
    target: &Target,
    mistakes: &mut Mistakes,
) {
    let (mut taken_apart, mut wanted) = (BTreeMap::new(), BTreeMap::new());
    names::taken_apart_in(&target.body, &mut taken_apart);
    for argument in arguments {
        names::mentioned_in(argument.value.to_token_stream(), &mut wanted);
    }
    for name in template.names() {
        let is_argument = arguments.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n == name));
        if !is_argument {
            wanted.insert(name.to_owned(), template.literal.span());
        }
    }
    for (name, span) in wanted.iter().filter(|(name, _)| taken_apart.contains_key(*name)) {
        let message = format!(
            "the key cannot name `{name}`, which is a part of a parameter's pattern\n\
             help: under `#[async_trait]` give the parameter a name, use that in the key, and \
             destructure it in the body"
        );
        mistakes.add(*span, message);
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
