//! What a call returns when its body did not run, or was stopped.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{ExprClosure, Ident, ReturnType};

use crate::args::{OnBusy, Wait};
use crate::expand::tokens::{mixed, private_at, return_span, return_type};
use crate::model::LockedFn;

/// The arm for a busy lock, where it differs from the other failures.
///
/// See "Why does a reached wait limit count as busy?" in DESIGN.md.
pub(super) fn busy_arm(locked: &LockedFn) -> TokenStream {
    let value = match (&locked.on_busy, &locked.on_error) {
        (Some(OnBusy::Skip(word)), _) => {
            let private = private_at(word.span());
            quote_spanned!(mixed().located_at(word.span())=> #private::Skip::skipped(&error))
        }
        // A call that waits without a limit never finds the lock busy, but its run may be done.
        (None, Some(_)) if is_never_busy(locked) => return TokenStream::new(),
        (None, Some(_)) => refused_by("RefusedBesideOnError", locked),
        // With a value the body has said it; with neither, busy is a failure as any other.
        (Some(OnBusy::Value(_)), _) | (None, None) => return TokenStream::new(),
    };
    let gave_up = locked.wait.wait.as_ref();
    let gave_up = gave_up.map(|_| quote_spanned!(mixed()=> || error.is_wait_limit_reached()));
    quote_spanned! {mixed()=>
        ::core::result::Result::Err(error) if error.is_busy() #gave_up => return #value,
    }
}

fn is_never_busy(locked: &LockedFn) -> bool {
    matches!(locked.wait.wait, Some(Wait::Forever)) && locked.lease.once.is_none()
}

pub(super) fn refused(locked: &LockedFn) -> TokenStream {
    match &locked.on_error {
        Some(closure) => answer(closure),
        None if locked.on_busy.is_some() => refused_by("RefusedBesideOnBusy", locked),
        None => refused_by("Refused", locked),
    }
}

/// Inlines `|err| expr`: a call would leave the type of `err` to be inferred.
///
/// ```text
/// Input:  |err| -> Reply { Reply::from(err) }
/// Output: let err = error;
///         let value: Reply = { Reply::from(err) };
///         value
/// ```
fn answer(closure: &ExprClosure) -> TokenStream {
    let pattern = &closure.inputs;
    let body = &closure.body;
    match &closure.output {
        ReturnType::Default => quote_spanned!(mixed()=> let #pattern = error; #body),
        ReturnType::Type(_, ty) => quote_spanned! {mixed()=>
            let #pattern = error;
            let value: #ty = #body;
            value
        },
    }
}

/// The return type's own answer; an error points at the return type.
fn refused_by(answers: &str, locked: &LockedFn) -> TokenStream {
    let private = private_at(return_span(locked));
    let ty = return_type(locked);
    let place = mixed().located_at(return_span(locked));
    let answers = Ident::new(answers, place);
    quote_spanned! {place=>
        <#ty as #private::#answers>::refused(error)
    }
}
