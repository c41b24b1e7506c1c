//! The options, as the grammar in `args/table.rs` reads them.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, LitStr, Result, Token};

use crate::mistakes::Mistakes;

pub(crate) use self::lease::{LeaseArgs, OnLost, WrittenDuration};
pub(crate) use self::options::LockArgs;
pub(crate) use self::permits::{Count, Permits};
use self::table::{Read, Row, TABLE};
pub(crate) use self::value::{Key, KeyArgument, OnBusy, template_and_arguments};
pub(crate) use self::wait::{Wait, WaitArgs, forever, means_forever};

pub(crate) mod hints;
mod lease;
mod options;
mod permits;
mod table;
mod value;
mod wait;

impl LockArgs {
    /// Reads every option; what cannot be read is a mistake.
    pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut args = Self::default();
        let read_all = |input: ParseStream<'_>| {
            while !input.is_empty() {
                read_one(&mut args, input, mistakes);
                end_option(input, mistakes);
            }
            Ok(())
        };
        // The closure reads to the end and reports by itself.
        if let Err(error) = read_all.parse2(tokens) {
            mistakes.push(error);
        }
        if let (Some(_), Some(keys)) = (args.place_of("key"), args.place_of("keys")) {
            let help = "help: write all keys in the brackets of `keys`";
            mistakes.add(keys, format!("`keys` beside `key`\n{help}"));
        }
        if !args.is_given("key") && !args.is_given("keys") {
            let help = "help: `#[distributed_lock(key = \"order:{id}\", expire = 10)]`";
            mistakes.add(Span::call_site(), format!("missing `key`\n{help}"));
        }
        args
    }
}

/// On a mistake, leaves the rest of the option unread.
fn read_one(args: &mut LockArgs, input: ParseStream<'_>, mistakes: &mut Mistakes) {
    if let Some(error) = hints::arguments_after_key(args, input) {
        mistakes.push(error);
        return;
    }
    let Ok(name) = input.call(Ident::parse_any) else {
        mistakes.push(no_option(args, input));
        return;
    };
    let written = name.unraw().to_string();
    let Some(row) = TABLE.iter().find(|row| row.name == written) else {
        mistakes.push(hints::unknown(&name));
        args.meant.extend(hints::nearest(&written));
        skip_option(input);
        return;
    };
    let is_second = args.place_of(row.name).is_some();
    if is_second {
        mistakes.add(name.span(), format!("`{written}` is given twice"));
        skip_option(input);
        return;
    }
    args.given.push((row.name, name.span()));
    if let Err(error) = read_value(row, &name, args, input, mistakes) {
        mistakes.push(error);
        skip_option(input);
    }
}

fn read_value(
    row: &Row,
    name: &Ident,
    args: &mut LockArgs,
    input: ParseStream<'_>,
    mistakes: &mut Mistakes,
) -> Result<()> {
    if row.name == "key" && input.peek(syn::token::Paren) {
        args.key = Some(value::key_with_arguments(input, mistakes)?);
        return Ok(());
    }
    match row.read {
        Read::Word(set) => value::nothing(name, input).map(|()| set(args)),
        Read::WordOrValue(set, _) if !value::follows(input) => {
            set(args);
            Ok(())
        }
        Read::WordOrValue(_, read) => {
            expect_value(row, name, input)?;
            read(args, input)
        }
        Read::Value(read) => {
            expect_value(row, name, input)?;
            read(args, input, mistakes)
        }
    }
}

/// Reads the `=` before a value.
fn expect_value(row: &Row, name: &Ident, input: ParseStream<'_>) -> Result<()> {
    let example = format!("help: `{}`", row.example);
    if input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new(name.span(), format!("`{name}` needs a value\n{example}")));
    }
    if !input.peek(Token![=]) {
        return Err(input.error(format!("expected `=` after `{name}`\n{example}")));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new(name.span(), format!("`{name}` needs a value\n{example}")));
    }
    Ok(())
}

/// Reads the comma after an option.
fn end_option(input: ParseStream<'_>, mistakes: &mut Mistakes) {
    if input.is_empty() {
        return;
    }
    if input.peek(Token![,]) {
        // The comma was just seen.
        if let Err(error) = input.parse::<Token![,]>() {
            mistakes.push(error);
        }
        return;
    }
    let rest = input.cursor().token_stream().into_iter().next();
    let (span, next) = rest.map_or((input.span(), String::new()), |t| (t.span(), t.to_string()));
    mistakes.add(span, format!("expected `,` before `{next}`"));
    let starts_an_option = TABLE.iter().any(|row| row.name == next);
    if !starts_an_option {
        skip_option(input);
        end_option(input, mistakes);
    }
}

fn skip_option(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

/// Refuses what does not start with a name: most often the key alone.
fn no_option(args: &mut LockArgs, input: ParseStream<'_>) -> Error {
    let written = input.fork();
    let error = match input.parse::<LitStr>() {
        Ok(literal) if !args.is_given("key") => {
            args.given.push(("key", literal.span()));
            let text = literal.token();
            Error::new(literal.span(), format!("name the key: `key = {text}`"))
        }
        _ => written.error(format!("expected an option\n{}", hints::options())),
    };
    skip_option(input);
    error
}

#[cfg(test)]
mod tests;
