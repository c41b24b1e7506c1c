use proc_macro2::TokenStream;

use super::hints::{distance, nearest};
use super::table::TABLE;
use super::{Key, LockArgs, OnBusy, OnLost, Wait, WrittenDuration};
use crate::mistakes::Mistakes;

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
        "key(\"a:{}\", id, n = 3,), prefix = \"p:\", expire = \"1m30s\", wait = \"3s\", \
         fair, blocking, renew, \
         max_hold = LONG, min_hold = 3, on_busy = skip, on_error = |err| Err(err), \
         on_lost = cancel, guard = lock, locker = self.locks, crate = ::elsewhere,",
    );
    assert_eq!(mistakes, Vec::<String>::new());
    assert!(matches!(args.key, Some(Key::Template(_, arguments)) if arguments.len() == 2));
    assert!(matches!(args.lease.expire, Some(WrittenDuration::Literal { ms: 90_000, .. })));
    assert!(matches!(
        args.wait.wait,
        Some(Wait::AtMost(WrittenDuration::Literal { ms: 3_000, .. }))
    ));
    assert!(args.wait.fair && args.wait.blocking && args.lease.renew);
    assert!(matches!(args.lease.max_hold, Some(WrittenDuration::Expression(_))));
    assert!(matches!(args.lease.min_hold, Some(WrittenDuration::Literal { ms: 3_000, .. })));
    assert!(matches!(args.lease.on_lost, Some(OnLost::Cancel(_))));
    assert!(matches!(args.on_busy, Some(OnBusy::Skip(_))));
    assert!(args.prefix.is_some() && args.on_error.is_some() && args.guard.is_some());
    assert!(args.locker.is_some() && args.krate.is_some());
}

#[test]
fn every_example_of_the_table_is_right() {
    for row in &TABLE {
        let key = if matches!(row.name, "key" | "keys") { "" } else { "key = \"k\", " };
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
    assert_eq!(nearest("keepAlive"), Some("renew"));
    assert_eq!(nearest("lockAtLeastFor"), Some("min_hold"));
    assert_eq!(nearest("maxhold"), Some("max_hold"));
    for (name, option) in [
        ("timeout", "expire"),
        ("waitTime", "wait"),
        ("acquireTimeout", "wait"),
        ("lockWaitTime", "wait"),
        ("blocking_timeout", "wait"),
        ("tries", "wait"),
        ("waits", "wait"),
        ("fairLock", "fair"),
        ("block", "blocking"),
    ] {
        assert_eq!(nearest(name), Some(option), "{name}");
    }
}

#[test]
fn the_distance_counts_letters() {
    assert_eq!(distance("expires", "expire"), 1);
    assert_eq!(distance("", "key"), 3);
    assert_eq!(distance("kye", "key"), 2);
    assert_eq!(distance("same", "same"), 0);
}

#[test]
fn each_mistake_is_one_line() {
    assert_messages(&[
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
        ("key = \"a:{}\", id, renew", "unexpected `id` after the key"),
        ("key = \"a\", expire = 1, expire = 2", "`expire` is given twice"),
        ("key = \"a\" expire = 1", "expected `,` before `expire`"),
        ("key = \"a\", expire", "`expire` needs a value"),
        ("key = \"a\", expire =", "`expire` needs a value"),
        ("key = \"a\", prefix = P", "the prefix must be a string literal"),
        ("key = \"a\", guard = \"lock\"", "`guard` takes a name that the body can use"),
        ("key = \"a\", on_error = f", "`on_error` must be a closure, which is given the error"),
        ("key = \"a\", on_error = || 1", "`on_error` takes one argument, the error"),
        ("key = \"a\", on_error = async |e| 1", "`on_error` is no async closure"),
        ("key = \"a\", crate = \"x\"", "the path is written without quotes"),
        ("key = \"a\", 3", "expected an option"),
    ]);
}

#[test]
fn each_mistake_about_the_lease_is_one_line() {
    assert_messages(&[
        ("key = \"a\", expire = 0", "`expire` must be longer than zero"),
        ("key = \"a\", expire = \"0s\"", "`expire` must be longer than zero"),
        ("key = \"a\", expire = -1", "`expire` must be longer than zero"),
        ("key = \"a\", expire = \"9ms\"", "`expire` must be at least 10ms"),
        ("key = \"a\", expire = 9223372036854776", "`expire` is longer than Redis can hold"),
        ("key = \"a\", expire = 10s", "a text needs quotes"),
        ("key = \"a\", expire = 1.5", "`1.5` is no duration"),
        ("key = \"a\", expire = 10sec", "`sec` is no unit of time here"),
        ("key = \"a\", expire = true", "this is no duration"),
        ("key = \"a\", renew = true", "`renew` takes no value"),
        ("key = \"a\", renew = \"3s\"", "`renew` takes no value"),
        ("key = \"a\", renew = Duration::from_secs(3)", "`renew` takes no value"),
        ("key = \"a\", renew =", "`renew` takes no value"),
        ("key = \"a\", renew(every = 3, x)", "`renew` takes no value"),
        ("key = \"a\", renew: true", "`renew` takes no value"),
        ("key = \"a\", renew, renew", "`renew` is given twice"),
        ("key = \"a\", renew expire = 3", "expected `,` before `expire`"),
        ("key = \"a\", max_hold", "`max_hold` needs a value"),
        ("key = \"a\", max_hold = 0", "`max_hold` must be longer than zero"),
        ("key = \"a\", max_hold = -1", "`max_hold` must be longer than zero"),
        ("key = \"a\", max_hold = 9223372036854776", "`max_hold` is longer than Redis can hold"),
        ("key = \"a\", max_hold = 5m", "a text needs quotes"),
        ("key = \"a\", min_hold = \"0ms\"", "`min_hold` must be longer than zero"),
        ("key = \"a\", min_hold = -1", "`min_hold` must be longer than zero"),
        ("key = \"a\", min_hold = \"3\"", "no unit of time after `3`"),
        ("key = \"a\", on_lost = abort", "`on_lost` is `cancel` or `finish`"),
        ("key = \"a\", on_lost = \"cancel\"", "`on_lost` is `cancel` or `finish`"),
        ("key = \"a\", on_lost = OnLost::cancel", "`on_lost` is `cancel` or `finish`"),
        ("key = \"a\", on_lost", "`on_lost` needs a value"),
    ]);
}

#[test]
fn each_mistake_about_waiting_is_one_line() {
    assert_messages(&[
        ("key = \"a\", wait = true", "`wait` is no switch"),
        ("key = \"a\", wait = false", "`wait` is no switch"),
        ("key = \"a\", wait = 0", "`wait` must be longer than zero"),
        ("key = \"a\", wait = \"0s\"", "`wait` must be longer than zero"),
        ("key = \"a\", wait = -1", "`wait` must be longer than zero"),
        ("key = \"a\", wait = 9223372036854776", "`wait` is too long"),
        ("key = \"a\", wait = 3s", "a text needs quotes"),
        ("key = \"a\", wait = \"forever\"", "`forever` is no duration"),
        ("key = \"a\", wait =", "`wait` needs a value"),
        ("key = \"a\", wait(3)", "expected `=` after `wait`"),
        ("key = \"a\", wait: 3", "expected `=` after `wait`"),
        ("key = \"a\", wait, wait = 3", "`wait` is given twice"),
        ("key = \"a\", wait fair", "expected `,` before `fair`"),
        ("key = \"a\", fair = true", "`fair` takes no value"),
        ("key = \"a\", fair, fair", "`fair` is given twice"),
        ("key = \"a\", blocking = true", "`blocking` takes no value"),
        ("key = \"a\", waitTime = 3", "unknown option `waitTime`, did you mean `wait`?"),
        ("key = \"a:{}\", wait, id", "unknown option `id`"),
    ]);
}

/// Each text has one mistake, which starts with this line.
fn assert_messages(cases: &[(&str, &str)]) {
    for (text, message) in cases {
        assert_eq!(first_lines(text), [*message], "{text:?}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "key = \"{a}{b}\", expires = 3, expire = 0, guard = 1, prefix = 2";
    let lines = first_lines(text);
    assert_eq!(lines.len(), 5, "{lines:#?}");
}

#[test]
fn an_unknown_option_is_answered_with_the_options() {
    let errors = parse("key = \"a\", nope = 1").1;
    let options = "help: the options are `key`, `keys`, `prefix`, `expire`, `wait`, `fair`, `blocking`, `permits`, \
                   `renew`, `max_hold`, `min_hold`, `once`, `on_busy`, `on_error`, `on_lost`, `guard`, `locker`, `crate`";
    assert_eq!(errors, [format!("unknown option `nope`\n{options}")]);
}

#[test]
fn a_refused_duration_names_its_option() {
    for name in ["expire", "wait", "max_hold", "min_hold"] {
        for value in ["0", "-1", "\"3\"", "10s", "99999999999999999999", "true"] {
            let errors = parse(&format!("key = \"a\", {name} = {value}")).1;
            assert!(errors.iter().all(|error| error.contains(name)), "{value}: {errors:?}");
            assert_eq!(errors.len(), 1, "{name} = {value}");
        }
    }
}

#[test]
fn a_bare_word_after_the_key_is_no_argument() {
    let (args, mistakes) = parse("key = \"a:{}\", renew");
    assert_eq!(mistakes, Vec::<String>::new());
    assert!(args.lease.renew);
    let (args, mistakes) = parse("key = \"a:{}\", wait");
    assert_eq!(mistakes, Vec::<String>::new());
    assert!(matches!(args.wait.wait, Some(Wait::Forever)));
}
