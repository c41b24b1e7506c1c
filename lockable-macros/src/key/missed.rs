//! What was probably meant as a hole.

use std::collections::BTreeSet;

use syn::LitStr;

use crate::key::pieces::{Piece, Source, holes};

/// A name in a template that compiles, but makes another key than was meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MissedHole {
    /// `"order:{{id}}"`
    Braces(String),
    /// `"order:${id}"` or `"order:#{id}"`, as other languages write a hole.
    Sign(char, String),
    /// `"order:id"`, without any hole.
    Word(String),
}

impl MissedHole {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Braces(name) | Self::Sign(_, name) | Self::Word(name) => name,
        }
    }

    /// The constant that rustc names in its warning.
    pub(crate) fn constant(&self) -> &'static str {
        match self {
            Self::Braces(_) => "LITERAL_BRACES",
            Self::Sign(..) => "LITERAL_SIGN",
            Self::Word(_) => "LITERAL_NAME",
        }
    }

    pub(crate) fn note(&self, literal: &LitStr) -> String {
        let literal = literal.token();
        match self {
            Self::Braces(name) => format!(
                "the key contains the literal text `{{{name}}}`; write `{{{name}}}` in single \
                 braces to insert the value, or `key({literal})` where the text is meant"
            ),
            Self::Sign(sign, name) => format!(
                "the key contains a literal `{sign}` before the value of `{name}`; write \
                 `{{{name}}}` without the sign, or `key({literal})` where the sign is meant"
            ),
            Self::Word(name) => format!(
                "the key contains the name `{name}` and not its value, so every call shares one \
                 lock; write `{{{name}}}` to insert the value, or `key({literal})` where the text \
                 is meant"
            ),
        }
    }
}

pub(super) fn missed_holes(pieces: &[Piece]) -> BTreeSet<MissedHole> {
    let braces = pieces.iter().flat_map(Piece::in_braces);
    let braces: BTreeSet<&str> = braces.filter(|name| !is_hole(pieces, name)).collect();
    let words = words(pieces).filter(|word| !braces.contains(word));
    let words = words.map(|word| MissedHole::Word(word.to_owned()));
    let braces = braces.iter().map(|name| MissedHole::Braces((*name).to_owned()));
    braces.chain(signs(pieces)).chain(words).collect()
}

fn is_hole(pieces: &[Piece], name: &str) -> bool {
    holes(pieces).iter().any(|hole| matches!(&hole.source, Source::Name(hole) if hole == name))
}

fn signs(pieces: &[Piece]) -> impl Iterator<Item = MissedHole> {
    pieces.windows(2).filter_map(|pair| {
        let [Piece::Text(text), Piece::Hole { argument, .. }] = pair else { return None };
        let sign = text.chars().next_back().filter(|sign| matches!(sign, '$' | '#'))?;
        Some(MissedHole::Sign(sign, argument.clone()))
    })
}

fn words(pieces: &[Piece]) -> impl Iterator<Item = &str> {
    let text = match pieces {
        [Piece::Text(text)] => text.as_str(),
        _ => "",
    };
    text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty())
}
