//! `lock_key!`: one key, rendered as by the attribute.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, Result};

use crate::args::{Key, template_and_arguments};
use crate::expand::call::key;
use crate::expand::tokens::{import, mixed, private};
use crate::mistakes::Mistakes;

/// ```text
/// Input:  "sku:{}:{region}", item.sku
/// Output: {
///             use ::lockable_runtime::__private as __lockable;
///             __lockable::lock_key(
///                 "sku:{}:{region}",
///                 format_args!("sku:{}:{region}", Part::new(&item.sku, ":"), region = Part::new(&region, ""))
///             )
///         }
/// ```
pub(crate) fn lock_key(tokens: TokenStream) -> TokenStream {
    match read(tokens) {
        Ok(key) => key,
        Err(mistakes) => {
            let errors = mistakes.to_compile_error();
            quote!({ #errors })
        }
    }
}

fn read(tokens: TokenStream) -> Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let read = |input: ParseStream<'_>| {
        if input.is_empty() {
            let message = "the key is missing\nhelp: `key(\"order:{}\", order.id)`";
            return Err(Error::new(Span::call_site(), message));
        }
        template_and_arguments(input, &mut mistakes)
    };
    let read = read.parse2(tokens).map_err(|error| mistakes.push(error)).ok();
    mistakes.or(read.as_ref().and_then(expanded)).map_err(|mistakes| in_own_words(&mistakes))
}

fn expanded(read: &Key) -> Option<TokenStream> {
    let (import, private) = (import(None), private());
    let (template, arguments) = read.templates().into_iter().next()?;
    let literal = &template.literal;
    let is_given =
        |name: &str| arguments.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n == name));
    let names = template.names().into_iter().filter(|name| !is_given(name));
    // All names are in sight here, with the hygiene of the literal.
    let captured = names.map(|name| (name.to_owned(), Ident::new(name, literal.span())));
    let key = key(template, arguments, captured.collect());
    Some(quote_spanned! {mixed()=>
        {
            #import
            #private::lock_key(#literal, #key)
        }
    })
}

/// Calls the attribute's form `key(..)` by this macro's name.
fn in_own_words(mistakes: &Error) -> Error {
    let own =
        |error: Error| Error::new(error.span(), error.to_string().replace("`key(", "`lock_key!("));
    let mut all = mistakes.clone().into_iter().map(own);
    let mut first = all.next().unwrap_or_else(|| mistakes.clone());
    first.extend(all);
    first
}
