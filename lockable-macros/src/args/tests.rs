use proc_macro2::TokenStream;

use super::hints::{distance, nearest};
use super::{Expire, Key, LockArgs, OnBusy, TABLE};
use crate::mistakes::Mistakes;

/// The arguments, and every mistake in full.
fn parse(text: &str) -> (LockArgs, Vec<String>) {
    let tokens: TokenStream = text.parse().unwrap();
    let mut mistakes = Mistakes::default();
    let args = LockArgs::parse(tokens, &mut mistakes);
    let errors = match mistakes.or(Some(())) {
        Ok(()) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    };
    (args, errors)
}

fn first_lines(text: &str) -> Vec<String> {
    let lines = parse(text).1;
    lines.iter().map(|error| error.lines().next().unwrap_or("").to_owned()).collect()
}

#[test]
fn every_option_can_be_given() {
    let (args, mistakes) = parse(
        "key(\"a:{}\", id, n = 3,), prefix = \"p:\", expire = \"1m30s\", on_busy = skip, \
         on_error = |err| Err(err), guard = lock, locker = self.locks, crate = ::elsewhere,",
    );
    assert_eq!(mistakes, Vec::<String>::new());
    assert!(matches!(args.key, Some(Key::Template(_, arguments)) if arguments.len() == 2));
    assert!(matches!(args.expire, Some(Expire::Milliseconds(90_000))));
    assert!(matches!(args.on_busy, Some(OnBusy::Skip(_))));
    assert!(args.prefix.is_some() && args.on_error.is_some() && args.guard.is_some());
    assert!(args.locker.is_some() && args.krate.is_some());
}

#[test]
fn every_example_of_the_table_is_right() {
    for row in &TABLE {
        let key = if row.name == "key" { "" } else { "key = \"k\", " };
        assert_eq!(parse(&format!("{key}{}", row.example)).1, Vec::<String>::new());
    }
}

#[test]
fn every_name_used_elsewhere_leads_to_one_option() {
    for row in &TABLE {
        for name in row.elsewhere {
            assert_eq!(nearest(name), Some(row.name), "{name}");
        }
    }
    assert_eq!(nearest("lockAtMostFor"), Some("expire"));
    assert_eq!(nearest("lease_time"), Some("expire"));
    assert_eq!(nearest("onbusy"), Some("on_busy"));
    assert_eq!(nearest("wait"), None);
}

#[test]
fn the_distance_counts_letters() {
    assert_eq!(distance("expires", "expire"), 1);
    assert_eq!(distance("", "key"), 3);
    assert_eq!(distance("kye", "key"), 2);
    assert_eq!(distance("same", "same"), 0);
}

#[test]
fn mistakes_are_told_in_one_line_each() {
    let cases = [
        ("", "missing `key`"),
        ("\"order:{id}\"", "name the key: `key = \"order:{id}\"`"),
        ("key = b\"x\"", "the key must be a string literal"),
        ("key = 'x'", "the key must be a string literal"),
        ("key()", "the key is missing"),
        ("key(KEY)", "the template of `key(..)` must be a string literal"),
        ("key(\"{}\" id)", "expected `,` after the key's template"),
        ("key = \"a:{}\", id", "unexpected `id` after the key"),
        ("key = \"a:{}:{}\", self.id, x", "unexpected `self . id` after the key"),
        ("key: \"a\"", "expected `=` after `key`"),
        ("key = \"a\", expires = 1", "unknown option `expires`, did you mean `expire`?"),
        ("key = \"a\", wait = 1", "unknown option `wait`"),
        ("key = \"a\", fair", "unknown option `fair`"),
        ("key = \"a\", expire = 1, expire = 2", "`expire` is given twice"),
        ("key = \"a\" expire = 1", "expected `,` before `expire`"),
        ("key = \"a\", expire", "`expire` needs a value"),
        ("key = \"a\", expire =", "`expire` needs a value"),
        ("key = \"a\", expire = 0", "`expire` must be longer than zero"),
        ("key = \"a\", expire = \"0s\"", "`expire` must be longer than zero"),
        ("key = \"a\", expire = -1", "`expire` must be longer than zero"),
        ("key = \"a\", expire = \"9ms\"", "`expire` must be at least 10ms"),
        ("key = \"a\", expire = 9223372036854776", "`expire` is longer than Redis can hold"),
        ("key = \"a\", expire = 10s", "a text needs quotes"),
        ("key = \"a\", expire = 1.5", "`1.5` is no duration"),
        ("key = \"a\", expire = 10sec", "`sec` is no unit of time here"),
        ("key = \"a\", expire = true", "this is no duration"),
        ("key = \"a\", prefix = P", "the prefix must be a string literal"),
        ("key = \"a\", guard = \"lock\"", "`guard` takes a name that the body can use"),
        ("key = \"a\", on_error = f", "`on_error` must be a closure, which is given the error"),
        ("key = \"a\", on_error = || 1", "`on_error` takes one argument, the error"),
        ("key = \"a\", on_error = async |e| 1", "`on_error` is no async closure"),
        ("key = \"a\", crate = \"x\"", "the path is written without quotes"),
        ("key = \"a\", 3", "expected an option"),
    ];
    for (text, message) in cases {
        assert_eq!(first_lines(text), [message], "{text:?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "key = \"{a}{b}\", expires = 3, expire = 0, guard = 1, prefix = 2";
    let lines = first_lines(text);
    assert_eq!(lines.len(), 5, "{lines:#?}");
}

#[test]
fn an_unknown_option_is_answered_with_the_options() {
    let errors = parse("key = \"a\", nope = 1").1;
    let options = "help: the options are `key`, `prefix`, `expire`, `on_busy`, `on_error`, \
                   `guard`, `locker`, `crate`";
    assert_eq!(errors, [format!("unknown option `nope`\n{options}")]);
}
