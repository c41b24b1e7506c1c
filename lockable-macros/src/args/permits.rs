//! The option `permits`.

use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, Lit, LitInt, Result};

use crate::args::value::visible;

pub(crate) struct Permits {
    pub(crate) count: Count,
    pub(crate) is_all: bool,
}

pub(crate) enum Count {
    Literal(LitInt),
    /// Known when the function is called.
    Expression(Expr),
}

/// As many as the runtime takes; more would make each request too long.
const MOST: u32 = 64;

/// A number or an expression, alone or in `all(…)`.
pub(super) fn permits(input: ParseStream<'_>) -> Result<Permits> {
    let value = visible(input.parse()?);
    let is_all = |value: &Expr| matches!(value, Expr::Path(path) if path.path.is_ident("all"));
    let given: Vec<Expr> = match &value {
        Expr::Call(call) if is_all(&call.func) => call.args.iter().cloned().collect(),
        value if is_all(value) => Vec::new(),
        _ => return counted(value, false),
    };
    match given.as_slice() {
        [count] => counted(visible(count.clone()), true),
        _ => Err(Error::new(
            value.span(),
            "`all` takes the number of permits\nhelp: `permits = all(3)`",
        )),
    }
}

fn counted(count: Expr, is_all: bool) -> Result<Permits> {
    let place = count.span();
    let refuse = |message: &str| Err(Error::new(place, message));
    let Expr::Lit(literal) = count else {
        return Ok(Permits { count: Count::Expression(count), is_all });
    };
    let Lit::Int(number) = literal.lit else {
        return refuse(
            "`permits` is a whole number\nhelp: `permits = 3` lets three calls in at a time, in all processes",
        );
    };
    match number.base10_parse() {
        Ok(1..=MOST) => Ok(Permits { count: Count::Literal(number), is_all }),
        _ => refuse(
            "`permits` is from 1 to 64\nhelp: for a higher limit, use a key for each part of the work",
        ),
    }
}
