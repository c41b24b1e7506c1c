//! The options for waiting.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::parse::discouraged::Speculative;
use syn::{Error, Expr, ExprLit, Lit, LitBool, Result};

use crate::args::lease::{WrittenDuration, duration};
use crate::args::value::visible;

#[derive(Default)]
pub(crate) struct WaitArgs {
    /// Absent for one try.
    pub(crate) wait: Option<Wait>,
    pub(crate) fair: bool,
    pub(crate) blocking: bool,
}

pub(crate) enum Wait {
    Forever,
    AtMost(WrittenDuration),
}

pub(super) fn limit(input: ParseStream<'_>) -> Result<Wait> {
    if let Some(error) = switch(input)? {
        return Err(error);
    }
    let no_wait = "leave `wait` out, and the call tries once; `wait` alone waits without a limit";
    duration("wait", no_wait, input).map(Wait::AtMost)
}

/// Refuses `true`, `false` and quoted words for no limit.
fn switch(input: ParseStream<'_>) -> Result<Option<Error>> {
    let ahead = input.fork();
    let value = visible(ahead.parse()?);
    let (is_on, span) = match value {
        Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value: is_on, span }), .. }) => (is_on, span),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if means_forever(&text.value()) => {
            input.advance_to(&ahead);
            return Ok(Some(forever(&text.value(), text.span())));
        }
        _ => return Ok(None),
    };
    input.advance_to(&ahead);
    let help = if is_on {
        "help: write `wait` alone to wait without a limit, or `wait = \"3s\"` with one"
    } else {
        "help: leave `wait` out, and the call tries once"
    };
    Ok(Some(Error::new(span, format!("`wait` is no switch\n{help}"))))
}

pub(crate) fn means_forever(word: &str) -> bool {
    ["forever", "Forever", "infinite", "infinity", "unlimited", "always"].contains(&word)
}

pub(crate) fn forever(word: &str, span: Span) -> Error {
    let help = "help: write `wait` alone to wait without a limit";
    Error::new(span, format!("`{word}` is no duration\n{help}"))
}
