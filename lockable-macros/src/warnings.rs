//! What compiles, but is hardly meant.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Signature, Type};

use crate::args::{Key, LockArgs, Wait, WrittenDuration};
use crate::names;
use crate::output::{self, Late};

/// Another spelling, which the note names, silences it.
pub(crate) struct Warning {
    /// The constant that rustc names beside the note.
    pub(crate) constant: &'static str,
    pub(crate) note: String,
    pub(crate) place: Span,
}

/// In milliseconds.
const DEFAULT_EXPIRE_MS: u64 = 10_000;

pub(crate) fn warnings(args: &LockArgs, sig: &Signature, value: Option<&Type>) -> Vec<Warning> {
    let limit = match &args.wait.wait {
        Some(Wait::AtMost(limit)) => Some(limit),
        Some(Wait::Forever) | None => None,
    };
    let durations = [
        ("expire", args.lease.expire.as_ref()),
        ("wait", limit),
        ("max_hold", args.lease.max_hold.as_ref()),
        ("min_hold", args.lease.min_hold.as_ref()),
        ("once", args.lease.once.as_ref()),
    ];
    let numbers = durations.into_iter().filter_map(|(name, written)| milliseconds(name, written?));
    let mut warnings = missed_holes(args, sig);
    warnings.extend(numbers);
    warnings.extend(min_hold_alone(args));
    warnings.extend(idle_on_busy(args));
    warnings.extend(value.and_then(late_iterator));
    warnings
}

/// Parameters that were probably meant as holes.
fn missed_holes(args: &LockArgs, sig: &Signature) -> Vec<Warning> {
    let bound = names::bound_by(sig);
    let is_bound = |name: &str| bound.iter().any(|bound| names::unraw(bound.ident) == name);
    let mut warnings = Vec::new();
    for (template, _) in args.key.iter().flat_map(Key::templates) {
        warnings.extend(template.missed_holes(is_bound).map(|missed| Warning {
            constant: missed.constant(),
            note: missed.note(&template.literal),
            place: template.literal.span(),
        }));
    }
    warnings
}

/// `expire = 60000`, as libraries that count milliseconds write it.
fn milliseconds(name: &str, written: &WrittenDuration) -> Option<Warning> {
    let WrittenDuration::Literal { place, likely_milliseconds: Some(seconds), .. } = written else {
        return None;
    };
    let note = format!(
        "`{name} = {seconds}` is {}; write `\"{}s\"` where milliseconds were meant, or \
         `\"{seconds}s\"` where seconds are",
        in_words(*seconds),
        seconds / 1_000
    );
    Some(Warning { constant: "SECONDS", note, place: *place })
}

fn in_words(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60) {
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// `min_hold = "30s"` without `expire`: the locker's lease is shorter as a rule.
fn min_hold_alone(args: &LockArgs) -> Option<Warning> {
    let Some(WrittenDuration::Literal { ms, place, .. }) = args.lease.min_hold else { return None };
    if args.is_given("expire") || ms <= DEFAULT_EXPIRE_MS {
        return None;
    }
    let note =
        "`min_hold` is longer than a lease of 10 s, which is the default, and then every call \
                fails; write `expire` too, at least as long"
            .to_owned();
    Some(Warning { constant: "MIN_HOLD_ALONE", note, place })
}

/// `wait, on_busy = 0`: such a call waits until the lock is free, or its run is done.
fn idle_on_busy(args: &LockArgs) -> Option<Warning> {
    let place = args.place_of("on_busy").filter(|_| !args.is_given("once"))?;
    let Some(Wait::Forever) = args.wait.wait else { return None };
    let note =
        "a call that waits without a limit never finds the lock busy; write a limit, such as \
                `wait = \"3s\"`, or leave `on_busy` out"
            .to_owned();
    Some(Warning { constant: "IDLE_ON_BUSY", note, place })
}

fn late_iterator(ty: &Type) -> Option<Warning> {
    output::late_work(ty).filter(|late| *late == Late::Iterator)?;
    let note = "what this iterator does for each item runs after the lock is released; return a `Vec`, or \
                `AfterRelease<impl Iterator<..>>` if its items do not need the lock"
        .to_owned();
    Some(Warning { constant: "LATE_ITERATOR", note, place: output::innermost(ty).span() })
}
