use super::*;
use crate::core::types::owner::TokenParts;

fn identity_of(value: &str) -> Option<&str> {
    TokenParts::parse(value)?.identity
}

#[test]
fn a_fencing_token_fits_into_a_signed_number() {
    let signed = |value| FencingToken::new(value).as_i64();
    assert_eq!(signed(1_750_000_000_000_001), 1_750_000_000_000_001);
    assert_eq!([signed(0), signed(u64::MAX)], [0, i64::MAX]);
}

#[test]
fn a_fencing_token_survives_number_and_text() {
    for token in [0, 1_750_000_000_000_001, i64::MAX.unsigned_abs()].map(FencingToken::new) {
        assert_eq!(FencingToken::try_from(token.as_i64()), Ok(token));
        assert_eq!(token.to_string().parse(), Ok(token));
    }
    let greatest = FencingToken::new(u64::MAX);
    assert_eq!(greatest.to_string().parse(), Ok(greatest));
}

#[test]
fn what_is_no_whole_number_is_no_fencing_token() {
    for number in [-1, i64::MIN] {
        assert_eq!(FencingToken::try_from(number), Err(FencingTokenError(())));
    }
    for text in ["", " 1", "-1", "1.0", "0x1", "one", "18446744073709551616"] {
        assert_eq!(text.parse::<FencingToken>(), Err(FencingTokenError(())), "{text:?}");
    }
}

/// Goal: two processes that were started from one image have different tokens, although all that they
/// have in memory is the same.
#[test]
fn tokens_of_later_calls_have_another_prefix() {
    let start = Moment::from_nanos(7);
    let prefix = Prefix::draw(start).unwrap();
    let origin = |after| prefix.origin(start.after(after)).unwrap();
    let first = origin(Duration::ZERO);
    assert_eq!(origin(LONGEST_USE), first);
    let second = origin(2 * LONGEST_USE);
    assert_ne!(second, first);
    assert_eq!(origin(3 * LONGEST_USE), second);
    assert_ne!(origin(4 * LONGEST_USE), second);
}

#[test]
fn owner_tokens_differ_and_are_plain_ascii() {
    let (first, second) = (OwnerToken::draw(None).unwrap(), OwnerToken::draw(None).unwrap());
    assert_ne!(first, second);
    assert!(first.as_ref().bytes().all(|byte| byte.is_ascii_graphic()));
}

#[test]
fn owner_tokens_do_not_show_themselves() {
    let token = OwnerToken::draw(None).unwrap();
    assert!(!format!("{token:?}").contains(token.as_ref()));
}

#[test]
fn two_acquisitions_of_one_request_have_two_tokens() {
    let id = RequestId::new("a");
    assert_ne!(OwnerToken::draw(Some(&id)).unwrap(), OwnerToken::draw(Some(&id)).unwrap());
}

#[test]
fn a_token_gives_its_request_id_back() {
    for text in ["a", "checkout 7", "~a.b ~c  d"] {
        let token = OwnerToken::draw(Some(&RequestId::new(text))).unwrap();
        assert_eq!(identity_of(token.as_ref()), Some(text));
        for mark in ["~", "="] {
            let marked = [mark, token.as_ref()].concat();
            assert_eq!(identity_of(&marked), Some(text));
        }
    }
    let token = OwnerToken::draw(None).unwrap();
    assert_eq!(identity_of(token.as_ref()), None);
    assert_eq!(identity_of(&format!("~{}", token.as_ref())), None);
}

#[test]
fn values_of_other_libraries_have_no_request_id() {
    let foreign = [
        "",
        "~",
        " ",
        "1",
        "8f14e45f-ceea-467f-a0e6-3d0f0a1b2c3d",
        "8f14e45f-ceea-467f-a0e6-3d0f0a1b2c3d a",
        "host.1 thread 7",
        "0123456789abcdef.1 ",
        "0123456789abcdef. a",
        "0123456789abcdef.x a",
        "0123456789ABCDEF.1 a",
        "0123456789abcde.1 a",
        "0123456789abcdef0.1 a",
        "~~0123456789abcdef.1 a",
        " 0123456789abcdef.1 a",
        "0123456789abcdef.1\ta",
        "é123456789abcdef.1 a",
    ];
    assert_eq!(foreign.map(identity_of), [None; 17]);
}

#[test]
fn a_generated_request_id_reveals_no_owner_token() {
    let (token, id) = (OwnerToken::draw(None).unwrap(), RequestId::generate());
    assert_ne!(token.as_ref().split_once('.').unwrap().0, id.as_str().split_once('-').unwrap().0);
}
