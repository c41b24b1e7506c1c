//! Which paths a file names.

use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The paths that start with `crate`, `super` or `self`, without those of tests, and in a `mod.rs` without
/// those that it only publishes.
pub(crate) fn paths(code: &str, is_mod: bool) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let tokens = TokenStream::from_str(code).expect("the compiler reads it");
    collect(tokens, is_mod, &mut paths);
    paths
}

fn collect(tokens: TokenStream, is_mod: bool, paths: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        rest = match token {
            _ if is_test(rest) => after_item(&rest[2..]),
            _ if is_mod && is_word(token, "pub") && is_published(after) => after_item(after),
            TokenTree::Group(group) => {
                collect(group.stream(), is_mod, paths);
                after
            }
            _ if ["crate", "super", "self"].iter().any(|start| is_word(token, start)) => {
                path(&mut Vec::new(), rest, paths)
            }
            _ => after,
        };
    }
}

/// `#[cfg(test)]`, which stands before an item.
fn is_test(tokens: &[TokenTree]) -> bool {
    let text = tokens.iter().take(2).map(ToString::to_string).collect::<String>();
    text.replace(' ', "") == "#[cfg(test)]"
}

/// What follows `pub` where a name is published: `use`, or `(crate) use`.
fn is_published(after: &[TokenTree]) -> bool {
    let mut without_limit = after.iter().filter(|token| !is_group(token));
    without_limit.next().is_some_and(|token| is_word(token, "use"))
}

/// Items end with a semicolon or a block.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let is_use = tokens.iter().take(2).any(|token| is_word(token, "use"));
    let end = tokens.iter().position(|token| ends(token) && !(is_use && is_group(token)));
    &tokens[end.map_or(tokens.len(), |end| end + 1)..]
}

/// Adds the path that starts here, or the paths where it ends in a group; gives what follows.
fn path<'a>(
    start: &mut Vec<String>,
    tokens: &'a [TokenTree],
    paths: &mut Vec<Vec<String>>,
) -> &'a [TokenTree] {
    match tokens {
        [TokenTree::Group(group), after @ ..] if !start.is_empty() => {
            let members: Vec<TokenTree> = group.stream().into_iter().collect();
            for member in members.split(|token| is_punct(token, ',')) {
                path(&mut start.clone(), member, paths);
            }
            after
        }
        [TokenTree::Ident(name), one, other, after @ ..]
            if is_punct(one, ':') && is_punct(other, ':') =>
        {
            start.push(name.to_string());
            path(start, after, paths)
        }
        [TokenTree::Ident(name), after @ ..] if !start.is_empty() => {
            start.push(name.to_string());
            paths.push(start.clone());
            after
        }
        [_, after @ ..] => {
            if !start.is_empty() {
                paths.push(start.clone());
            }
            after
        }
        [] => tokens,
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(name) if name == word)
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_group(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(_))
}

#[test]
fn paths_are_found_in_groups_and_in_bodies() {
    let code =
        "use crate::a::{b, c::{self, D}}; fn f(x: super::X) { self.y; g!(self::z::W::new()) }";
    let found: Vec<String> = paths(code, false).iter().map(|path| path.join("::")).collect();
    let all = ["crate::a::b", "crate::a::c::self", "crate::a::c::D", "super::X", "self::z::W::new"];
    assert_eq!(found, all);
}

#[test]
fn tests_and_published_names_are_no_imports() {
    let code = "pub use self::a::{A, B}; pub(crate) use self::c::C; use self::d::D; mod e;
        #[cfg(test)] mod tests { use super::*; } #[cfg(test)] mod t; use crate::f;";
    let found: Vec<String> = paths(code, true).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["self::d::D", "crate::f"]);
}
