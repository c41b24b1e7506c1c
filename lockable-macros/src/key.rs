//! The key template: `"order:{id}"` as literal texts and holes.

use std::collections::BTreeSet;

use proc_macro2::Span;
use syn::{Expr, LitStr};

use crate::mistakes::Mistakes;

pub(crate) use self::missed::MissedHole;
pub(crate) use self::pieces::Source;
use self::pieces::{Hole, Piece, holes, is_name, split};

mod missed;
mod pieces;

/// In bytes, with the prefix.
const MAX_KEY_BYTES: usize = 1024;

/// A template. Its mistakes are reported here, or by `format_args!`, which sees the same literal and can point into it.
pub(crate) struct KeyTemplate {
    pub(crate) literal: LitStr,
    holes: Vec<Hole>,
    missed: BTreeSet<MissedHole>,
    /// What an expression language would insert: `order.id` of `"order:#order.id"`.
    after_hash: Vec<String>,
    /// Of a rendered key.
    least_bytes: usize,
}

impl KeyTemplate {
    /// ```text
    /// Input:  "order:{id}:{line}"
    /// Output: holes `id`, which must not contain a bare `:`, and `line`
    /// ```
    pub(crate) fn parse(literal: LitStr, mistakes: &mut Mistakes) -> Self {
        let text = literal.value();
        let span = literal.span();
        if text.is_empty() {
            let help = "every function with an empty key would share one lock";
            mistakes.add(span, format!("the lock key is empty\nhelp: {help}"));
        }
        // What `format_args!` cannot read it reports itself, with a caret inside the literal.
        let pieces = split(&text).unwrap_or_default();
        check_pieces(&pieces, span, mistakes);
        let least_bytes = pieces.iter().map(Piece::least_bytes).sum();
        let missed = missed::missed_holes(&pieces);
        let after_hash = pieces.iter().flat_map(after_hash).map(str::to_owned).collect();
        Self { holes: holes(&pieces), missed, after_hash, least_bytes, literal }
    }

    /// Confirms that nothing was meant as a hole.
    pub(crate) fn meant_literally(self) -> Self {
        Self { missed: BTreeSet::new(), after_hash: Vec::new(), ..self }
    }

    /// Refuses `#id` where `id` is a parameter: every call would share one lock.
    pub(crate) fn check_hashes(&self, is_bound: impl Fn(&str) -> bool, mistakes: &mut Mistakes) {
        let is_bound = |path: &&String| is_bound(path.split('.').next().unwrap_or_default());
        for path in self.after_hash.iter().filter(is_bound) {
            let is_field = path.contains('.');
            let hole =
                if is_field { format!("key(\"{{}}\", {path})") } else { format!("{{{path}}}") };
            let message = format!(
                "`#{path}` is no hole: every key would contain it as it is\n\
                 help: write `{hole}`, or `key(\"..\")` where the text itself is meant"
            );
            mistakes.add(self.literal.span(), message);
        }
    }

    /// A key of this template, as far as its braces matter.
    pub(crate) fn with_any_values(&self) -> Option<String> {
        let pieces = split(&self.literal.value())?;
        let text = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Hole { .. } => "v".to_owned(),
        };
        Some(pieces.into_iter().map(text).collect())
    }

    pub(crate) fn missed_holes(
        &self,
        is_bound: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &MissedHole> {
        self.missed.iter().filter(move |missed| is_bound(missed.name()))
    }

    /// Each once, in the order of first use.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.holes.iter().filter_map(|hole| match &hole.source {
            Source::Name(name) => Some(name.as_str()),
            Source::Place(_) => None,
        });
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Whether a hole takes an argument by its place.
    pub(crate) fn has_places(&self) -> bool {
        self.holes.iter().any(|hole| matches!(hole.source, Source::Place(_)))
    }

    /// The characters that a value must not contain bare.
    pub(crate) fn delimiters(&self, wanted: impl Fn(&Source) -> bool) -> String {
        let holes = self.holes.iter().filter(|hole| wanted(&hole.source));
        let delimiters: BTreeSet<char> = holes.filter_map(|hole| hole.delimiter).collect();
        delimiters.into_iter().collect()
    }

    /// Refuses a template that no value can make a valid key.
    pub(crate) fn check_length(&self, prefix: Option<&LitStr>, mistakes: &mut Mistakes) {
        let prefix_bytes = prefix.map_or(0, |prefix| prefix.value().len());
        if self.least_bytes.saturating_add(prefix_bytes) > MAX_KEY_BYTES {
            let message =
                "the lock key is longer than 1 KiB\nhelp: put an id into it, not the data";
            mistakes.add(self.literal.span(), message);
        }
    }
}

fn after_hash(piece: &Piece) -> impl Iterator<Item = &str> {
    let text = match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Hole { .. } => "",
    };
    let is_path = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
    let path = move |after: &str| after.split(|c| !is_path(c)).next().unwrap_or_default().len();
    let paths = text.split('#').skip(1).map(move |after| after.split_at(path(after)).0);
    paths.map(|path| path.trim_end_matches('.')).filter(|path| !path.is_empty())
}

fn check_pieces(pieces: &[Piece], span: Span, mistakes: &mut Mistakes) {
    let expression = pieces.iter().find_map(|piece| match piece {
        Piece::Hole { argument, .. } if is_expression(argument) => Some(argument),
        _ => None,
    });
    if let Some(expression) = expression {
        mistakes.add(span, expression_in_hole(expression, pieces));
    }
    let raw = pieces.iter().find_map(|piece| match piece {
        Piece::Hole { argument, .. } => argument.strip_prefix("r#").filter(|name| is_name(name)),
        Piece::Text(_) => None,
    });
    if let Some(name) = raw {
        mistakes.add(span, format!("a hole takes a name without `r#`\nhelp: write `{{{name}}}`"));
    }
    for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
        match piece {
            Piece::Text(text) if text.contains('%') => mistakes.add(span, PERCENT),
            Piece::Text(_) => {}
            Piece::Hole { argument, spec } => {
                if matches!(next, Some(Piece::Hole { .. })) {
                    mistakes.add(span, ADJACENT);
                }
                check_spec(argument, spec.as_deref(), span, mistakes);
            }
        }
    }
}

fn check_spec(argument: &str, spec: Option<&str>, span: Span, mistakes: &mut Mistakes) {
    match spec {
        Some(spec) if spec.ends_with(['?', 'p']) => {
            mistakes.add(span, unstable_output(argument, spec));
        }
        Some(_) => mistakes.add(span, FORMAT_SPEC),
        None => {}
    }
}

/// Whether this value has to be an argument of `key(..)`, as `self.id`.
fn is_expression(text: &str) -> bool {
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    let is_raw_name = text.starts_with("r#") && !text.contains('.');
    let is_simple = is_number || is_raw_name || text == "_" || is_name(text);
    !is_simple && syn::parse_str::<Expr>(text).is_ok()
}

/// Names the form that works, with the expressions as arguments.
fn expression_in_hole(argument: &str, pieces: &[Piece]) -> String {
    let mut template = String::new();
    let mut arguments = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => template.push_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Hole { argument, .. } if is_expression(argument) => {
                template.push_str("{}");
                arguments.push_str(", ");
                arguments.push_str(argument);
            }
            Piece::Hole { argument, .. } => template.extend(["{", argument, "}"]),
        }
    }
    format!(
        "a hole takes a name, `{argument}` is an expression\nhelp: write `key({template:?}{arguments})`"
    )
}

fn unstable_output(argument: &str, spec: &str) -> String {
    let name = if argument.is_empty() { "id" } else { argument };
    format!(
        "`{{:{spec}}}` output is not stable enough for a lock key\n\
         help: implement `Display` or build the part: `key(\"{{}}\", {name}.as_str())`"
    )
}

const PERCENT: &str = "no `%` in a key\n\
     help: in a lock key `%` starts an escaped character of an inserted value";

const ADJACENT: &str = "two holes with nothing between them\n\
     help: put a character such as `:` between them, or different values give the same key";

const FORMAT_SPEC: &str = "no format spec in a key\n\
     help: `key(\"{}\", format!(..))`";

#[cfg(test)]
mod tests;
