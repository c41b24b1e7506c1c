//! The call of the runtime: the key and the options.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Ident, LitInt};

use crate::args::{Count, Key, KeyArgument, OnLost, Permits, Wait, WrittenDuration};
use crate::expand::label::label;
use crate::expand::tokens::{mixed, private, private_at};
use crate::key::{KeyTemplate, Source};
use crate::model::LockedFn;
use crate::names;

/// Everything the user wrote is evaluated here, once.
///
/// ```text
/// Input:  key = "order:{id}", expire = 10
/// Output: let mut call = Call::new(LABEL, KEY);
///         call.expire = Some(Duration::from_millis(10000));
/// ```
pub(super) fn call(locked: &LockedFn) -> TokenStream {
    let private = private();
    let label = label(locked);
    let call = match &locked.key {
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
    let all_permits = locked.permits.as_ref().filter(|permits| permits.is_all).map(|permits| {
        let count = count(&permits.count);
        quote_spanned!(mixed()=> .all_permits(#count))
    });
    let options = options(locked);
    let mutable = (!options.is_empty()).then(|| quote_spanned!(mixed()=> mut));
    quote_spanned!(mixed()=> let #mutable call = #call #all_permits; #options)
}

/// ```text
/// Input:  permits = 3, wait = 3, fair, on_lost = finish
/// Output: call.options.permits = Permits::OneOf(3_u32);
///         call.options.wait = Wait::AtMost(Duration::from_millis(3000));
///         call.options.fair = true;
///         call.options.on_lost = OnLost::Finish;
/// ```
fn options(LockedFn { permits, prefix, wait, lease, locker, .. }: &LockedFn) -> TokenStream {
    let private = private();
    let mut options = TokenStream::new();
    let mut set = |field: &str, value: TokenStream| {
        let field = field.split('.').map(|name| Ident::new(name, mixed()));
        options.extend(quote_spanned!(mixed()=> call #(.#field)* = #value;));
    };
    if let Some(Permits { count: number, is_all: false }) = permits {
        let count = count(number);
        set("options.permits", quote_spanned!(mixed()=> #private::Permits::OneOf(#count)));
    }
    if let Some(prefix) = prefix {
        set("prefix", some(prefix));
    }
    match &wait.wait {
        None => {}
        Some(Wait::Forever) => {
            set("options.wait", quote_spanned!(mixed()=> #private::Wait::Forever));
        }
        Some(Wait::AtMost(limit)) => {
            let limit = duration(limit, "IntoWait", "into_wait");
            set("options.wait", quote_spanned!(mixed()=> #private::Wait::AtMost(#limit)));
        }
    }
    for (field, is_on) in
        [("options.fair", wait.fair), ("blocking", wait.blocking), ("options.renew", lease.renew)]
    {
        if is_on {
            set(field, quote_spanned!(mixed()=> true));
        }
    }
    if let Some(expire) = &lease.expire {
        set("expire", some(duration(expire, "IntoExpire", "into_expire")));
    }
    for (field, limit) in
        [("options.max_hold", &lease.max_hold), ("options.min_hold", &lease.min_hold)]
    {
        if let Some(limit) = limit {
            set(field, some(duration(limit, "IntoHold", "into_hold")));
        }
    }
    if let Some(period) = &lease.once {
        let period = duration(period, "IntoHold", "into_hold");
        set("options.once", some(quote_spanned!(mixed()=> #private::Once::For(#period))));
    }
    if matches!(lease.on_lost, Some(OnLost::Finish)) {
        set("options.on_lost", quote_spanned!(mixed()=> #private::OnLost::Finish));
    }
    if let Some(locker) = locker {
        let reference = reference(locker);
        options.extend(quote_spanned!(mixed()=> call.locker(#reference);));
    }
    options
}

fn some(value: impl ToTokens) -> TokenStream {
    quote_spanned!(mixed()=> ::core::option::Option::Some(#value))
}

fn count(count: &Count) -> TokenStream {
    match count {
        Count::Expression(count) => converted(count, "IntoPermits", "into_permits"),
        Count::Literal(number) => {
            LitInt::new(&format!("{}_u32", number.base10_digits()), number.span()).to_token_stream()
        }
    }
}

fn duration(written: &WrittenDuration, of: &str, into: &str) -> TokenStream {
    match written {
        WrittenDuration::Expression(value) => converted(value, of, into),
        WrittenDuration::Literal { ms, .. } => {
            quote_spanned!(mixed()=> ::core::time::Duration::from_millis(#ms))
        }
    }
}

/// ```text
/// Input:  LIMIT, "IntoWait", "into_wait"
/// Output: IntoWait::into_wait(LIMIT)
/// ```
fn converted(value: &Expr, of: &str, into: &str) -> TokenStream {
    let (private, of, into) = (private(), Ident::new(of, mixed()), Ident::new(into, mixed()));
    quote_spanned!(mixed()=> #private::#of::#into(#value))
}

/// Renders the key: the user's own literal, with every value escaped.
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

/// The names in the template, with the value of each.
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

/// `&value`, with parentheses if it has several tokens.
fn reference(value: &impl ToTokens) -> TokenStream {
    let span = mixed().located_at(value.span());
    let tokens = value.to_token_stream();
    if tokens.clone().into_iter().nth(1).is_none() {
        return quote_spanned!(span=> &#tokens);
    }
    quote_spanned!(span=> &(#tokens))
}

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
