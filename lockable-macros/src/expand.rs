//! The expansion of a proven function. It cannot fail.
//!
//! Every name of the runtime that an expansion uses is in this file.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ExprClosure, Ident, ReturnType, Type};

use crate::args::{Expire, Key, KeyArgument, OnBusy};
use crate::key::{KeyTemplate, Source};
use crate::model::LockedFn;
use crate::names;
use crate::output;

/// The function with its lock.
///
/// ```text
/// Input:  async fn f(id: u64) -> Option<u8> { BODY }
/// Output: async fn f(id: u64) -> Option<u8> { LOCKED }
/// ```
pub(crate) fn expand(locked: &LockedFn) -> TokenStream {
    let inner_attrs = &locked.target.inner_attrs;
    let statements = statements(locked);
    // The user's own braces: without their span an unused function is not reported as one.
    let block = braced(quote!(#inner_attrs #statements), locked.target.braces.span());
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
    let call = call(locked);
    let body = body(locked);
    let granted = granted(locked);
    let busy = busy_arm(locked);
    let refused = refused(locked);
    // The body may give a future, and clippy takes our async block for a mistake then. A future has
    // no answer of its own, so such a function has both options.
    let allow = (locked.on_busy.is_some() && locked.on_error.is_some())
        .then(|| quote_spanned!(mixed()=> #[allow(clippy::async_yields_async)]));
    quote_spanned! {mixed()=>
        let call = #call;
        #allow
        let body = #private::Body::new(#body);
        let error = match call.acquire().await {
            ::core::result::Result::Ok(guard) => {
                let body = ::core::pin::pin!(::core::option::Option::Some(body.start(#granted)));
                match #private::hold(guard, body).await {
                    ::core::result::Result::Ok(value) => return value,
                    ::core::result::Result::Err(error) => error,
                }
            }
            #busy
            ::core::result::Result::Err(error) => error,
        };
        #refused
    }
}

/// The call with its key and options; everything the user wrote is evaluated here, once.
///
/// ```text
/// Input:  key = "order:{id}", expire = 10
/// Output: Call::new("order:{id}", KEY).expire(Duration::from_millis(10000))
/// ```
fn call(locked: &LockedFn) -> TokenStream {
    let private = private(locked);
    let mut call = match &locked.key {
        Key::Value(value) => {
            quote_spanned!(mixed()=> #private::Call::with_key(#value))
        }
        Key::Template(template, arguments) => {
            let text = template.literal.value();
            let key = key(template, arguments, locked);
            quote_spanned!(mixed()=> #private::Call::new(#text, #key))
        }
    };
    if let Some(prefix) = &locked.prefix {
        call.extend(quote_spanned!(mixed()=> .prefix(#prefix)));
    }
    match &locked.expire {
        Some(Expire::Milliseconds(ms)) => {
            call.extend(quote_spanned! {mixed()=>
                .expire(::core::time::Duration::from_millis(#ms))
            });
        }
        Some(Expire::Duration(value)) => call.extend(quote_spanned!(mixed()=> .expire(#value))),
        None => {}
    }
    if let Some(locker) = &locked.locker {
        let reference = reference(locker);
        call.extend(quote_spanned!(mixed()=> .locker(#reference)));
    }
    call
}

/// The rendered key: the user's own literal, with every value escaped.
///
/// ```text
/// Input:  key("stock:{}:{region}", item.sku), where `region` is a parameter
/// Output: format_args!("stock:{}:{region}", Part::new(&item.sku, ":"), region = Part::new(&region, ""))
/// ```
///
/// A name that the signature does not bind is left to `format_args!`, which reports a misspelt one
/// with a caret inside the literal.
fn key(template: &KeyTemplate, arguments: &[KeyArgument], locked: &LockedFn) -> TokenStream {
    let literal = &template.literal;
    let given = arguments.iter().enumerate().map(|(place, argument)| {
        let fills = |source: &Source| match source {
            Source::Place(wanted) => *wanted == place,
            Source::Name(wanted) => argument.name.as_ref().is_some_and(|name| name == wanted),
        };
        let part = part(&argument.value, &template.delimiters(fills), locked);
        let name = argument.name.iter();
        quote_spanned!(mixed()=> #(#name =)* #part)
    });
    let captured = captured(template, arguments, locked).into_iter().map(|(name, value)| {
        let fills = |source: &Source| matches!(source, Source::Name(wanted) if *wanted == name);
        let part = part(&value, &template.delimiters(fills), locked);
        let name = Ident::new(&name, mixed());
        quote_spanned!(mixed()=> #name = #part)
    });
    quote_spanned!(mixed()=> ::core::format_args!(#literal #(, #given)* #(, #captured)*))
}

/// The names in the template that are escaped by name, each with what it stands for.
fn captured(
    template: &KeyTemplate,
    arguments: &[KeyArgument],
    locked: &LockedFn,
) -> Vec<(String, Ident)> {
    let bound = names::bound_by(&locked.target.sig);
    let at = template.literal.span();
    let not_given =
        |name: &&str| !arguments.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n == name));
    let names = template.names().into_iter().filter(not_given);
    let value = |name: &str| match name {
        "self" => locked.target.sig.receiver().map(|_| Ident::new("self", at)),
        _ if bound.iter().any(|bound| names::unraw(bound.ident) == name) => {
            Some(names::ident(name, at))
        }
        // A constant of the surroundings.
        _ => name.starts_with(char::is_uppercase).then(|| names::ident(name, at)),
    };
    names.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

/// One value of the key, escaped.
fn part(value: &impl ToTokens, delimiters: &str, locked: &LockedFn) -> TokenStream {
    let private = private_at(locked, value.span());
    let reference = reference(value);
    let mut part = quote_spanned!(mixed().located_at(value.span())=> #private::Part::new);
    // From the first to the last token of the value, so that errors underline all of it.
    let last =
        value.to_token_stream().into_iter().last().map_or_else(|| value.span(), |t| t.span());
    let mut call =
        Group::new(Delimiter::Parenthesis, quote_spanned!(mixed()=> #reference, #delimiters));
    call.set_span(mixed().located_at(last));
    part.extend([TokenTree::Group(call)]);
    part
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
fn body(locked: &LockedFn) -> TokenStream {
    let private = private(locked);
    let unnamed = || quote_spanned!(mixed()=> _);
    let lease = locked.guard.as_ref().map_or_else(unnamed, ToTokens::to_token_stream);
    let braces = locked.target.braces.span();
    // With the user's span rustc would find these braces unnecessary; with another location it
    // would report a wrong tail expression at the attribute.
    let user = braced(locked.target.body.clone(), mixed().located_at(braces));
    let (parameter, outcome) = match &locked.on_busy {
        Some(OnBusy::Value(busy)) => (
            quote_spanned!(mixed()=> granted: ::core::option::Option<#private::Lease>),
            quote_spanned! {mixed()=>
                match granted {
                    ::core::option::Option::None => #busy,
                    ::core::option::Option::Some(#lease) => #user
                }
            },
        ),
        _ => (quote_spanned!(mixed()=> #lease: #private::Lease), user.into()),
    };
    let fake_return = fake_return(locked);
    let kept = kept_parameters(locked);
    // The user's span again, or the body is lost to coverage.
    let block = braced(quote!(#fake_return #kept #outcome), braces);
    let future = quote_spanned!(braces=> async move #block);
    quote_spanned!(mixed()=> move |#parameter| #future)
}

/// Tells the compiler what the body must be, before it sees the body.
///
/// Without it `Ok(Box::new(|| ()))` is not coerced to what the signature says, and a wrong type is
/// reported at the attribute.
fn fake_return(locked: &LockedFn) -> TokenStream {
    let ty = return_type(locked);
    if matches!(ty, Type::Never(_)) || ty.to_token_stream().to_string() == "_" {
        return TokenStream::new();
    }
    quote_spanned! {mixed().located_at(return_span(locked))=>
        if let ::core::option::Option::Some(value) = ::core::option::Option::None::<#ty> {
            return value;
        }
    }
}

/// Moves parameters into the body whole, so that they are dropped before the lock is released.
///
/// Left alone, the closure would take only the fields that the body mentions, and nothing of a
/// `_permit`. The order is that of an `async fn`, which drops the last parameter first. What nobody
/// mentions is left out: rustc reports it as unused.
fn kept_parameters(locked: &LockedFn) -> TokenStream {
    let sig = &locked.target.sig;
    let mentioned = mentioned(locked);
    let receiver = sig.receiver().map(|receiver| Ident::new("self", receiver.self_token.span));
    let parameters = names::parameters(sig).filter(|param| !param.is_conditional);
    let names = receiver.into_iter().chain(parameters.map(|param| param.ident.clone()));
    let mut kept: Vec<Ident> = names
        .filter_map(|mut name| {
            let text = names::unraw(&name);
            let unmentioned = || text.starts_with('_').then(|| name.span());
            // Errors about a moved parameter then show where it is used.
            let place = mentioned.get(&text).copied().or_else(unmentioned)?;
            name.set_span(name.span().located_at(place));
            Some(name)
        })
        .collect();
    if kept.is_empty() {
        return TokenStream::new();
    }
    kept.reverse();
    let has_underscore = kept.iter().any(|name| name.to_string().starts_with('_'));
    let allow =
        has_underscore.then(|| quote_spanned!(mixed()=> #[allow(clippy::used_underscore_binding)]));
    quote_spanned! {mixed()=>
        #allow
        let _ = (#(&#kept,)*);
    }
}

/// The names that the body mentions, and those in the key's template: both are used, so that to
/// mention them once more hides no warning. An argument of the key may have been moved into it.
fn mentioned(locked: &LockedFn) -> BTreeMap<String, Span> {
    let mut mentioned = BTreeMap::new();
    names::mentioned_in(locked.target.body.clone(), &mut mentioned);
    if let Some(OnBusy::Value(value)) = &locked.on_busy {
        names::mentioned_in(value.to_token_stream(), &mut mentioned);
    }
    if let Key::Template(template, arguments) = &locked.key {
        for (name, value) in captured(template, arguments, locked) {
            mentioned.entry(name).or_insert_with(|| value.span());
        }
    }
    mentioned
}

/// What the closure is given when the lock is granted.
fn granted(locked: &LockedFn) -> TokenStream {
    let lease = quote_spanned!(mixed()=> guard.lease());
    if matches!(locked.on_busy, Some(OnBusy::Value(_))) {
        return quote_spanned!(mixed()=> ::core::option::Option::Some(#lease));
    }
    lease
}

/// The arm for a lock that another holder has, where it differs from the other failures.
fn busy_arm(locked: &LockedFn) -> TokenStream {
    let value = match (&locked.on_busy, &locked.on_error) {
        // Pinned on its own, the future shares its place with the one that is held.
        (Some(OnBusy::Value(_)), _) => quote_spanned! {mixed()=>
            ::core::pin::pin!(body.start(::core::option::Option::None)).await
        },
        (Some(OnBusy::Skip(word)), _) => {
            let private = private_at(locked, word.span());
            quote_spanned!(mixed().located_at(word.span())=> #private::Skip::skip())
        }
        (None, Some(_)) => refused_by_type(locked),
        (None, None) => return TokenStream::new(),
    };
    quote_spanned! {mixed()=>
        ::core::result::Result::Err(error) if error.is_contended() => return #value,
    }
}

/// The value of a call that did not finish under its lock.
fn refused(locked: &LockedFn) -> TokenStream {
    match &locked.on_error {
        Some(closure) => answer(closure),
        None => refused_by_type(locked),
    }
}

/// The body of `|err| expr`, in place: a call would leave the type of `err` to be inferred.
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

/// The return type's own answer, reported at the return type where it has none.
fn refused_by_type(locked: &LockedFn) -> TokenStream {
    let private = private_at(locked, return_span(locked));
    let ty = return_type(locked);
    quote_spanned! {mixed().located_at(return_span(locked))=>
        <#ty as #private::Refused>::refused(error)
    }
}

fn return_type(locked: &LockedFn) -> Type {
    output::written_inside(&locked.target.sig.output)
}

/// The return type, or the function's name where there is none.
fn return_span(locked: &LockedFn) -> Span {
    match &locked.target.sig.output {
        ReturnType::Default => locked.target.sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}

/// `&value`, with parentheses where the value is more than one token.
fn reference(value: &impl ToTokens) -> TokenStream {
    let span = mixed().located_at(value.span());
    let tokens = value.to_token_stream();
    if tokens.clone().into_iter().nth(1).is_none() {
        return quote_spanned!(span=> &#tokens);
    }
    quote_spanned!(span=> &(#tokens))
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
