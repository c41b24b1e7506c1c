//! The expansion of a proven function, which cannot fail. Every name of the runtime that it uses is here or in the
//! folder.
//!
//! See "Why is the future of a decorated function small?" in DESIGN.md.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, Type};

use crate::args::OnBusy;
use crate::expand::answers::{busy_arm, refused};
use crate::expand::call::{call, warnings};
pub(crate) use crate::expand::lock_key::lock_key;
use crate::expand::parameters::moved_parameters;
use crate::expand::tokens::{
    braced, import, is_never, mixed, private, private_at, return_span, return_type,
};
use crate::model::{FnKind, LockedFn};
use crate::output;

mod answers;
mod call;
mod label;
mod lock_key;
mod parameters;
mod tokens;

/// ```text
/// Input:  async fn f(id: u64) -> Option<u8> { BODY }
/// Output: async fn f(id: u64) -> Option<u8> { LOCKED }
///
/// Input:  fn f(id: u64) -> BoxFuture<'_, Option<u8>> { BODY }
/// Output: fn f(id: u64) -> BoxFuture<'_, Option<u8>> { Box::pin(async move { LOCKED }) }
/// ```
pub(crate) fn expand(locked: &LockedFn) -> TokenStream {
    let inner_attrs = &locked.target.inner_attrs;
    let statements = statements(locked);
    let whole = match &locked.kind {
        FnKind::Async | FnKind::Sync => statements,
        FnKind::Boxed(_) => boxed(&statements),
    };
    // The user's own braces: without their span an unused function is not reported as one.
    let block = braced(quote!(#inner_attrs #whole), locked.target.braces.span());
    let head = &locked.target.head;
    quote!(#head #block)
}

/// Writes what runs in place of the body, which takes the parameters before the first await: so they are stored once.
///
/// ```text
/// Input:  BODY
/// Output: use ::lockable_runtime::__private as __lockable;
///         let call = CALL;
///         let body = async move { BODY };
///         value::<Option<u8>>(run(call, body).await)
/// ```
///
/// With `on_busy` or `on_error`, in place of the last line:
///
/// ```text
/// Output: let error = match run(call, body).await {
///             Ok(value) => return value,
///             Err(error) if error.is_busy() => return BUSY,
///             Err(error) => error,
///         };
///         ANSWER
/// ```
fn statements(locked: &LockedFn) -> TokenStream {
    let import = import(locked.krate.as_ref());
    let warnings = warnings(locked);
    let call = call(locked);
    let Steps { body, run } = steps(locked);
    let ending = if has_ordinary_ending(locked) {
        ordinary_ending(locked, &run)
    } else {
        ending(locked, &run)
    };
    quote_spanned! {mixed()=>
        #import
        #warnings
        #call
        #body
        #ending
    }
}

/// Whether the return type alone decides the outcome of every failure, as for most functions.
///
/// Their expansion is short: the macro crate is built without optimization, and each token costs.
fn has_ordinary_ending(locked: &LockedFn) -> bool {
    let says_nothing = locked.on_busy.is_none() && locked.on_error.is_none();
    says_nothing && !matches!(locked.kind, FnKind::Sync) && !is_never(&return_type(locked))
}

/// ```text
/// Output: let value = value::<Option<u8>>(run(call, body).await);
///         Returned::new(&value).check();
///         value
/// ```
fn ordinary_ending(locked: &LockedFn, run: &TokenStream) -> TokenStream {
    let place = return_span(locked);
    let private = private_at(place);
    let ty = return_type(locked);
    let value = quote_spanned!(mixed().located_at(place)=> #private::value::<#ty>(#run));
    let check = check(&ty);
    if check.is_empty() {
        return value;
    }
    quote_spanned!(mixed()=> let value = #value; #check value)
}

fn ending(locked: &LockedFn, run: &TokenStream) -> TokenStream {
    let check = check(&return_type(locked));
    let allow_never = allowed_of_never(locked);
    let busy = busy_arm(locked);
    let refused = refused(locked);
    quote_spanned! {mixed()=>
        #allow_never
        let error = match #run {
            ::core::result::Result::Ok(value) => {
                #check
                return value;
            }
            #busy
            ::core::result::Result::Err(error) => error,
        };
        #refused
    }
}

struct Steps {
    body: TokenStream,
    run: TokenStream,
}

fn steps(locked: &LockedFn) -> Steps {
    match &locked.kind {
        FnKind::Async | FnKind::Boxed(_) => awaiting(locked),
        FnKind::Sync => waiting(locked),
    }
}

/// ```text
/// Input:  guard = lock, on_busy = BUSY
/// Output: let cell = LeaseCell::default();
///         let body = { let cell = cell.clone(); async move { … } };
///         run(call, body).lease_into(cell).even_when_busy().await
/// ```
fn awaiting(locked: &LockedFn) -> Steps {
    let private = private();
    let future = body(locked);
    let needs_cell =
        locked.guard.is_some() || answers_busy(locked) || matches!(locked.kind, FnKind::Boxed(_));
    let (body, fill_cell) = if needs_cell {
        let cell =
            Ident::new(if locked.holds_several() { "LeasesCell" } else { "LeaseCell" }, mixed());
        let body = quote_spanned! {mixed()=>
            let cell = #private::#cell::default();
            let body = { let cell = ::core::clone::Clone::clone(&cell); #future };
        };
        (body, quote_spanned!(mixed()=> .lease_into(cell)))
    } else {
        (quote_spanned!(mixed()=> let body = #future;), TokenStream::new())
    };
    // Located where the error is to be if the return type does not say what a good end is.
    let place = mixed().located_at(return_span(locked));
    let once = locked.lease.once.as_ref().map(|_| quote_spanned!(place=> .once()));
    let even_when_busy = answers_busy(locked).then(|| quote_spanned!(mixed()=> .even_when_busy()));
    let run =
        quote_spanned!(mixed()=> #private::run(call, body) #fill_cell #once #even_when_busy .await);
    Steps { body, run }
}

/// ```text
/// Output: run_blocking(call, move |_: Lease| BODY)
/// ```
fn waiting(locked: &LockedFn) -> Steps {
    let private = private();
    let closure = body(locked);
    let closure = if locked.lease.once.is_some() {
        let private = private_at(return_span(locked));
        quote_spanned! {mixed().located_at(return_span(locked))=>
            #private::once(#closure, #private::EndsWell::ended_well)
        }
    } else {
        closure
    };
    let run = if answers_busy(locked) {
        quote_spanned!(mixed()=> #private::run_blocking_even_when_busy(call, #closure))
    } else {
        quote_spanned!(mixed()=> #private::run_blocking(call, #closure))
    };
    Steps { body: TokenStream::new(), run }
}

/// Whether the body computes the value for a busy lock, because it has the parameters.
fn answers_busy(locked: &LockedFn) -> bool {
    matches!(locked.on_busy, Some(OnBusy::Value(_)))
}

/// Refuses a future or a stream, whatever its type is called.
fn check(ty: &Type) -> TokenStream {
    if output::is_plain(ty) {
        return TokenStream::new();
    }
    let place = output::blamed(ty);
    let private = private_at(place);
    quote_spanned! {mixed().located_at(place)=>
        {
            use #private::Late as _;
            #private::Returned::new(&value).check();
        }
    }
}

fn boxed(statements: &TokenStream) -> TokenStream {
    quote_spanned!(mixed()=> ::std::boxed::Box::pin(async move { #statements }))
}

/// If the body never ends, our use of its value is unreachable.
fn allowed_of_never(locked: &LockedFn) -> Option<TokenStream> {
    is_never(&return_type(locked)).then(
        || quote_spanned!(mixed()=> #[allow(unreachable_code, clippy::diverging_sub_expression)]),
    )
}

/// ```text
/// Input:  guard = lock
/// Output: async move { FAKE_RETURN let _ = (PARAMETERS,); let lock = cell.lease().await; { BODY } }
///         move |lock: Lease| { FAKE_RETURN let _ = (PARAMETERS,); { BODY } }       of a sync function
///         async move { start(CLOSURE, cell.lease().await).await }               of a boxed future
///
/// Input:  guard = lock, on_busy = BUSY
/// Output: async move {
///             FAKE_RETURN
///             let _ = (PARAMETERS,);
///             match cell.outcome().await { None => BUSY, Some(lock) => { BODY } }
///         }
/// ```
fn body(locked: &LockedFn) -> TokenStream {
    let braces = locked.target.braces.span();
    // With the user's span rustc would find these braces unnecessary; with another location it
    // would report a wrong tail expression at the attribute.
    let user = braced(locked.target.body.clone(), mixed().located_at(braces));
    let outcome = match (&locked.on_busy, &locked.guard, &locked.kind) {
        (Some(OnBusy::Value(busy)), ..) => busy_or_body(locked, &busy.to_token_stream(), &user),
        (_, Some(lease), FnKind::Async) => {
            quote_spanned!(mixed()=> let #lease = cell.lease().await; #user)
        }
        _ => user.into(),
    };
    let fake_return = fake_return(locked);
    let moved = moved_parameters(locked);
    // The user's span again, or the body is lost to coverage.
    let block = braced(quote!(#fake_return #moved #outcome), braces);
    match &locked.kind {
        FnKind::Async => quote_spanned!(braces=> async move #block),
        FnKind::Sync => closure(locked, &block),
        FnKind::Boxed(_) => boxed_body(locked, &block),
    }
}

fn busy_or_body(locked: &LockedFn, busy: &TokenStream, user: &TokenTree) -> TokenStream {
    let lease = lease_name(locked);
    let (found, busy) = match &locked.kind {
        FnKind::Async => (quote_spanned!(mixed()=> cell.outcome().await), busy.clone()),
        FnKind::Sync => (quote_spanned!(mixed()=> lease), busy.clone()),
        FnKind::Boxed(_) => (quote_spanned!(mixed()=> lease), boxed(busy)),
    };
    quote_spanned! {mixed()=>
        match #found {
            ::core::option::Option::None => #busy,
            ::core::option::Option::Some(#lease) => #user
        }
    }
}

/// A body that is no async block: `return` in it gives a value, or the boxed future.
fn closure(locked: &LockedFn, block: &TokenTree) -> TokenStream {
    let private = private();
    let ty = Ident::new(if locked.holds_several() { "Leases" } else { "Lease" }, mixed());
    let parameter = if answers_busy(locked) {
        quote_spanned!(mixed()=> lease: ::core::option::Option<#private::#ty>)
    } else {
        let lease = lease_name(locked);
        quote_spanned!(mixed()=> #lease: #private::#ty)
    };
    quote_spanned!(mixed()=> move |#parameter| #block)
}

fn boxed_body(locked: &LockedFn, block: &TokenTree) -> TokenStream {
    let private = private();
    let closure = closure(locked, block);
    let lease = if answers_busy(locked) {
        quote_spanned!(mixed()=> cell.outcome().await)
    } else {
        quote_spanned!(mixed()=> cell.lease().await)
    };
    quote_spanned!(mixed()=> async move { #private::start(#closure, #lease).await })
}

fn lease_name(locked: &LockedFn) -> TokenStream {
    let unnamed = || quote_spanned!(mixed()=> _);
    locked.guard.as_ref().map_or_else(unnamed, ToTokens::to_token_stream)
}

/// Shows the compiler the body's type first, so that `Ok(Box::new(|| ()))` is coerced to it, and a wrong type is not
/// reported at the attribute.
fn fake_return(locked: &LockedFn) -> TokenStream {
    let ty = output::written_inside(&locked.target.sig.output);
    if is_never(&ty) || ty.to_token_stream().to_string() == "_" {
        return TokenStream::new();
    }
    let private = private_at(return_span(locked));
    quote_spanned! {mixed().located_at(return_span(locked))=>
        if false {
            return #private::absent::<#ty>();
        }
    }
}
