//! Spans, the runtime's path, and the return type.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Path, ReturnType, Type};

use crate::model::{FnKind, LockedFn};
use crate::output;

pub(super) fn is_never(ty: &Type) -> bool {
    matches!(ty, Type::Never(_))
}

/// The return type, or the output of the boxed future.
pub(super) fn return_type(locked: &LockedFn) -> Type {
    match &locked.kind {
        FnKind::Async | FnKind::Sync => output::written_inside(&locked.target.sig.output),
        FnKind::Boxed(output) => Type::clone(output),
    }
}

/// That type, or the function's name without one.
pub(super) fn return_span(locked: &LockedFn) -> Span {
    match (&locked.kind, &locked.target.sig.output) {
        (FnKind::Boxed(output), _) => output.span(),
        (_, ReturnType::Default) => locked.target.sig.ident.span(),
        (_, ReturnType::Type(_, ty)) => ty.span(),
    }
}

pub(super) fn braced(tokens: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    TokenTree::Group(group)
}

/// Imports what expansions use, at the attribute, where a missing crate is then reported once.
///
/// ```text
/// Output: use ::lockable_runtime::__private as __lockable;
/// ```
pub(super) fn import(krate: Option<&Path>) -> TokenStream {
    let own_name = || quote_spanned!(mixed()=> ::lockable_runtime);
    let runtime = krate.map_or_else(own_name, ToTokens::to_token_stream);
    let door = private();
    quote_spanned!(mixed()=> use #runtime::__private as #door;)
}

/// The name that [`import`] imports.
pub(super) fn private() -> Ident {
    private_at(Span::call_site())
}

/// For names whose errors belong to what the user wrote.
pub(super) fn private_at(place: Span) -> Ident {
    Ident::new("__lockable", mixed().located_at(place))
}

/// Our names neither hide the user's nor are seen by them.
pub(super) fn mixed() -> Span {
    Span::mixed_site()
}
