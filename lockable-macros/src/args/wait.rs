//! Whether and how a call waits for a lock that another holder has.

use syn::parse::ParseStream;
use syn::parse::discouraged::Speculative;
use syn::{Error, Expr, ExprLit, Lit, LitBool, Result};

use crate::args::lease::{WrittenDuration, duration};
use crate::args::value::visible;

/// The options that are about waiting.
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

/// The limit after `wait =`.
pub(super) fn limit(input: ParseStream<'_>) -> Result<Wait> {
    if let Some(error) = switch(input)? {
        return Err(error);
    }
    let no_wait = "leave `wait` out, and the call tries once; `wait` alone waits without a limit";
    duration("wait", no_wait, input).map(Wait::AtMost)
}

/// Refuses `true` and `false`.
fn switch(input: ParseStream<'_>) -> Result<Option<Error>> {
    let ahead = input.fork();
    let value = visible(ahead.parse()?);
    let Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value: is_on, span }), .. }) = value else {
        return Ok(None);
    };
    input.advance_to(&ahead);
    let help = if is_on {
        "help: write `wait` alone to wait without a limit, or `wait = \"3s\"` with one"
    } else {
        "help: leave `wait` out, and the call tries once"
    };
    Ok(Some(Error::new(span, format!("`wait` is no switch\n{help}"))))
}
