//! What a refused attribute leaves behind: the reasons, and always the item, so that its callers compile.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::Error;

use crate::target;

pub(crate) fn refused(item: TokenStream, mistakes: &Error) -> TokenStream {
    // A second attribute would repeat these mistakes, or expand as if nothing were wrong.
    let item = target::without_our_attributes(item);
    let errors = mistakes.to_compile_error();
    // What only the key would have used is no second mistake.
    quote!(#[allow(unused)] #item #errors)
}

/// Empties the body, which uses a name that only the attribute binds.
///
/// ```text
/// Input:  async fn f() -> u64 { lock.fencing_token() }
/// Output: async fn f() -> u64 { ::core::unreachable!() }  and the mistakes
/// ```
pub(crate) fn refused_without_body(item: TokenStream, mistakes: &Error) -> TokenStream {
    let bodiless = item.into_iter().map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let mut empty = Group::new(Delimiter::Brace, quote!(::core::unreachable!()));
            empty.set_span(group.span());
            TokenTree::Group(empty)
        }
        token => token,
    });
    refused(bodiless.collect(), mistakes)
}
