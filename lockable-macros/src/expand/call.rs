//! The call of the runtime: the key and the options, as the user wrote them.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, LitInt};

use crate::args::{
    Count, Key, KeyArgument, LeaseArgs, OnLost, Permits, Wait, WaitArgs, WrittenDuration,
};
use crate::expand::label::label;
use crate::expand::tokens::{mixed, private, private_at};
use crate::key::{KeyTemplate, Source};
use crate::model::LockedFn;
use crate::names;

/// The call with its key and options; everything the user wrote is evaluated here, once.
///
/// ```text
/// Input:  key = "order:{id}", expire = 10
/// Output: Call::new(LABEL, KEY).expire(Duration::from_millis(10000))
/// ```
pub(super) fn call(locked: &LockedFn) -> TokenStream {
    let private = private();
    let label = label(locked);
    let mut call = match &locked.key {
        Key::Value(value) => {
            quote_spanned!(mixed()=> #private::Call::with_key(#label, #value))
        }
        Key::Values(value) => {
            quote_spanned!(mixed()=> #private::Call::with_keys(#label, #value))
        }
        Key::Template(template, arguments) => {
            let key = key(template, arguments, captured(template, arguments, locked));
            quote_spanned!(mixed()=> #private::Call::new(#label, #key))
        }
        Key::Templates(templates) => {
            let keys = templates.iter().map(|template| {
                let literal = &template.literal;
                let key = key(template, &[], captured(template, &[], locked));
                quote_spanned!(mixed()=> (#literal, #key))
            });
            quote_spanned!(mixed()=> #private::Call::of_all(#label, [#(#keys),*]))
        }
    };
    call.extend(locked.permits.as_ref().map(permits));
    if let Some(prefix) = &locked.prefix {
        call.extend(quote_spanned!(mixed()=> .prefix(#prefix)));
    }
    call.extend(wait(&locked.wait));
    call.extend(lease(&locked.lease));
    if let Some(locker) = &locked.locker {
        let reference = reference(locker);
        call.extend(quote_spanned!(mixed()=> .locker(#reference)));
    }
    call
}

/// ```text
/// Input:  permits = all(3)
/// Output: .all_permits(3)
/// ```
fn permits(Permits { count, is_all }: &Permits) -> TokenStream {
    let method = Ident::new(if *is_all { "all_permits" } else { "permits" }, mixed());
    let count = match count {
        Count::Expression(count) => count.to_token_stream(),
        // Of one type, whatever else is a number of permits.
        Count::Literal(number) => {
            LitInt::new(&format!("{}_u32", number.base10_digits()), number.span()).to_token_stream()
        }
    };
    quote_spanned!(mixed()=> .#method(#count))
}

/// ```text
/// Input:  wait = 3, fair
/// Output: .wait(Duration::from_millis(3000)).fair()
/// ```
fn wait(args: &WaitArgs) -> TokenStream {
    let mut calls = TokenStream::new();
    match &args.wait {
        None => {}
        Some(Wait::Forever) => calls.extend(quote_spanned!(mixed()=> .wait_forever())),
        Some(Wait::AtMost(limit)) => calls.extend(with_duration("wait", Some(limit))),
    }
    calls.extend(args.fair.then(|| quote_spanned!(mixed()=> .fair())));
    calls.extend(args.blocking.then(|| quote_spanned!(mixed()=> .blocking())));
    calls
}

/// ```text
/// Input:  expire = 10, renew, max_hold = LONG, on_lost = finish
/// Output: .expire(Duration::from_millis(10000)).renew().max_hold(LONG).on_lost_finish()
/// ```
fn lease(lease: &LeaseArgs) -> TokenStream {
    let mut calls = TokenStream::new();
    calls.extend(with_duration("expire", lease.expire.as_ref()));
    calls.extend(lease.renew.then(|| quote_spanned!(mixed()=> .renew())));
    calls.extend(with_duration("max_hold", lease.max_hold.as_ref()));
    calls.extend(with_duration("min_hold", lease.min_hold.as_ref()));
    calls.extend(with_duration("once", lease.once.as_ref()));
    if matches!(lease.on_lost, Some(OnLost::Finish)) {
        calls.extend(quote_spanned!(mixed()=> .on_lost_finish()));
    }
    calls
}

fn with_duration(option: &str, written: Option<&WrittenDuration>) -> Option<TokenStream> {
    let method = Ident::new(option, mixed());
    Some(match written? {
        WrittenDuration::Literal { ms, .. } => {
            quote_spanned!(mixed()=> .#method(::core::time::Duration::from_millis(#ms)))
        }
        WrittenDuration::Expression(value) => quote_spanned!(mixed()=> .#method(#value)),
    })
}

/// The rendered key: the user's own literal, with every value escaped.
///
/// ```text
/// Input:  key("stock:{}:{region}", item.sku), where `region` is a parameter
/// Output: format_args!("stock:{}:{region}", Part::new(&item.sku, ":"), region = Part::new(&region, ""))
/// ```
pub(super) fn key(
    template: &KeyTemplate,
    arguments: &[KeyArgument],
    captured: Vec<(String, Ident)>,
) -> TokenStream {
    let literal = &template.literal;
    let given = arguments.iter().enumerate().map(|(place, argument)| {
        let fills = |source: &Source| match source {
            Source::Place(wanted) => *wanted == place,
            Source::Name(wanted) => argument.name.as_ref().is_some_and(|name| name == wanted),
        };
        let part = part(&argument.value, &template.delimiters(fills));
        let name = argument.name.iter();
        quote_spanned!(mixed()=> #(#name =)* #part)
    });
    let captured = captured.into_iter().map(|(name, value)| {
        let fills = |source: &Source| matches!(source, Source::Name(wanted) if *wanted == name);
        let part = part(&value, &template.delimiters(fills));
        let name = Ident::new(&name, mixed());
        quote_spanned!(mixed()=> #name = #part)
    });
    quote_spanned!(mixed()=> ::core::format_args!(#literal #(, #given)* #(, #captured)*))
}

/// The names in the template that are escaped by name, each with the value it names.
pub(super) fn captured(
    template: &KeyTemplate,
    arguments: &[KeyArgument],
    locked: &LockedFn,
) -> Vec<(String, Ident)> {
    let bound = names::bound_by(&locked.target.sig);
    let at = template.literal.span();
    let not_given =
        |name: &&str| !arguments.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n == name));
    let names = template.names().into_iter().filter(not_given);
    let parameter = |name: &str| bound.iter().find(|bound| names::unraw(bound.ident) == name);
    let value = |name: &str| match (name, parameter(name)) {
        ("self", _) => locked.target.sig.receiver().map(|_| Ident::new("self", at)),
        (_, Some(parameter)) => {
            let mut value = parameter.ident.clone();
            // The hygiene is the literal's: a name from the macro's caller stays unknown here.
            value.set_span(at);
            Some(value)
        }
        // A constant of the surroundings.
        (_, None) => name.starts_with(char::is_uppercase).then(|| Ident::new(name, at)),
    };
    names.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

/// One value of the key, escaped.
fn part(value: &impl ToTokens, delimiters: &str) -> TokenStream {
    let private = private_at(value.span());
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

/// `&value`, with parentheses where the value is more than one token.
fn reference(value: &impl ToTokens) -> TokenStream {
    let span = mixed().located_at(value.span());
    let tokens = value.to_token_stream();
    if tokens.clone().into_iter().nth(1).is_none() {
        return quote_spanned!(span=> &#tokens);
    }
    quote_spanned!(span=> &(#tokens))
}

/// Warns of what hardly does what was meant.
///
/// A macro on stable can warn only by using something that is deprecated.
pub(super) fn warnings(locked: &LockedFn) -> TokenStream {
    let warnings = locked.warnings.iter().map(|warning| {
        let note = &warning.note;
        let constant = Ident::new(warning.constant, mixed());
        let used = Ident::new(warning.constant, mixed().located_at(warning.place));
        quote_spanned! {mixed()=>
            {
                #[deprecated = #note]
                const #constant: () = ();
                #used
            }
        }
    });
    warnings.collect()
}
