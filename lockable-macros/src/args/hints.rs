//! Messages for what was written in place of an option.

use proc_macro2::TokenStream;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseBuffer, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, Path, Result, Token};

use crate::args::options::LockArgs;
use crate::args::table::{Read, TABLE};
use crate::args::value::Key;
use crate::key::KeyTemplate;

pub(super) fn unknown(name: &Ident) -> Error {
    let hint = nearest(&name.to_string())
        .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
    Error::new(name.span(), format!("unknown option `{name}`{hint}\n{}", options()))
}

/// Refuses `id, order.line` after `key = "order:{}:{}"`: arguments as a formatting macro takes them.
pub(super) fn arguments_after_key(args: &LockArgs, input: ParseStream<'_>) -> Option<Error> {
    let Some(Key::Template(template, given)) = &args.key else { return None };
    let follows_key = args.given.last().is_some_and(|(name, _)| *name == "key") && given.is_empty();
    if !follows_key {
        return None;
    }
    let mut arguments: Vec<String> = Vec::new();
    let mut first = None;
    while let Some((expr, after)) = argument(template, input) {
        first.get_or_insert_with(|| expr.span());
        arguments.push(source_text(input, &after));
        input.advance_to(&after);
        if !input.peek(Token![,]) || argument(template, &after_comma(input)).is_none() {
            break;
        }
        input.advance_to(&after_comma(input));
    }
    let (text, all) = (template.literal.token(), arguments.join(", "));
    let message = format!(
        "unexpected `{}` after the key\nhelp: with arguments the key is written `key({text}, {all})`",
        arguments.first()?
    );
    Some(Error::new(first?, message))
}

/// An expression that only a hole can take, and what follows it.
fn argument<'a>(template: &KeyTemplate, input: ParseStream<'a>) -> Option<(Expr, ParseBuffer<'a>)> {
    let ahead = input.fork();
    let expr: Expr = ahead.parse().ok()?;
    let is_whole = ahead.is_empty() || ahead.peek(Token![,]);
    let is_argument = match &expr {
        Expr::Path(path) if path.path.get_ident().is_some() => {
            template.has_places() && !is_whole_option(&path.path)
        }
        Expr::Field(_) | Expr::MethodCall(_) | Expr::Path(_) | Expr::Reference(_) => true,
        _ => false,
    };
    (is_whole && is_argument).then_some((expr, ahead))
}

/// Whether this option, as `renew`, can be complete without a value.
fn is_whole_option(path: &Path) -> bool {
    let words = TABLE.iter().filter(|row| !matches!(row.read, Read::Value(_)));
    words.map(|row| row.name).any(|name| path.is_ident(name))
}

fn after_comma(input: ParseStream<'_>) -> ParseBuffer<'_> {
    let ahead = input.fork();
    // Where there is no comma nothing is read.
    let _comma: Result<Token![,]> = ahead.parse();
    ahead
}

fn source_text(from: ParseStream<'_>, to: ParseStream<'_>) -> String {
    let all = from.cursor().token_stream().into_iter();
    let rest = to.cursor().token_stream().into_iter().count();
    let count = from.cursor().token_stream().into_iter().count().saturating_sub(rest);
    all.take(count).collect::<TokenStream>().to_string()
}

pub(super) fn options() -> String {
    let names: Vec<_> = TABLE.iter().map(|row| format!("`{}`", row.name)).collect();
    format!("help: the options are {}", names.join(", "))
}

/// The option that a foreign or misspelt name means.
pub(super) fn nearest(written: &str) -> Option<&'static str> {
    let plain = written.to_lowercase().replace('_', "");
    let foreign = TABLE.iter().find(|row| row.elsewhere.contains(&plain.as_str()));
    foreign.map(|row| row.name).or_else(|| misspelt(&plain, TABLE.iter().map(|row| row.name)))
}

pub(crate) fn misspelt<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let names = names.map(|name| (distance(written, &name.replace('_', "")), name));
    let near = names.filter(|(distance, name)| *distance <= name.len() / 3).min();
    near.map(|(_, name)| name)
}

/// The least number of letters to insert, remove or replace.
pub(super) fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for (b, above) in to.chars().zip(row.windows(2)) {
            let [diagonal, up] = above else { break };
            left = (diagonal + usize::from(a != b)).min(up + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
