//! The names that a signature binds.

use std::collections::BTreeMap;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, GenericParam, Ident, Pat, Signature};

pub(crate) struct Bound<'a> {
    pub(crate) ident: &'a Ident,
    /// Whether a `cfg` may remove the parameter.
    pub(crate) is_conditional: bool,
}

/// Everything in the signature that a key may name, except `self`.
pub(crate) fn bound_by(sig: &Signature) -> Vec<Bound<'_>> {
    let consts = sig.generics.params.iter().filter_map(|param| match param {
        GenericParam::Const(param) => Some(Bound { ident: &param.ident, is_conditional: false }),
        _ => None,
    });
    parameters(sig).chain(consts).collect()
}

pub(crate) fn parameters(sig: &Signature) -> impl Iterator<Item = Bound<'_>> {
    sig.inputs.iter().flat_map(|input| {
        let FnArg::Typed(param) = input else { return Vec::new() };
        let mut idents = Vec::new();
        in_pattern(&param.pat, &mut idents);
        let is_conditional = param.attrs.iter().any(is_cfg);
        idents.into_iter().map(|ident| Bound { ident, is_conditional }).collect()
    })
}

fn is_cfg(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr")
}

fn in_pattern<'a>(pattern: &'a Pat, names: &mut Vec<&'a Ident>) {
    match pattern {
        Pat::Ident(name) => {
            names.push(&name.ident);
            if let Some((_, inner)) = &name.subpat {
                in_pattern(inner, names);
            }
        }
        // Every alternative binds the same names.
        Pat::Or(or) => or.cases.first().into_iter().for_each(|case| in_pattern(case, names)),
        Pat::Paren(paren) => in_pattern(&paren.pat, names),
        Pat::Reference(reference) => in_pattern(&reference.pat, names),
        Pat::Type(typed) => in_pattern(&typed.pat, names),
        Pat::Slice(slice) => slice.elems.iter().for_each(|elem| in_pattern(elem, names)),
        Pat::Tuple(tuple) => tuple.elems.iter().for_each(|elem| in_pattern(elem, names)),
        Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|elem| in_pattern(elem, names)),
        Pat::Struct(record) => {
            record.fields.iter().for_each(|field| in_pattern(&field.pat, names));
        }
        _ => {}
    }
}

/// Adds every word and every name in a hole, at any depth, without fields and methods; each with its first place.
pub(crate) fn mentioned_in(tokens: TokenStream, mentioned: &mut BTreeMap<String, Span>) {
    let mut dots = 0;
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) if dots != 1 => {
                mentioned.entry(unraw(ident)).or_insert_with(|| ident.span());
            }
            TokenTree::Group(group) => mentioned_in(group.stream(), mentioned),
            TokenTree::Literal(literal) => {
                for name in in_holes(&literal.to_string()) {
                    mentioned.entry(name.to_owned()).or_insert_with(|| literal.span());
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        let is_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
        dots = if is_dot { dots + 1 } else { 0 };
    }
}

/// As from `"{first} and {second:?}"`.
fn in_holes(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split('{').skip(1).filter_map(move |after| after.split(|c| !is_part(c)).next())
}

/// The names that a body binds from `__arg1` and the like, at any depth.
///
/// ```text
/// Input:  let (a, b) = { let __arg1 = __arg1; __arg1 }; BODY
/// Output: a, b
/// ```
pub(crate) fn taken_apart_in(body: &TokenStream, names: &mut BTreeMap<String, Span>) {
    let tokens: Vec<TokenTree> = body.clone().into_iter().collect();
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
    let is_let = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "let");
    for statement in tokens.split(is_end) {
        let start = statement.iter().rposition(is_let);
        let binding = start.and_then(|start| statement.get(start + 1..)).unwrap_or_default();
        if let [pattern @ .., TokenTree::Punct(_), TokenTree::Group(value)] = binding
            && is_hidden_parameter(value)
        {
            mentioned_in(pattern.iter().cloned().collect(), names);
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            taken_apart_in(&group.stream(), names);
        }
    }
}

fn is_hidden_parameter(value: &Group) -> bool {
    let name = value.stream().into_iter().nth(1);
    matches!(name, Some(TokenTree::Ident(name)) if name.to_string().starts_with("__arg"))
}

/// Without `r#`, as in a hole.
pub(crate) fn unraw(ident: &Ident) -> String {
    ident.unraw().to_string()
}
