use std::collections::BTreeMap;

use proc_macro2::Span;
use syn::LitStr;

use super::{KeyTemplate, MissedHole, Piece, Source, split};
use crate::mistakes::Mistakes;

fn parse(text: &str) -> (KeyTemplate, Vec<String>) {
    let mut mistakes = Mistakes::default();
    let template = KeyTemplate::parse(LitStr::new(text, Span::call_site()), &mut mistakes);
    let errors = match mistakes.or(Some(())) {
        Ok(()) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    };
    let first_lines = errors.iter().map(|error| error.lines().next().unwrap_or("").to_owned());
    (template, first_lines.collect())
}

fn delimiters_of(text: &str, name: &str) -> String {
    parse(text).0.delimiters(|source| *source == Source::Name(name.to_owned()))
}

#[test]
fn ordinary_templates_have_no_mistakes() {
    for text in
        ["a", "a:{id}", "{self}:{id}", "{}-{}", "{0}/{1}/{0}", "{{tag}}:{id}", "{ id }", "{id:}"]
    {
        assert_eq!(parse(text).1, Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn a_letter_that_begins_no_name_makes_none() {
    for (text, count) in [("{größe}", 1), ("{\u{73e}a}", 0), ("{a²}", 0)] {
        let (template, mistakes) = parse(text);
        assert_eq!((template.names().len(), mistakes.len()), (count, 0), "{text}");
    }
}

#[test]
fn what_format_args_reports_is_left_to_it() {
    for text in ["a{", "a}", "{id", "{_}", "{id{}}", "{a b}"] {
        assert_eq!(parse(text).1, Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn each_mistake_is_one_line() {
    let cases = [
        ("", "the lock key is empty"),
        ("{a}{b}", "two holes with nothing between them"),
        ("100%", "no `%` in a key"),
        ("{id:>5}", "no format spec in a key"),
        ("{id:?}", "`{:?}` output is not stable enough for a lock key"),
        ("{id:#?}", "`{:#?}` output is not stable enough for a lock key"),
        ("{p:p}", "`{:p}` output is not stable enough for a lock key"),
        ("{self.id}", "a hole takes a name, `self.id` is an expression"),
        ("{p.0}", "a hole takes a name, `p.0` is an expression"),
        ("{id + 1}", "a hole takes a name, `id + 1` is an expression"),
        ("{r#type}", "a hole takes a name without `r#`"),
        ("{Self::ID}", "a hole takes a name, `Self::ID` is an expression"),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).1, [message], "{text:?}");
    }
}

#[test]
fn only_the_text_before_another_hole_delimits() {
    assert_eq!(delimiters_of("{a}-{b}", "a"), "-");
    assert_eq!(delimiters_of("{a}-{b}", "b"), "");
    assert_eq!(delimiters_of("{a}-tail", "a"), "");
    assert_eq!(delimiters_of("{a}{{{b}", "a"), "{");
    assert_eq!(delimiters_of("{a}-{b}/{a}_{c}", "a"), "-_");
}

#[test]
fn a_place_counts_as_in_format_args() {
    let (template, mistakes) = parse("{}-{1}/{}+{}");
    assert_eq!(mistakes, Vec::<String>::new());
    let at = |place| template.delimiters(|source| *source == Source::Place(place));
    assert_eq!([at(0), at(1), at(2)], ["-", "+/", ""]);
}

#[test]
fn a_key_that_must_be_too_long_is_refused() {
    let refuses = |text: &str, prefix: Option<&str>| {
        let mut mistakes = Mistakes::default();
        let prefix = prefix.map(|prefix| LitStr::new(prefix, Span::call_site()));
        parse(text).0.check_length(prefix.as_ref(), &mut mistakes);
        mistakes.or(Some(())).is_err()
    };
    assert!(!refuses(&"k".repeat(1024), None));
    assert!(refuses(&"k".repeat(1025), None));
    assert!(refuses(&format!("{}{{id}}", "k".repeat(1024)), None));
    assert!(refuses(&"k".repeat(1020), Some("shop:")));
}

/// Goal: different values never give the same key. Method: every template of up to three holes over a few texts, filled
/// with every short value over the special characters; the escaping is written here again, from its description.
#[test]
fn different_values_give_different_keys() {
    let texts = [":", "-", "x", "}}{{", "a:"];
    let values = values();
    for first in texts {
        for second in texts {
            assert_injective(&format!("{{a}}{first}{{b}}"), &values);
            assert_injective(&format!("k{{b}}{first}{{a}}{second}{{b}}"), &values);
        }
    }
}

fn values() -> Vec<String> {
    let letters = ["", ":", "-", "x", "%", "}", "{", "a"];
    let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
    let mut values: Vec<String> = pairs.filter(|value| !value.is_empty()).collect();
    values.sort();
    values.dedup();
    values
}

fn assert_injective(text: &str, values: &[String]) {
    let (template, _) = parse(text);
    let delimiters = |name: &str| template.delimiters(|s| *s == Source::Name(name.to_owned()));
    let pieces = split(text).unwrap();
    let (of_a, of_b) = (delimiters("a"), delimiters("b"));
    let mut seen = BTreeMap::new();
    for a in values {
        for b in values {
            let key = render(&pieces, &escaped(a, &of_a), &escaped(b, &of_b));
            let before = seen.insert(key.clone(), (a, b));
            assert!(before.is_none(), "{text:?}: {before:?} and {:?} give {key:?}", (a, b));
        }
    }
}

fn render(pieces: &[Piece], a: &str, b: &str) -> String {
    let fill = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Hole { argument, .. } => if argument == "a" { a } else { b }.to_owned(),
    };
    pieces.iter().map(fill).collect()
}

fn escaped(value: &str, delimiters: &str) -> String {
    let escape = |c: char| match c {
        '%' | ':' | '{' | '}' => format!("%{:02X}", u32::from(c)),
        c if delimiters.contains(c) => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    };
    value.chars().map(escape).collect()
}

#[test]
fn splitting_loses_nothing() {
    let mut texts = vec![String::new()];
    for _ in 0..6 {
        let longer =
            texts.iter().flat_map(|text| "{}:a".chars().map(move |c| format!("{text}{c}")));
        texts = longer.chain([String::new()]).collect();
        for text in &texts {
            let Some(pieces) = split(text) else { continue };
            let again: String = pieces.iter().map(written).collect();
            let plain = |text: &str| text.replace(":}", "}");
            assert_eq!(plain(&again), plain(text));
        }
    }
}

fn written(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
        Piece::Hole { argument, spec: None } => format!("{{{argument}}}"),
        Piece::Hole { argument, spec: Some(spec) } => format!("{{{argument}:{spec}}}"),
    }
}

fn missed(text: &str) -> Vec<MissedHole> {
    parse(text).0.missed_holes(|_| true).cloned().collect()
}

#[test]
fn a_name_in_literal_braces_hints_at_a_hole() {
    let braces = |name: &str| MissedHole::Braces(name.to_owned());
    assert_eq!(missed("order:{{id}}").last(), Some(&MissedHole::Word("order".to_owned())));
    assert_eq!(missed("{{id}}:{{line}}:{{id}}:{tag}"), [braces("id"), braces("line")]);
    for text in ["{{id}}:{id}", "{{{id}}}", "{{id:{line}", "id:{id}"] {
        assert_eq!(missed(text), [], "{text:?}");
    }
}

#[test]
fn a_sign_before_a_hole_hints_at_another_language() {
    let sign = |sign, name: &str| MissedHole::Sign(sign, name.to_owned());
    assert_eq!(missed("order:${id}:#{line}"), [sign('#', "line"), sign('$', "id")]);
    for text in ["$:{id}", "#7:{id}", "{id}$", "@{id}", "${{"] {
        assert_eq!(missed(text), [], "{text:?}");
    }
}

#[test]
fn a_key_without_holes_may_miss_one() {
    let words = |text| missed(text).iter().map(|m| m.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(words("order:id"), ["id", "order"]);
    assert_eq!(words("a-b/c.d e$f+a"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(words("größe:_x_7"), ["_x_7", "größe"]);
    assert_eq!(words("order:id:{line}"), Vec::<String>::new());
    assert_eq!(words("order:id:{}"), Vec::<String>::new());
}

#[test]
fn only_a_bound_name_is_a_missed_hole() {
    let of = |text: &str, bound: &str| {
        let template = parse(text).0;
        template.missed_holes(|name| name == bound).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of("order:id", "id"), [MissedHole::Word("id".to_owned())]);
    assert_eq!(of("order:{{id}}", "id"), [MissedHole::Braces("id".to_owned())]);
    assert_eq!(of("order:ids", "id"), []);
    assert_eq!(of("order:${id}", "line"), []);
}

#[test]
fn nothing_is_missed_where_the_text_is_meant() {
    for text in ["order:{{id}}", "order:${id}", "order:#{id}", "order:id"] {
        let template = parse(text).0.meant_literally();
        assert_eq!(template.missed_holes(|_| true).count(), 0, "{text:?}");
    }
}
