//! The item under the attribute: a function whose body stays one opaque group of tokens.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Ident, Result, Signature, Token, Visibility};

pub(crate) struct Target {
    /// Attributes, visibility and signature, exactly as written.
    pub(crate) head: TokenStream,
    pub(crate) sig: Signature,
    /// Legal only at the very start of the body.
    pub(crate) inner_attrs: TokenStream,
    /// For their span.
    pub(crate) braces: Group,
    /// Without the inner attributes.
    pub(crate) body: TokenStream,
    /// A second `#[distributed_lock]`.
    pub(crate) second_lock: Option<Attribute>,
}

impl Target {
    /// Refuses what is no function at the token that says what it is.
    pub(crate) fn parse(item: &TokenStream) -> Result<Self> {
        let mut head: Vec<TokenTree> = item.clone().into_iter().collect();
        // A body that a `macro_rules!` took as a `block` is in such a group.
        let last = head.pop().map(|last| without_invisible_groups(last.into()));
        let head: TokenStream = head.into_iter().collect();
        let (attrs, sig) = match parse_head.parse2(head.clone()) {
            Ok(Head::Function(attrs, sig)) => (attrs, *sig),
            Ok(Head::Other(what)) => return Err(not_a_function(&what)),
            Err(error) => return Err(error),
        };
        let Some(TokenTree::Group(braces)) = last.and_then(|last| last.into_iter().next()) else {
            return Err(no_body(&sig));
        };
        let (inner_attrs, body) = split_inner_attributes(braces.stream());
        let second_lock = attrs.into_iter().find(|attr| is_ours(attr.path()));
        Ok(Self { head, sig, inner_attrs, braces, body, second_lock })
    }
}

/// Removes the invisible group of a `macro_rules!` fragment.
pub(crate) fn without_invisible_groups(item: TokenStream) -> TokenStream {
    let mut tokens = item.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            without_invisible_groups(group.stream())
        }
        _ => item,
    }
}

pub(crate) fn without_our_attributes(item: TokenStream) -> TokenStream {
    let mut others = TokenStream::new();
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        if is_hash && matches!(tokens.peek(), Some(TokenTree::Group(group)) if names_us(group)) {
            tokens.next();
        } else {
            others.extend([token]);
        }
    }
    others
}

enum Head {
    Function(Vec<Attribute>, Box<Signature>),
    Other(Ident),
}

/// ```text
/// Input:  #[inline] pub(crate) async fn f(id: u64) -> u8
/// Output: the attributes and the signature; for a `struct` and the like, the word `struct`
/// ```
fn parse_head(input: ParseStream<'_>) -> Result<Head> {
    let attrs = input.call(Attribute::parse_outer)?;
    let _vis: Visibility = input.parse()?;
    let word = input.fork().call(Ident::parse_any);
    if word.is_ok_and(|word| word == "default" || word == "safe") {
        // `default async fn` of specialization, `safe fn` of an `extern` block; read over, and of
        // no meaning here.
        input.call(Ident::parse_any)?;
    }
    if !starts_a_function(&input.fork()) {
        let what = item_keyword(input)?;
        skip_all(input)?;
        return Ok(Head::Other(what));
    }
    let sig = input.parse()?;
    Ok(Head::Function(attrs, Box::new(sig)))
}

/// Whether `fn` follows only words and an ABI, as in `async unsafe extern "C" fn`.
fn starts_a_function(input: ParseStream<'_>) -> bool {
    let qualifiers = ["const", "async", "unsafe", "extern", "gen"];
    while let Ok(word) = input.call(Ident::parse_any) {
        if word == "fn" {
            return true;
        }
        if !qualifiers.iter().any(|qualifier| word == qualifier) {
            return false;
        }
        if input.peek(syn::LitStr) && input.parse::<syn::LitStr>().is_err() {
            return false;
        }
    }
    false
}

/// The word that says what an item is: in `unsafe impl` and `auto trait` the second.
fn item_keyword(input: ParseStream<'_>) -> Result<Ident> {
    let first = input.call(Ident::parse_any)?;
    if first == "unsafe" || first == "auto" {
        return input.call(Ident::parse_any);
    }
    Ok(first)
}

fn skip_all(input: ParseStream<'_>) -> Result<()> {
    input.parse::<TokenStream>().map(drop)
}

fn not_a_function(what: &Ident) -> Error {
    let help = match what.to_string().as_str() {
        "impl" | "trait" => "\nhelp: put it on the methods",
        "mod" => {
            "\nhelp: put it on the functions inside\n\
             help: `automock` copies it to what it makes; put it on an implementation that is not mocked, or on a \
             function that the method calls"
        }
        _ => "",
    };
    let message = format!("`#[distributed_lock]` can only be put on a function{help}");
    Error::new(what.span(), message)
}

/// A signature alone is a method of a trait or, without `self` and `async`, perhaps a foreign function.
fn no_body(sig: &Signature) -> Error {
    let message = if sig.receiver().is_some() || sig.asyncness.is_some() {
        "nothing to lock here: this method has no body\n\
         help: put the attribute on the implementations or give a default body"
    } else {
        "nothing to lock here: this function has no body\n\
         help: in a trait, put the attribute on the implementations or give a default body\n\
         help: in an `extern` block, call it from a function of your own and put the attribute on that"
    };
    Error::new(sig.ident.span(), message)
}

/// Splits `#![allow(..)] let x = 1;` after the last inner attribute.
fn split_inner_attributes(body: TokenStream) -> (TokenStream, TokenStream) {
    // Hardly a body has any, and to parse it costs more than all the rest.
    let is_hash = |token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '#');
    if !body.clone().into_iter().next().is_some_and(is_hash) {
        return (TokenStream::new(), body);
    }
    let split = |input: ParseStream<'_>| {
        let mut inner = TokenStream::new();
        while input.peek(Token![#]) && input.peek2(Token![!]) && input.peek3(syn::token::Bracket) {
            for _ in 0..3 {
                inner.extend([input.parse::<TokenTree>()?]);
            }
        }
        Ok((inner, input.parse::<TokenStream>()?))
    };
    split.parse2(body.clone()).unwrap_or_else(|_| (TokenStream::new(), body))
}

/// However it was imported.
fn is_ours(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|segment| segment.ident == "distributed_lock")
}

fn names_us(brackets: &Group) -> bool {
    let path = |input: ParseStream<'_>| {
        let path = input.call(syn::Path::parse_mod_style)?;
        skip_all(input)?;
        Ok(path)
    };
    brackets.delimiter() == Delimiter::Bracket
        && path.parse2(brackets.stream()).is_ok_and(|path| is_ours(&path))
}
