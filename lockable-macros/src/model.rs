//! Arguments and function together, proven to be expandable: only this file refuses a combination.

use proc_macro2::Span;
use syn::{Error, Expr, ExprClosure, Ident, LitStr, Path, Result, ReturnType, Signature, Type};

use crate::args::{
    Key, LeaseArgs, LockArgs, OnBusy, OnLost, Permits, Wait, WaitArgs, WrittenDuration, forever,
    means_forever,
};
use crate::mistakes::Mistakes;
use crate::names;
use crate::output::{self, Late};
use crate::target::Target;
use crate::warnings::{Warning, warnings};

mod holes;
mod prefix;

pub(crate) struct LockedFn {
    pub(crate) target: Target,
    pub(crate) kind: FnKind,
    pub(crate) key: Key,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) wait: WaitArgs,
    pub(crate) permits: Option<Permits>,
    pub(crate) lease: LeaseArgs,
    pub(crate) locker: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) on_error: Option<ExprClosure>,
    /// The runtime's path, if not its own name.
    pub(crate) krate: Option<Path>,
    pub(crate) warnings: Vec<Warning>,
}

pub(crate) enum FnKind {
    Async,
    /// Waits on its thread.
    Sync,
    /// Returns a boxed future with this output.
    Boxed(Box<Type>),
}

impl LockedFn {
    pub(crate) fn prove(args: LockArgs, target: Target, mut mistakes: Mistakes) -> Result<Self> {
        check_single(&target, &mut mistakes);
        let kind = kind(&target.sig, &mut mistakes)
            .filter(|kind| ends_with_its_value(kind, &target.sig, &mut mistakes));
        prefix::check(&args, &target.sig, &mut mistakes);
        check_wait(&args, kind.as_ref(), &mut mistakes);
        check_forever(&args.wait, &target.sig, &mut mistakes);
        check_permits(&args, &mut mistakes);
        check_max_hold(&args, &mut mistakes);
        check_min_hold(&args.lease, &mut mistakes);
        check_once(&args, &mut mistakes);
        check_on_lost(&args.lease, kind.as_ref(), &mut mistakes);
        check_guard(args.guard.as_ref(), &target.sig, &mut mistakes);
        for (template, arguments) in args.key.iter().flat_map(Key::templates) {
            template.check_length(args.prefix.as_ref(), &mut mistakes);
            let bound = names::bound_by(&target.sig);
            let is_bound = |name: &str| bound.iter().any(|b| names::unraw(b.ident) == name);
            template.check_hashes(is_bound, &mut mistakes);
            holes::check(template, arguments, kind.as_ref(), &target, &mut mistakes);
        }
        let value = kind.as_ref().and_then(|kind| value(kind, &target.sig));
        let warnings = warnings(&args, &target.sig, value);
        let LockArgs {
            key,
            prefix,
            wait,
            permits,
            lease,
            on_busy,
            on_error,
            guard,
            locker,
            krate,
            ..
        } = args;
        let locked = key.zip(kind).map(|(key, kind)| Self {
            target,
            kind,
            key,
            prefix,
            wait,
            permits,
            lease,
            locker,
            guard,
            on_busy,
            on_error,
            krate,
            warnings,
        });
        mistakes.or(locked)
    }
}

impl LockedFn {
    pub(crate) fn holds_several(&self) -> bool {
        self.key.is_several() || self.permits.as_ref().is_some_and(|permits| permits.is_all)
    }
}

fn check_single(target: &Target, mistakes: &mut Mistakes) {
    let Some(second) = &target.second_lock else { return };
    let message = "only one `#[distributed_lock]` per function\n\
         help: the lower one would be acquired first; for several locks write them all in one, as in `keys = \
         [\"account:{from}\", \"account:{to}\"]`";
    let last = second.path().segments.last();
    mistakes.add(last.map_or_else(Span::call_site, |last| last.ident.span()), message);
}

fn kind(sig: &Signature, mistakes: &mut Mistakes) -> Option<FnKind> {
    if sig.asyncness.is_some() {
        return Some(FnKind::Async);
    }
    if let Some(constness) = &sig.constness {
        let message = "`#[distributed_lock]` cannot be put on a `const fn`\n\
             help: nothing can be locked at compile time; remove `const`";
        mistakes.add(constness.span, message);
        None
    } else if let Some(output) = output::of_boxed_future(&sig.output) {
        Some(FnKind::Boxed(Box::new(output)))
    } else {
        Some(FnKind::Sync)
    }
}

/// Refuses a future or a stream as the body's value; an iterator is a warning.
fn ends_with_its_value(kind: &FnKind, sig: &Signature, mistakes: &mut Mistakes) -> bool {
    let Some(ty) = value(kind, sig) else { return true };
    let (late, way_out) = match output::late_work(ty) {
        Some(Late::Future) => ("future", "await it inside of the body"),
        Some(Late::Stream) => ("stream", "consume it inside of the body"),
        Some(Late::Iterator) | None => return true,
    };
    let way_out = match (kind, output::returned_future(&sig.output)) {
        (FnKind::Sync, Some(_)) if output::is_written_by_an_attribute(ty) => {
            "an attribute such as `trait_variant::make` has made it the return type; put `#[distributed_lock]` on the \
             implementations"
                .to_owned()
        }
        (FnKind::Sync, Some(output)) => {
            format!("write it as `async fn {}(..){output}`", sig.ident)
        }
        _ => way_out.to_owned(),
    };
    let message = format!(
        "the {late} would run after the lock is released\n\
         help: {way_out}\n\
         help: for work that ends elsewhere, acquire a guard in place of the attribute, and pass the lock on by \
         `LockGuard::into_ticket`\n\
         help: if its work does not need the lock, return it as `AfterRelease<..>`"
    );
    mistakes.push(Error::new_spanned(output::innermost(ty), message));
    false
}

/// The written type of the body's value.
fn value<'a>(kind: &'a FnKind, sig: &'a Signature) -> Option<&'a Type> {
    match (kind, &sig.output) {
        (FnKind::Boxed(output), _) => Some(output),
        (_, ReturnType::Type(_, ty)) => Some(ty),
        (_, ReturnType::Default) => None,
    }
}

fn check_wait(args: &LockArgs, kind: Option<&FnKind>, mistakes: &mut Mistakes) {
    let waits = args.is_given("wait");
    if let Some(place) = args.place_of("fair").filter(|_| !waits) {
        let message = "`fair` needs `wait`\n\
             help: add `wait`, or leave `fair` out: a call that tries once joins no queue";
        mistakes.add(place, message);
    }
    let Some(place) = args.place_of("blocking") else { return };
    match kind {
        Some(FnKind::Async | FnKind::Boxed(_)) => {
            let message = "`blocking` is for a sync `fn`\n\
                 help: leave it out: an async function waits without blocking its thread";
            mistakes.add(place, message);
        }
        Some(FnKind::Sync) if !waits => {
            let message = "`blocking` needs `wait`\n\
                 help: add `wait`, or leave `blocking` out: a call that tries once needs no permission";
            mistakes.add(place, message);
        }
        Some(FnKind::Sync) | None => {}
    }
}

/// Refuses `wait = forever`, where that is no parameter.
fn check_forever(args: &WaitArgs, sig: &Signature, mistakes: &mut Mistakes) {
    let Some(Wait::AtMost(WrittenDuration::Expression(Expr::Path(limit)))) = &args.wait else {
        return;
    };
    let Some(word) = limit.path.segments.last() else { return };
    let text = names::unraw(&word.ident);
    let is_parameter = names::parameters(sig).any(|param| names::unraw(param.ident) == text);
    if means_forever(&text) && !is_parameter {
        mistakes.push(forever(&text, word.ident.span()));
    }
}

fn check_permits(args: &LockArgs, mistakes: &mut Mistakes) {
    let Some(place) = args.place_of("permits") else { return };
    if args.is_given("keys") {
        let message = "`permits` is for one key\n\
             help: write `key`; a key of several parts is one text, as in `key = \"export:{from}:{to}\"`";
        mistakes.add(place, message);
    }
    if let Some(fair) = args.place_of("fair") {
        let message = "`fair` is not for permits\n\
             help: leave it out: each permit passes to the next waiter of all processes";
        mistakes.add(fair, message);
    }
}

fn check_max_hold(args: &LockArgs, mistakes: &mut Mistakes) {
    let Some(place) = args.place_of("max_hold") else { return };
    if !args.is_given("renew") {
        let message = "`max_hold` needs `renew`\n\
             help: add `renew`, or leave `max_hold` out: the lease ends after `expire` anyway";
        mistakes.add(place, message);
    }
}

/// The runtime compares expressions.
fn check_min_hold(lease: &LeaseArgs, mistakes: &mut Mistakes) {
    let (
        Some(WrittenDuration::Literal { ms: expire, .. }),
        Some(WrittenDuration::Literal { ms: min_hold, place, .. }),
    ) = (&lease.expire, &lease.min_hold)
    else {
        return;
    };
    if min_hold > expire {
        let message = "`min_hold` is longer than `expire`\n\
             help: make `expire` at least as long: a process that dies holds its lock for that time only";
        mistakes.add(*place, message);
    }
}

fn check_once(args: &LockArgs, mistakes: &mut Mistakes) {
    let Some(place) = args.place_of("min_hold").filter(|_| args.is_given("once")) else { return };
    let message = "`min_hold` and `once` exclude each other\n\
         help: leave `min_hold` out: `once` keeps the lock after a good end only, `min_hold` after every end";
    mistakes.add(place, message);
}

fn check_on_lost(lease: &LeaseArgs, kind: Option<&FnKind>, mistakes: &mut Mistakes) {
    if let (Some(OnLost::Cancel(word)), Some(FnKind::Sync)) = (&lease.on_lost, kind) {
        let message = "the body of a sync `fn` cannot be stopped\n\
             help: leave `on_lost` out: the body completes, and the call then gives the loss as its error\n\
             help: with `on_lost = finish` the call gives the body's value all the same";
        mistakes.add(word.span(), message);
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

#[cfg(test)]
mod tests;
