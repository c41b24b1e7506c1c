//! The expansion of a proven function. It cannot fail.
//!
//! Every name of the runtime that an expansion uses is in this file or in its folder.
//!
//! See "Why is the future of a decorated function small?" in DESIGN.md.

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
///
/// The body takes the parameters before the first await, so that they are stored once.
fn statements(locked: &LockedFn) -> TokenStream {
    let warnings = warnings(locked);
    let call = call(locked);
    let Steps { body, run, check } = steps(locked);
    let ending = if has_ordinary_ending(locked) {
        ordinary_ending(locked, &run)
    } else {
        ending(locked, &run, &check)
    };
    quote_spanned! {mixed()=>
        #warnings
        let call = #call;
        #body
        #ending
    }
}

/// Whether the return type alone says what every failure gives, which is how most functions are.
///
/// Their expansion is as short as it can be: the macro crate is built without optimization, and
/// each token costs.
fn has_ordinary_ending(locked: &LockedFn) -> bool {
    let says_nothing = locked.on_busy.is_none() && locked.on_error.is_none();
    says_nothing && !matches!(locked.road, Road::Sync) && !is_never(&return_type(locked))
}

/// ```text
/// Output: value::<Option<u8>>(run(call, body).await)
/// ```
fn ordinary_ending(locked: &LockedFn, run: &TokenStream) -> TokenStream {
    let place = return_span(locked);
    let private = private_at(locked, place);
    let ty = return_type(locked);
    quote_spanned!(mixed().located_at(place)=> #private::value::<#ty>(#run))
}

fn ending(locked: &LockedFn, run: &TokenStream, check: &TokenStream) -> TokenStream {
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

/// What differs between a function that awaits and one that waits on its thread.
struct Steps {
    body: TokenStream,
    run: TokenStream,
    check: TokenStream,
}

fn steps(locked: &LockedFn) -> Steps {
    match &locked.road {
        Road::Async | Road::Boxed(_) => awaiting(locked),
        Road::Sync => waiting(locked),
    }
}

/// ```text
/// Input:  guard = lock, on_busy = BUSY
/// Output: let granted = Granted::default();
///         let body = { let granted = granted.clone(); async move { … } };
///         run(call, body).granting(granted).even_when_busy().await
/// ```
fn awaiting(locked: &LockedFn) -> Steps {
    let private = private(locked);
    let allow = allowed(locked);
    let future = body(locked);
    let is_told =
        locked.guard.is_some() || answers_busy(locked) || matches!(locked.road, Road::Boxed(_));
    let (body, granting) = if is_told {
        let body = quote_spanned! {mixed()=>
            let granted = #private::Granted::default();
            #allow
            let body = { let granted = ::core::clone::Clone::clone(&granted); #future };
        };
        (body, quote_spanned!(mixed()=> .granting(granted)))
    } else {
        (quote_spanned!(mixed()=> #allow let body = #future;), TokenStream::new())
    };
    let even_when_busy = answers_busy(locked).then(|| quote_spanned!(mixed()=> .even_when_busy()));
    let run = quote_spanned!(mixed()=> #private::run(call, body) #granting #even_when_busy .await);
    Steps { body, run, check: TokenStream::new() }
}

/// ```text
/// Output: run_blocking(call, move |_: Lease| BODY)
///         Returned::new(&value).is_no_future();
/// ```
fn waiting(locked: &LockedFn) -> Steps {
    let private = private(locked);
    let closure = body(locked);
    let run = if answers_busy(locked) {
        quote_spanned!(mixed()=> #private::run_blocking_even_when_busy(call, #closure))
    } else {
        quote_spanned!(mixed()=> #private::run_blocking(call, #closure))
    };
    Steps { body: TokenStream::new(), run, check: check(locked) }
}

/// Whether the body says what the call gives when another holder has the lock: it has the
/// parameters.
fn answers_busy(locked: &LockedFn) -> bool {
    matches!(locked.on_busy, Some(OnBusy::Value(_)))
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

/// The body as what the runtime runs.
///
/// ```text
/// Input:  guard = lock
/// Output: async move { FAKE_RETURN let _ = (PARAMETERS,); let lock = granted.lease().await; { BODY } }
///         move |lock: Lease| { FAKE_RETURN let _ = (PARAMETERS,); { BODY } }       of a sync function
///         async move { start(CLOSURE, granted.lease().await).await }               of a boxed future
///
/// Input:  guard = lock, on_busy = BUSY
/// Output: async move {
///             FAKE_RETURN
///             let _ = (PARAMETERS,);
///             match granted.outcome().await { None => BUSY, Some(lock) => { BODY } }
///         }
/// ```
fn body(locked: &LockedFn) -> TokenStream {
    let braces = locked.target.braces.span();
    // With the user's span rustc would find these braces unnecessary; with another location it
    // would report a wrong tail expression at the attribute.
    let user = braced(locked.target.body.clone(), mixed().located_at(braces));
    let outcome = match (&locked.on_busy, &locked.guard, &locked.road) {
        (Some(OnBusy::Value(busy)), ..) => busy_or_body(locked, &busy.to_token_stream(), &user),
        (_, Some(lease), Road::Async) => {
            quote_spanned!(mixed()=> let #lease = granted.lease().await; #user)
        }
        _ => user.into(),
    };
    let fake_return = fake_return(locked);
    let kept = kept_parameters(locked);
    // The user's span again, or the body is lost to coverage.
    let block = braced(quote!(#fake_return #kept #outcome), braces);
    match &locked.road {
        Road::Async => quote_spanned!(braces=> async move #block),
        Road::Sync => closure(locked, &block),
        Road::Boxed(_) => boxed_body(locked, &block),
    }
}

fn busy_or_body(locked: &LockedFn, busy: &TokenStream, user: &TokenTree) -> TokenStream {
    let lease = lease_name(locked);
    let (granted, busy) = match &locked.road {
        Road::Async => (quote_spanned!(mixed()=> granted.outcome().await), busy.clone()),
        Road::Sync => (quote_spanned!(mixed()=> granted), busy.clone()),
        Road::Boxed(_) => (quote_spanned!(mixed()=> granted), boxed(busy)),
    };
    quote_spanned! {mixed()=>
        match #granted {
            ::core::option::Option::None => #busy,
            ::core::option::Option::Some(#lease) => #user
        }
    }
}

/// A body that is no async block: `return` in it gives a value, or the boxed future.
fn closure(locked: &LockedFn, block: &TokenTree) -> TokenStream {
    let private = private(locked);
    let parameter = if answers_busy(locked) {
        quote_spanned!(mixed()=> granted: ::core::option::Option<#private::Lease>)
    } else {
        let lease = lease_name(locked);
        quote_spanned!(mixed()=> #lease: #private::Lease)
    };
    quote_spanned!(mixed()=> move |#parameter| #block)
}

fn boxed_body(locked: &LockedFn, block: &TokenTree) -> TokenStream {
    let private = private(locked);
    let closure = closure(locked, block);
    let granted = if answers_busy(locked) {
        quote_spanned!(mixed()=> granted.outcome().await)
    } else {
        quote_spanned!(mixed()=> granted.lease().await)
    };
    quote_spanned!(mixed()=> async move { #private::start(#closure, #granted).await })
}

/// What the body calls its lease.
fn lease_name(locked: &LockedFn) -> TokenStream {
    let unnamed = || quote_spanned!(mixed()=> _);
    locked.guard.as_ref().map_or_else(unnamed, ToTokens::to_token_stream)
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
    let private = private_at(locked, return_span(locked));
    quote_spanned! {mixed().located_at(return_span(locked))=>
        if false {
            return #private::absent::<#ty>();
        }
    }
}

/// Whether this is `!`, which only a signature may name.
fn is_never(ty: &Type) -> bool {
    matches!(ty, Type::Never(_))
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
