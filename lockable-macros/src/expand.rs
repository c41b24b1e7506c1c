//! The expansion of a proven function. It cannot fail.
//!
//! Every name of the runtime that an expansion uses is in this file or in its folder.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

use crate::args::OnBusy;
use crate::expand::answers::{busy_arm, refused};
use crate::expand::call::{call, warnings};
use crate::expand::parameters::kept_parameters;
use crate::model::{LockedFn, Road};
use crate::output;

mod answers;
mod call;
mod parameters;

/// The function with its lock.
///
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
    let whole = match &locked.road {
        Road::Async | Road::Sync => statements,
        Road::Boxed(_) => boxed(&statements),
    };
    // The user's own braces: without their span an unused function is not reported as one.
    let block = braced(quote!(#inner_attrs #whole), locked.target.braces.span());
    let head = &locked.target.head;
    quote!(#head #block)
}

/// What runs in place of the body.
///
/// ```text
/// Input:  BODY
/// Output: let call = CALL;
///         let body = Body::new(move |_: Lease| async move { BODY });
///         let error = match call.acquire().await {
///             Ok(guard) => {
///                 let body = pin!(Some(body.start(guard.lease())));
///                 match hold(guard, body).await { Ok(value) => return value, Err(error) => error }
///             }
///             Err(error) => error,
///         };
///         <Option<u8> as Refused>::refused(error)
/// ```
///
/// The closure takes the parameters before the first await, so that they are stored once: as its
/// captures while the lock is acquired, then in the body's future, which takes their place.
fn statements(locked: &LockedFn) -> TokenStream {
    let private = private(locked);
    let warnings = warnings(locked);
    let call = call(locked);
    let allow = allowed(locked);
    let allow_never = allowed_of_never(locked);
    let body = body(locked);
    let Steps { acquire, start, hold, check } = steps(locked);
    let busy = busy_arm(locked);
    let refused = refused(locked);
    quote_spanned! {mixed()=>
        #warnings
        let call = #call;
        #allow
        let body = #private::Body::new(#body);
        #allow_never
        let error = match #acquire {
            ::core::result::Result::Ok(guard) => {
                #start
                match #hold {
                    ::core::result::Result::Ok(value) => {
                        #check
                        return value;
                    }
                    ::core::result::Result::Err(error) => error,
                }
            }
            #busy
            ::core::result::Result::Err(error) => error,
        };
        #refused
    }
}

/// What a function that waits on its thread does differently.
struct Steps {
    acquire: TokenStream,
    start: TokenStream,
    hold: TokenStream,
    check: TokenStream,
}

/// ```text
/// Output: call.acquire_blocking()
///         let lease = guard.lease(); let body = move || body.start(lease);
///         hold_blocking(guard, body)
///         Returned::new(&value).is_no_future();
/// ```
fn steps(locked: &LockedFn) -> Steps {
    let private = private(locked);
    let granted = granted(locked);
    match &locked.road {
        Road::Async | Road::Boxed(_) => Steps {
            acquire: quote_spanned!(mixed()=> call.acquire().await),
            start: quote_spanned! {mixed()=>
                let body = ::core::pin::pin!(::core::option::Option::Some(body.start(#granted)));
            },
            hold: quote_spanned!(mixed()=> #private::hold(guard, body).await),
            check: TokenStream::new(),
        },
        Road::Sync => Steps {
            acquire: quote_spanned!(mixed()=> call.acquire_blocking()),
            start: quote_spanned! {mixed()=>
                let granted = #granted;
                let body = move || body.start(granted);
            },
            hold: quote_spanned!(mixed()=> #private::hold_blocking(guard, body)),
            check: check(locked),
        },
    }
}

/// Refuses a future under a name that hides it: its body would run after the release.
fn check(locked: &LockedFn) -> TokenStream {
    if is_never(&return_type(locked)) {
        return TokenStream::new();
    }
    let private = private_at(locked, return_span(locked));
    quote_spanned! {mixed().located_at(return_span(locked))=>
        #private::Returned::new(&value).is_no_future();
    }
}

/// `Box::pin(async move { … })`.
fn boxed(statements: &TokenStream) -> TokenStream {
    quote_spanned!(mixed()=> ::std::boxed::Box::pin(async move { #statements }))
}

/// The body of an `async fn` may give a future, and clippy takes our async block for a mistake
/// then. A future has no answer of its own, so such a function has both options.
fn allowed(locked: &LockedFn) -> Option<TokenStream> {
    let has_both = locked.on_busy.is_some() && locked.on_error.is_some();
    (has_both && matches!(locked.road, Road::Async))
        .then(|| quote_spanned!(mixed()=> #[allow(clippy::async_yields_async)]))
}

/// Where the body never ends, what we do with its value is never reached.
fn allowed_of_never(locked: &LockedFn) -> Option<TokenStream> {
    is_never(&return_type(locked)).then(
        || quote_spanned!(mixed()=> #[allow(unreachable_code, clippy::diverging_sub_expression)]),
    )
}

/// The body behind a closure that takes the lease, or `None` when another holder has the lock.
///
/// ```text
/// Input:  guard = lock, on_busy = BUSY
/// Output: move |granted: Option<Lease>| async move {
///             FAKE_RETURN
///             let _ = (PARAMETERS,);
///             match granted { None => BUSY, Some(lock) => { BODY } }
///         }
/// ```
///
/// The body of a plain function stands there without `async move`: a sync one gives its value, the
/// body of a boxed future gives the future.
fn body(locked: &LockedFn) -> TokenStream {
    let private = private(locked);
    let unnamed = || quote_spanned!(mixed()=> _);
    let lease = locked.guard.as_ref().map_or_else(unnamed, ToTokens::to_token_stream);
    let braces = locked.target.braces.span();
    // With the user's span rustc would find these braces unnecessary; with another location it
    // would report a wrong tail expression at the attribute.
    let user = braced(locked.target.body.clone(), mixed().located_at(braces));
    let (parameter, outcome) = match &locked.on_busy {
        Some(OnBusy::Value(busy)) => {
            let busy = match &locked.road {
                Road::Async | Road::Sync => busy.to_token_stream(),
                Road::Boxed(_) => boxed(&busy.to_token_stream()),
            };
            let parameter =
                quote_spanned!(mixed()=> granted: ::core::option::Option<#private::Lease>);
            let outcome = quote_spanned! {mixed()=>
                match granted {
                    ::core::option::Option::None => #busy,
                    ::core::option::Option::Some(#lease) => #user
                }
            };
            (parameter, outcome)
        }
        _ => (quote_spanned!(mixed()=> #lease: #private::Lease), user.into()),
    };
    let fake_return = fake_return(locked);
    let kept = kept_parameters(locked);
    // The user's span again, or the body is lost to coverage.
    let block = braced(quote!(#fake_return #kept #outcome), braces);
    let block = match &locked.road {
        Road::Async => quote_spanned!(braces=> async move #block),
        Road::Sync | Road::Boxed(_) => block.into(),
    };
    quote_spanned!(mixed()=> move |#parameter| #block)
}

/// Tells the compiler what the body must be, before it sees the body.
///
/// Without it `Ok(Box::new(|| ()))` is not coerced to what the signature says, and a wrong type is
/// reported at the attribute.
fn fake_return(locked: &LockedFn) -> TokenStream {
    let ty = output::written_inside(&locked.target.sig.output);
    if is_never(&ty) || ty.to_token_stream().to_string() == "_" {
        return TokenStream::new();
    }
    quote_spanned! {mixed().located_at(return_span(locked))=>
        if let ::core::option::Option::Some(value) = ::core::option::Option::None::<#ty> {
            return value;
        }
    }
}

/// Whether this is `!`, which only a signature may name.
fn is_never(ty: &Type) -> bool {
    matches!(ty, Type::Never(_))
}

/// What the closure is given when the lock is granted.
fn granted(locked: &LockedFn) -> TokenStream {
    let lease = quote_spanned!(mixed()=> guard.lease());
    if matches!(locked.on_busy, Some(OnBusy::Value(_))) {
        return quote_spanned!(mixed()=> ::core::option::Option::Some(#lease));
    }
    lease
}

/// What a call comes to: the return type, or the output of the boxed future.
fn return_type(locked: &LockedFn) -> Type {
    match &locked.road {
        Road::Async | Road::Sync => output::written_inside(&locked.target.sig.output),
        Road::Boxed(output) => Type::clone(output),
    }
}

/// That type, or the function's name where there is none.
fn return_span(locked: &LockedFn) -> Span {
    match (&locked.road, &locked.target.sig.output) {
        (Road::Boxed(output), _) => output.span(),
        (_, ReturnType::Default) => locked.target.sig.ident.span(),
        (_, ReturnType::Type(_, ty)) => ty.span(),
    }
}

fn braced(tokens: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    TokenTree::Group(group)
}

/// The runtime's door for expansions.
fn private(locked: &LockedFn) -> TokenStream {
    private_at(locked, Span::call_site())
}

/// The same, for names whose errors belong to something the user wrote.
fn private_at(locked: &LockedFn, place: Span) -> TokenStream {
    let span = mixed().located_at(place);
    let own_name = || quote_spanned!(span=> ::lockable_runtime);
    let runtime = locked.krate.as_ref().map_or_else(own_name, ToTokens::to_token_stream);
    quote_spanned!(span=> #runtime::__private)
}

/// The hygiene of our own names: they neither hide the user's nor are seen by them.
fn mixed() -> Span {
    Span::mixed_site()
}
