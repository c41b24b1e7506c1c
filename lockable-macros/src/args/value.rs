//! The values of the options.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprArray, ExprBlock, ExprClosure, ExprLit, Ident, Lit, LitStr, Path, Result,
    Stmt, Token, parenthesized,
};

use crate::key::KeyTemplate;
use crate::mistakes::Mistakes;

pub(crate) enum Key {
    Template(KeyTemplate, Vec<KeyArgument>),
    /// A `LockKey`.
    Value(Expr),
    Templates(Vec<KeyTemplate>),
    /// Several `LockKey`s.
    Values(Expr),
}

impl Key {
    pub(crate) fn templates(&self) -> Vec<(&KeyTemplate, &[KeyArgument])> {
        match self {
            Self::Template(template, arguments) => vec![(template, arguments)],
            Self::Templates(templates) => {
                templates.iter().map(|one| (one, [].as_slice())).collect()
            }
            Self::Value(_) | Self::Values(_) => Vec::new(),
        }
    }

    pub(crate) fn is_several(&self) -> bool {
        matches!(self, Self::Templates(_) | Self::Values(_))
    }
}

/// Of `key("…", …)`.
pub(crate) struct KeyArgument {
    pub(crate) name: Option<Ident>,
    pub(crate) value: Expr,
}

pub(crate) enum OnBusy {
    /// For its span.
    Skip(Ident),
    Value(Expr),
}

impl Parse for KeyArgument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let is_named =
            input.peek(Ident::peek_any) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = if is_named {
            let name = input.call(Ident::parse_any)?;
            input.parse::<Token![=]>()?;
            Some(name)
        } else {
            None
        };
        Ok(Self { name, value: input.parse()? })
    }
}

pub(super) fn key(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Key> {
    match visible(input.parse()?) {
        Expr::Lit(lit) => match lit.lit {
            Lit::Str(text) => Ok(Key::Template(KeyTemplate::parse(text, mistakes), Vec::new())),
            other => Err(no_text_key(&other)),
        },
        Expr::Array(list) => {
            let message = "`key` is one key\n\
                 help: for several locks write `keys = [\"account:{from}\", \"account:{to}\"]`";
            Err(Error::new(list.span(), message))
        }
        value => Ok(Key::Value(value)),
    }
}

/// Of one list; a value may be more keys.
const MOST_TEMPLATES: usize = 16;

pub(super) fn keys(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Key> {
    match visible(input.parse()?) {
        Expr::Lit(lit) => Err(no_list(&lit)),
        Expr::Block(block) if is_text(&block) => {
            let message = "`keys` is a list in brackets\n\
                 help: `keys = [\"account:{from}\", \"account:{to}\"]`, or `key = \"order:{id}\"` for one lock";
            Err(Error::new(block.span(), message))
        }
        Expr::Array(list) => {
            let count = list.elems.len();
            let elements: Vec<Expr> = list.elems.iter().cloned().map(visible).collect();
            let texts: Vec<&LitStr> = elements.iter().filter_map(text_of).collect();
            match texts.len() {
                0 if count > 0 => Ok(Key::Values(Expr::Array(list))),
                2..=MOST_TEMPLATES if texts.len() == count => {
                    let template = |text: &LitStr| KeyTemplate::parse(text.clone(), mistakes);
                    Ok(Key::Templates(texts.into_iter().map(template).collect()))
                }
                found if found == count => Err(wrong_count(&list, count)),
                _ => Err(mixed_list(&elements)),
            }
        }
        value => Ok(Key::Values(value)),
    }
}

/// Whether this is `{"#id"}`, a list in annotations of other languages.
fn is_text(block: &ExprBlock) -> bool {
    matches!(block.block.stmts.as_slice(), [Stmt::Expr(text, None)] if text_of(text).is_some())
}

fn text_of(element: &Expr) -> Option<&LitStr> {
    match element {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

fn no_list(literal: &ExprLit) -> Error {
    let text = literal.to_token_stream();
    let message = format!(
        "`keys` is a list\nhelp: write `key = {text}` for one lock, or `keys = [{text}, ..]`"
    );
    Error::new(literal.span(), message)
}

fn wrong_count(list: &ExprArray, count: usize) -> Error {
    let help = match count {
        0 => "a function without a key has no lock".to_owned(),
        1 => format!("for one lock write `key = {}`", list.elems.to_token_stream()),
        _ => "a value may be up to 64 keys: `keys = accounts`, a `Vec<LockKey>`".to_owned(),
    };
    let message = format!("`keys` takes 2 to 16 templates, got {count}\nhelp: {help}");
    Error::new(list.span(), message)
}

fn mixed_list(elements: &[Expr]) -> Error {
    let other = elements.iter().find(|element| text_of(element).is_none());
    let message = "the templates of `keys` are string literals\n\
         help: write values that are no parameters with `lock_key!(\"account:{}\", order.from)`, in each place of \
         the list";
    Error::new(other.map_or_else(Span::call_site, Spanned::span), message)
}

/// Reads `key("stock:{}", item.sku)` from the parentheses on.
pub(super) fn key_with_arguments(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Key> {
    let content;
    let parentheses = parenthesized!(content in input);
    if content.is_empty() {
        let message = "the key is missing\nhelp: `key(\"order:{}\", order.id)`";
        return Err(Error::new(parentheses.span.join(), message));
    }
    let key = template_and_arguments(&content, mistakes);
    // One mistake is enough: what is left unread would be a second one.
    content.parse::<TokenStream>()?;
    key
}

pub(crate) fn template_and_arguments(
    content: ParseStream<'_>,
    mistakes: &mut Mistakes,
) -> Result<Key> {
    let template = match visible(content.parse()?) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            KeyTemplate::parse(text, mistakes).meant_literally()
        }
        Expr::Lit(other) => return Err(no_text_key(&other.lit)),
        other => return Err(no_literal_template(&other)),
    };
    if !content.is_empty() && !content.peek(Token![,]) {
        return Err(content.error("expected `,` after the key's template"));
    }
    let _comma: Option<Token![,]> = content.parse()?;
    let arguments = Punctuated::<KeyArgument, Token![,]>::parse_terminated(content)?;
    Ok(Key::Template(template, arguments.into_iter().collect()))
}

pub(super) fn text(input: ParseStream<'_>) -> Result<LitStr> {
    match visible(input.parse()?) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => {
            let message = "the prefix must be a string literal\n\
                 help: what differs from call to call belongs into `key`, as in `key = \"order:{id}\"`";
            Err(Error::new(other.span(), message))
        }
    }
}

pub(super) fn follows(input: ParseStream<'_>) -> bool {
    input.peek(Token![=]) || input.peek(Token![:]) || input.peek(syn::token::Paren)
}

pub(super) fn nothing(name: &Ident, input: ParseStream<'_>) -> Result<()> {
    if !follows(input) {
        return Ok(());
    }
    let first: TokenTree = input.parse()?;
    let value = input.parse().map_or_else(|_| first.into(), Expr::into_token_stream);
    let message = format!("`{name}` takes no value\nhelp: write `{name}` alone, or leave it out");
    Err(Error::new_spanned(value, message))
}

pub(super) fn on_busy(input: ParseStream<'_>) -> Result<OnBusy> {
    match visible(input.parse()?) {
        Expr::Path(path) if path.path.is_ident("skip") => {
            Ok(OnBusy::Skip(Ident::new("skip", path.span())))
        }
        value => Ok(OnBusy::Value(value)),
    }
}

/// A closure of one parameter; its body becomes a part of the function.
pub(super) fn on_error(input: ParseStream<'_>) -> Result<ExprClosure> {
    let help = "help: `on_error = |err| <expression>`";
    match visible(input.parse()?) {
        Expr::Closure(closure) if closure.asyncness.is_some() => {
            let message = format!("`on_error` is no async closure\n{help}");
            Err(Error::new(closure.asyncness.span(), message))
        }
        Expr::Closure(closure) if closure.inputs.len() == 1 => Ok(closure),
        Expr::Closure(closure) => {
            let message = format!("`on_error` takes one argument, the error\n{help}");
            Err(Error::new(closure.inputs_begin.span, message))
        }
        other => {
            let message = format!("`on_error` must be a closure, which is given the error\n{help}");
            Err(Error::new(other.span(), message))
        }
    }
}

pub(super) fn guard(input: ParseStream<'_>) -> Result<Ident> {
    let value = visible(input.parse()?);
    let name = match &value {
        Expr::Path(path) => path.path.get_ident().filter(|name| *name != "self"),
        _ => None,
    };
    name.cloned().ok_or_else(|| {
        let message = "`guard` takes a name that the body can use\nhelp: `guard = lock`";
        Error::new(value.span(), message)
    })
}

pub(super) fn path(input: ParseStream<'_>) -> Result<Path> {
    if input.peek(LitStr) {
        return Err(
            input.error("the path is written without quotes\nhelp: `crate = ::lockable_runtime`")
        );
    }
    input.call(Path::parse_mod_style)
}

/// Removes the invisible group of a `macro_rules!` fragment.
pub(super) fn visible(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) if group.attrs.is_empty() => visible(*group.expr),
        other => other,
    }
}

fn no_text_key(literal: &Lit) -> Error {
    let help = match literal {
        Lit::ByteStr(_) | Lit::CStr(_) => "",
        _ => "\nhelp: for a computed key write `key(\"{}\", expr)`",
    };
    Error::new(literal.span(), format!("the key must be a string literal{help}"))
}

fn no_literal_template(other: &Expr) -> Error {
    Error::new(
        other.span(),
        "the template of `key(..)` must be a string literal\n\
         help: write `key(\"{}\", expr)`, or `key = expr` for a `LockKey`",
    )
}
