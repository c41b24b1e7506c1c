use proc_macro2::TokenStream;

use super::LockedFn;
use crate::args::LockArgs;
use crate::mistakes::Mistakes;
use crate::target::Target;

fn mistakes(args: &str, item: &str) -> Vec<String> {
    let item: TokenStream = item.parse().unwrap();
    let mut mistakes = Mistakes::default();
    let args = LockArgs::parse(args.parse().unwrap(), &mut mistakes);
    match LockedFn::prove(args, Target::parse(&item).unwrap(), mistakes) {
        Ok(_) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    }
}

fn first_lines(args: &str, item: &str) -> Vec<String> {
    let lines = mistakes(&format!("key = \"k\", {args}"), item);
    lines.iter().map(|error| error.lines().next().unwrap_or("").to_owned()).collect()
}

const ASYNC: &str = "async fn f() {}";
const BOXED: &str = "fn f() -> BoxFuture<'static, ()> { Box::pin(async {}) }";
const SYNC: &str = "fn f() {}";

#[test]
fn options_that_do_not_go_together_are_refused() {
    let cases = [
        ("max_hold = \"5m\"", ASYNC, "`max_hold` needs `renew`"),
        ("max_hold = LONG, expire = 10", ASYNC, "`max_hold` needs `renew`"),
        ("fair", ASYNC, "`fair` needs `wait`"),
        ("fair", SYNC, "`fair` needs `wait`"),
        ("blocking", SYNC, "`blocking` needs `wait`"),
        ("blocking", ASYNC, "`blocking` is for a sync `fn`"),
        ("wait, blocking", ASYNC, "`blocking` is for a sync `fn`"),
        ("wait = 3, blocking", BOXED, "`blocking` is for a sync `fn`"),
        ("min_hold = 11, expire = 10", ASYNC, "`min_hold` is longer than `expire`"),
        ("expire = \"50ms\", min_hold = \"51ms\"", SYNC, "`min_hold` is longer than `expire`"),
        ("on_lost = cancel", SYNC, "the body of a sync `fn` cannot be stopped"),
        ("guard = id", "async fn f(id: u64) {}", "`guard = id` would hide the parameter `id`"),
    ];
    for (args, item, message) in cases {
        assert_eq!(first_lines(args, item), [message], "{args:?}");
    }
}

#[test]
fn options_that_go_together_are_accepted() {
    let every_kind = [ASYNC, BOXED, SYNC];
    let cases = [
        "wait",
        "fair, wait",
        "wait = 3, fair",
        "wait = LONG, on_busy = skip",
        "renew, max_hold = \"5m\"",
        "max_hold = LONG, renew",
        "min_hold = 10, expire = 10",
        "min_hold = \"1h\"",
        "min_hold = \"1h\", expire = LONG",
        "min_hold = LONG, expire = 1",
        "on_lost = finish",
    ];
    for (args, item) in cases.into_iter().flat_map(|args| every_kind.map(|item| (args, item))) {
        assert_eq!(first_lines(args, item), Vec::<String>::new(), "{args:?} {item:?}");
    }
    assert_eq!(first_lines("wait = 3, fair, blocking", SYNC), Vec::<String>::new());
    for item in [ASYNC, BOXED] {
        assert_eq!(first_lines("on_lost = cancel", item), Vec::<String>::new(), "{item:?}");
    }
}

#[test]
fn one_mistake_is_reported_once() {
    let cases = [
        ("renew = true, max_hold = 5", ASYNC, "`renew` takes no value"),
        ("watchdog, max_hold = 5", ASYNC, "unknown option `watchdog`, did you mean `renew`?"),
        ("wait = true, fair", ASYNC, "`wait` is no switch"),
        ("wait = 0, blocking", SYNC, "`wait` must be longer than zero"),
        ("waitTime = 3, fair", ASYNC, "unknown option `waitTime`, did you mean `wait`?"),
        ("expire = 0, min_hold = 5", ASYNC, "`expire` must be longer than zero"),
        (
            "on_lost = cancel",
            "const fn f() {}",
            "`#[distributed_lock]` cannot be put on a `const fn`",
        ),
        (
            "on_lost = cancel",
            "fn f() -> impl Future<Output = u8> { g() }",
            "the future would run after the lock is released",
        ),
    ];
    for (args, item, message) in cases {
        assert_eq!(first_lines(args, item), [message], "{args:?}");
    }
}

#[test]
fn braces_of_a_prefix_that_some_key_allows_are_accepted() {
    let cases = [
        "key = \"k\", prefix = \"{shop}:\"",
        "key = \"{{k}}\", prefix = \"a}:\"",
        "key = \"{{{id}}}\", prefix = \"shop:\"",
        "key = \"id}}\", prefix = \"{\"",
        "key = KEY, prefix = \"a}\"",
        "key = KEY, prefix = \"shop:{\"",
    ];
    for args in cases {
        assert_eq!(mistakes(args, "async fn f(id: u64) {}"), [""; 0], "{args}");
    }
    let refused = mistakes("key = KEY, prefix = \"{}\"", ASYNC);
    assert!(refused.concat().contains("of the prefix are no hash tag"), "{refused:?}");
}

#[test]
fn a_hole_that_is_no_parameter_names_those_there_are() {
    let mistake = |key: &str, item: &str| mistakes(&format!("key = {key:?}"), item).concat();
    let item = "async fn f<const N: usize>(&self, order_id: u64, (a, _b): (u8, u8)) {}";
    let text = mistake("{orderid}", item);
    assert!(
        text.starts_with("`orderid` is no parameter of `f`, did you mean `order_id`?"),
        "{text}"
    );
    assert!(text.contains("the parameters are `self`, `order_id`, `a`, `_b`, `N`;"), "{text}");
    assert!(mistake("{x}", ASYNC).contains("there are no parameters;"));
    assert!(mistake("{self}", "fn f(x: u8) {}").contains("the parameter is `x`;"));
    for key in ["{self}:{order_id}-{a}:{_b}:{N}", "{LIMIT}:{MAX_2}"] {
        assert_eq!(mistake(key, item), "", "{key}");
    }
    assert_eq!(mistakes("key(\"{x}\", x = 1)", ASYNC), [""; 0]);
}
