//! A template taken apart as `format_args!` does it: literal texts and holes.

use syn::Ident;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `{}` or `{0}`.
    Place(usize),
    /// `{id}`.
    Name(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) source: Source,
    /// The character after the hole, if another hole follows.
    pub(super) delimiter: Option<char>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// `{argument:spec}`.
    Hole {
        argument: String,
        spec: Option<String>,
    },
}

impl Piece {
    pub(super) fn least_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            // A value that displays as nothing is no part of a key.
            Self::Hole { .. } => 1,
        }
    }

    pub(super) fn in_braces(&self) -> impl Iterator<Item = &str> {
        let text = match self {
            Self::Text(text) => text.as_str(),
            Self::Hole { .. } => "",
        };
        text.split('{').skip(1).filter_map(|after| Some(after.split_once('}')?.0))
    }
}

/// Splits a template as `format_args!` does; `None` where the braces do not match.
pub(super) fn split(text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at_checked(at)?;
        push_text(&mut pieces, before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            push_text(&mut pieces, from.get(..1)?);
            rest = after;
        } else {
            let (inside, after) = from.strip_prefix('{')?.split_once('}')?;
            pieces.push(hole(inside)?);
            rest = after;
        }
    }
    push_text(&mut pieces, rest);
    Some(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        _ if more.is_empty() => {}
        Some(Piece::Text(text)) => text.push_str(more),
        _ => pieces.push(Piece::Text(more.to_owned())),
    }
}

fn hole(inside: &str) -> Option<Piece> {
    if inside.contains('{') {
        return None;
    }
    // The `::` of a path starts no format spec.
    let colon = inside.find(':').filter(|at| inside.get(*at..*at + 2) != Some("::"));
    let (argument, spec) = match colon {
        Some(at) => (inside.get(..at)?, inside.get(at + 1..).filter(|spec| !spec.is_empty())),
        None => (inside, None),
    };
    Some(Piece::Hole { argument: argument.trim().to_owned(), spec: spec.map(str::to_owned) })
}

/// The holes, with the character that must end each value.
pub(super) fn holes(pieces: &[Piece]) -> Vec<Hole> {
    let mut next_place = 0..;
    let mut holes = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let Piece::Hole { argument, .. } = piece else { continue };
        let source = match argument.as_str() {
            "" => next_place.next().map(Source::Place),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().map(Source::Place)
            }
            name => is_name(name).then(|| Source::Name(name.to_owned())),
        };
        let delimiter = match (pieces.get(at + 1), pieces.get(at + 2)) {
            (Some(Piece::Text(text)), Some(Piece::Hole { .. })) => text.chars().next(),
            _ => None,
        };
        holes.extend(source.map(|source| Hole { source, delimiter }));
    }
    holes
}

/// Whether `format_args!` takes this as a name.
///
/// By its letters, if they are ASCII: to ask the compiler costs more than the rest of a template. `format_args!` reports
/// what is no name.
pub(super) fn is_name(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c == '_' || c.is_alphabetic());
    let is_like_one = text != "_" && text.chars().all(|c| c == '_' || c.is_alphanumeric());
    starts_well && is_like_one && (text.is_ascii() || syn::parse_str::<Ident>(text).is_ok())
}
