//! The values of the options, each read and refused by itself.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprClosure, ExprLit, Ident, Lit, LitStr, Path, Result, Token, UnOp, parenthesized,
};

use super::{Expire, Key, KeyArgument, OnBusy};
use crate::duration::{self, Flaw};
use crate::key::KeyTemplate;
use crate::mistakes::Mistakes;

/// A shorter lease would be over before its first command is answered.
const LEAST_EXPIRE_MS: u64 = 10;

/// `key = "order:{id}"`, or an expression that is a `LockKey`.
pub(super) fn key(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Key> {
    match visible(input.parse()?) {
        Expr::Lit(lit) => match lit.lit {
            Lit::Str(text) => Ok(Key::Template(KeyTemplate::parse(text, mistakes), Vec::new())),
            other => Err(no_text_key(&other)),
        },
        value => Ok(Key::Value(value)),
    }
}

/// `key("stock:{}", item.sku)`, from the parentheses on.
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

fn template_and_arguments(content: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Key> {
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

/// A string literal and nothing else.
pub(super) fn text(input: ParseStream<'_>) -> Result<LitStr> {
    match visible(input.parse()?) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => Err(Error::new(other.span(), "the prefix must be a string literal")),
    }
}

/// `10`, `"1m30s"`, or an expression that is a `Duration`.
pub(super) fn expire(input: ParseStream<'_>) -> Result<Expire> {
    let value = visible(input.parse()?);
    let span = value.span();
    let milliseconds = match &value {
        Expr::Lit(lit) => literal_milliseconds(&lit.lit)?,
        Expr::Unary(minus) if is_negative_literal(minus) => {
            return Err(Error::new(
                span,
                "`expire` must be longer than zero\nhelp: there is no unlimited lock",
            ));
        }
        _ => return Ok(Expire::Duration(value)),
    };
    match milliseconds {
        0 => Err(Error::new(span, "`expire` must be longer than zero")),
        1..LEAST_EXPIRE_MS => Err(Error::new(
            span,
            "`expire` must be at least 10ms\n\
             help: a shorter lease would be over before its first command is answered",
        )),
        long_enough => Ok(Expire::Milliseconds(long_enough)),
    }
}

/// The bare word `skip`, or an expression.
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

/// A name for the body to use.
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

/// A path without generic arguments.
pub(super) fn path(input: ParseStream<'_>) -> Result<Path> {
    if input.peek(LitStr) {
        return Err(
            input.error("the path is written without quotes\nhelp: `crate = ::lockable_runtime`")
        );
    }
    input.call(Path::parse_mod_style)
}

/// The expression out of the invisible group that a `macro_rules!` fragment leaves around it.
fn visible(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) if group.attrs.is_empty() => visible(*group.expr),
        other => other,
    }
}

fn literal_milliseconds(literal: &Lit) -> Result<u64> {
    let flaw_to_error = |flaw| Error::new(literal.span(), wrong_expire(flaw));
    match literal {
        Lit::Int(int) if is_integer_suffix(int.suffix()) => {
            duration::from_seconds(int.base10_digits()).map_err(flaw_to_error)
        }
        Lit::Str(text) => duration::from_text(&text.value()).map_err(flaw_to_error),
        Lit::Int(_) | Lit::Float(_) => {
            // `10s` is a text without its quotes.
            let written = literal.to_token_stream().to_string();
            duration::from_text(&written).map_err(flaw_to_error)?;
            let message = format!("a text needs quotes\nhelp: `expire = \"{written}\"`");
            Err(Error::new(literal.span(), message))
        }
        other => {
            Err(Error::new(other.span(), wrong_expire(Flaw::Form("this is no duration".into()))))
        }
    }
}

fn is_integer_suffix(suffix: &str) -> bool {
    suffix.is_empty() || matches!(suffix.as_bytes().first(), Some(b'u' | b'i'))
}

fn is_negative_literal(unary: &syn::ExprUnary) -> bool {
    matches!((&unary.op, &*unary.expr), (UnOp::Neg(_), Expr::Lit(_)))
}

fn wrong_expire(flaw: Flaw) -> String {
    match flaw {
        Flaw::TooLong => "`expire` is longer than Redis can hold".to_owned(),
        Flaw::Form(what) => format!(
            "{what}\nhelp: `expire` is whole seconds, text with units such as \"1500ms\" or \
             \"1m30s\", or a `Duration` expression"
        ),
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
