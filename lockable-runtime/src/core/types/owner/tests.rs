use proptest::prelude::*;

use super::*;
use crate::core::request_id::RequestId;
use crate::core::types::owner::{Origin, OwnerToken};

/// The most that two readings of the clock in one test differ.
const TEST: Duration = Duration::from_secs(60);

fn is_now(time: Option<SystemTime>) -> bool {
    time.is_some_and(|time| SystemTime::now().duration_since(time).is_ok_and(|ago| ago < TEST))
}

#[test]
fn a_token_says_its_process_and_its_time() {
    let process = ProcessId::current().unwrap();
    let token = OwnerToken::draw(Some(&RequestId::new("a b"))).unwrap();
    let said = TokenParts::parse(token.as_ref()).unwrap();
    assert_eq!((said.process, said.identity, said.mark), (process, Some("a b"), None));
    assert!(!said.is_from_queue && is_now(said.attempted_at));
}

#[test]
fn the_token_of_a_waiter_says_so() {
    let number = NumberOfWaiter::draw().unwrap();
    let token = OwnerToken::at(Origin::draw().unwrap(), number, None);
    let said = TokenParts::parse(token.as_ref()).unwrap();
    assert_eq!(said.process, ProcessId::current().unwrap());
    assert!(said.is_from_queue && is_now(said.attempted_at));
}

#[test]
fn marks_of_kept_locks_are_read() {
    let token = OwnerToken::draw(None).unwrap();
    assert_eq!(token.of_ticket().as_ref(), format!("@{}", token.as_ref()));
    for (mark, text) in [(Mark::Kept, "~"), (Mark::KeptForWaiters, "="), (Mark::Ticket, "@")] {
        let value = [text, token.as_ref()].concat();
        let said = TokenParts::parse(&value).unwrap();
        assert_eq!((said.mark, said.is_kept()), (Some(mark), text != "@"));
        assert_eq!(TokenParts { mark: None, ..said }, TokenParts::parse(token.as_ref()).unwrap());
    }
}

#[test]
fn only_the_kept_token_of_a_once_call_is_done() {
    let number = NumberOfWaiter::draw().unwrap();
    let of_waiter = OwnerToken::at(Origin::draw().unwrap(), number, Some(&RequestId::new("a b!")));
    for token in [OwnerToken::draw(None).unwrap(), of_waiter] {
        let once = token.clone().of_once();
        assert!(once.is_of_once() && !token.is_of_once());
        for (mark, is_kept) in [("", false), ("~", true), ("=", true), ("+", false), ("@", false)] {
            let value = [mark, once.as_ref()].concat();
            assert_eq!(is_done(value.as_bytes()), is_kept, "{value}");
            assert!(!is_done([mark, token.as_ref()].concat().as_bytes()));
        }
        let (said, plain) = (TokenParts::parse(once.as_ref()), TokenParts::parse(token.as_ref()));
        assert_eq!(said, plain.map(|plain| TokenParts { is_of_once: true, ..plain }));
        assert!(Origin::of(&once).is_some_and(|origin| origin.is_of(once.as_ref())));
    }
    for other in ["~", "~theirs!", "~0123456789abcdef.!", "~0123456789abcdef.1", "\u{7e}\u{ff}"] {
        assert!(!is_done(other.as_bytes()), "{other}");
    }
}

#[test]
fn an_implausible_time_is_unknown() {
    let tomorrow = micros() + 2 * 86_400_000_000;
    let numbers = [
        "1".to_owned(),
        "18446744073709551615".to_owned(),
        "1577836799999999".to_owned(),
        tomorrow.to_string(),
        format!("{tomorrow}0000000000"),
        format!("{}000000000", micros()),
    ];
    for number in numbers {
        let value = format!("0123456789abcdef.{number} x");
        let said = TokenParts::parse(&value).unwrap();
        assert_eq!(said.process, "012345".parse().unwrap(), "{number}");
        assert_eq!(said.attempted_at, None, "{number}");
        assert_eq!((said.is_from_queue, said.identity), (false, Some("x")), "{number}");
    }
}

#[test]
fn numbers_of_tries_rise() {
    let numbers: Vec<_> = (0..1_000).map(|_| number_of_try()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next));
}

#[test]
fn bytes_are_no_text() {
    assert_eq!(LockValue::new(vec![0xFF, 0xFE]).text(), "");
}

#[test]
fn a_long_value_is_known_by_its_beginning() {
    let of_length = |length: usize| LockValue::new(vec![b'x'; length]);
    let beginning = of_length(LockValue::MAX_BYTES);
    assert!(beginning.is_of(&beginning) && beginning.is_of(&of_length(5_000)));
    assert!(!of_length(7).is_of(&of_length(8)) && !of_length(5_000).is_of(&beginning));
    assert!(!beginning.is_of(&LockValue::new(vec![b'y'; 5_000])));
}

#[test]
fn a_lock_that_is_kept_for_waiters_ends_a_second_earlier() {
    let lasts = |owner: &str| {
        LockValue::new(owner.as_bytes().to_vec()).lasts(Duration::from_millis(2_500)).as_millis()
    };
    let token = OwnerToken::draw(None).unwrap();
    for (mark, millis) in [("", 2_500), ("~", 2_500), ("=", 1_500)] {
        assert_eq!(lasts(&[mark, token.as_ref()].concat()), millis);
    }
    assert_eq!(lasts("=theirs"), 2_500);
}

proptest! {
    #[test]
    fn any_value_is_a_token_or_foreign(
        text in "[~=+@]?[0-9a-f]{15,17}[.-][0-9]{0,27}!?( .{0,9})?|.{0,60}",
        bytes: Vec<u8>,
    ) {
        for value in [text.as_bytes(), &bytes] {
            let whole = LockValue::new(value.to_vec());
            let said = TokenParts::parse(whole.text());
            prop_assert_eq!(is_done(value), said.is_some_and(|said| said.is_done()));
            prop_assert!(unmarked(value) == value || [b"+", unmarked(value)].concat() == value);
            let id = whole.id();
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
