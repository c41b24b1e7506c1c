//! The options for the lease.

use proc_macro2::Span;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, Lit, Result, UnOp};

use crate::args::value::visible;
use crate::duration::{self, Flaw};

#[derive(Default)]
pub(crate) struct LeaseArgs {
    pub(crate) expire: Option<WrittenDuration>,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<WrittenDuration>,
    pub(crate) min_hold: Option<WrittenDuration>,
    pub(crate) once: Option<WrittenDuration>,
    pub(crate) on_lost: Option<OnLost>,
}

pub(crate) enum WrittenDuration {
    /// Longer than zero.
    Literal {
        ms: u64,
        place: Span,
        /// A number without a unit that is hardly meant as seconds.
        likely_milliseconds: Option<u64>,
    },
    /// Known when the function is called.
    Expression(Expr),
}

pub(crate) enum OnLost {
    /// For its span.
    Cancel(Ident),
    Finish,
}

/// A shorter lease would be over before its first reply.
const LEAST_EXPIRE_MS: u64 = 10;

pub(super) fn expire(input: ParseStream<'_>) -> Result<WrittenDuration> {
    let unlimited = "there is no unlimited lock; use `renew` to keep it alive";
    match duration("expire", unlimited, input)? {
        WrittenDuration::Literal { ms: 1..LEAST_EXPIRE_MS, place, .. } => Err(Error::new(
            place,
            "`expire` must be at least 10ms\n\
             help: a shorter lease would be over before its first command is answered",
        )),
        long_enough => Ok(long_enough),
    }
}

pub(super) fn max_hold(input: ParseStream<'_>) -> Result<WrittenDuration> {
    let unlimited = "leave `max_hold` out, and the lock is held as long as the body runs";
    duration("max_hold", unlimited, input)
}

pub(super) fn min_hold(input: ParseStream<'_>) -> Result<WrittenDuration> {
    let unlimited = "leave `min_hold` out, and the lock is released when the body ends";
    duration("min_hold", unlimited, input)
}

pub(super) fn once(input: ParseStream<'_>) -> Result<WrittenDuration> {
    let unlimited = "write a long period, such as `once = \"3650d\"`";
    duration("once", unlimited, input)
}

pub(super) fn on_lost(input: ParseStream<'_>) -> Result<OnLost> {
    let value = visible(input.parse()?);
    let word = match &value {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    };
    match word {
        Some(word) if word == "cancel" => Ok(OnLost::Cancel(word.clone())),
        Some(word) if word == "finish" => Ok(OnLost::Finish),
        _ => Err(Error::new_spanned(
            value,
            "`on_lost` is `cancel` or `finish`\n\
             help: when the lease is lost `on_lost = cancel` stops the body, `on_lost = finish` lets it \
             complete",
        )),
    }
}

/// Whole seconds, a text with units, or an expression. Zero or less probably means no limit: the message says what
/// comes close.
pub(super) fn duration(
    name: &str,
    unlimited: &str,
    input: ParseStream<'_>,
) -> Result<WrittenDuration> {
    let value = visible(input.parse()?);
    let too_short = || {
        let message = format!("`{name}` must be longer than zero\nhelp: {unlimited}");
        Error::new_spanned(&value, message)
    };
    match &value {
        Expr::Lit(lit) => match literal_milliseconds(name, &lit.lit)? {
            0 => Err(too_short()),
            ms => Ok(WrittenDuration::Literal {
                ms,
                place: value.span(),
                likely_milliseconds: likely_milliseconds(&lit.lit),
            }),
        },
        Expr::Unary(minus) if is_negative_literal(minus) => Err(too_short()),
        _ => Ok(WrittenDuration::Expression(value)),
    }
}

fn literal_milliseconds(name: &str, literal: &Lit) -> Result<u64> {
    let flaw_to_error = |flaw| Error::new(literal.span(), wrong(name, flaw));
    match literal {
        Lit::Int(int) if is_integer_suffix(int.suffix()) => {
            duration::from_seconds(int.base10_digits()).map_err(flaw_to_error)
        }
        Lit::Str(text) => duration::from_text(&text.value()).map_err(flaw_to_error),
        Lit::Int(_) | Lit::Float(_) => {
            // `10s` is a text without its quotes.
            let written = literal.to_token_stream().to_string();
            duration::from_text(&written).map_err(flaw_to_error)?;
            let message = format!("a text needs quotes\nhelp: `{name} = \"{written}\"`");
            Err(Error::new(literal.span(), message))
        }
        _ => Err(flaw_to_error(Flaw::Form("this is no duration".to_owned()))),
    }
}

fn likely_milliseconds(literal: &Lit) -> Option<u64> {
    let Lit::Int(int) = literal else { return None };
    let digits = int.base10_digits();
    duration::may_be_milliseconds(digits).then(|| digits.parse().ok())?
}

fn is_integer_suffix(suffix: &str) -> bool {
    suffix.is_empty() || matches!(suffix.as_bytes().first(), Some(b'u' | b'i'))
}

fn is_negative_literal(unary: &syn::ExprUnary) -> bool {
    matches!((&unary.op, &*unary.expr), (UnOp::Neg(_), Expr::Lit(_)))
}

fn wrong(name: &str, flaw: Flaw) -> String {
    match flaw {
        Flaw::TooLong if name == "wait" => {
            "`wait` is too long\nhelp: `wait` alone waits without a limit".to_owned()
        }
        Flaw::TooLong => format!("`{name}` is longer than Redis can hold"),
        Flaw::Form(what) => format!(
            "{what}\nhelp: `{name}` is whole seconds, text with units such as \"1500ms\" or \
             \"1m30s\", or a `Duration` expression"
        ),
    }
}
