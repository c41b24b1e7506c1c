use crate::core::types::error::LockErrorKind;
use proptest::prelude::*;
use std::collections::HashMap;

use super::*;
use crate::core::text::percent::unescaped;

fn rendered(value: &str, delimiters: &'static str) -> String {
    render(format_args!("{}", Part::new(value, delimiters)), "{}").unwrap()
}

#[test]
fn ordinary_ids_are_unchanged() {
    for id in ["7", "a-b_c.d", "a@b.example", "Ünïcode", "x/y"] {
        assert_eq!(rendered(id, ""), id);
    }
}

#[test]
fn special_characters_are_percent_encoded() {
    assert_eq!(rendered("a:b", ""), "a%3Ab");
    assert_eq!(rendered("{x}", ""), "%7Bx%7D");
    assert_eq!(rendered("100%", ""), "100%25");
    assert_eq!(rendered("a b\tc\u{a0}d\0", ""), "a%20b%09c%C2%A0d%00");
}

#[test]
fn the_character_between_two_holes_is_encoded() {
    assert_eq!(rendered("a-b", ""), "a-b");
    assert_eq!(rendered("a-b", "-"), "a%2Db");
    assert_eq!(rendered("aéb", "é"), "a%C3%A9b");
}

#[test]
fn an_empty_value_is_refused() {
    let (so_far, flaw) =
        render(format_args!("order:{}", Part::new("", "")), "order:{id}").unwrap_err();
    assert_eq!(so_far, "order:");
    assert_eq!(flaw, "the value of `{id}` is empty or cannot be displayed");
}

#[test]
fn a_whole_key_over_one_kibibyte_is_refused() {
    let long = "x".repeat(MAX_KEY_BYTES + 1);
    assert!(LockKey::new(long.clone()).unwrap_err().kind() == LockErrorKind::InvalidKey);
    assert!(LockKey::prefixed("p:", &"x".repeat(MAX_KEY_BYTES - 1)).is_err());
    assert!(LockKey::new("x".repeat(MAX_KEY_BYTES)).is_ok());
    let (so_far, flaw) =
        render(format_args!("{long}{}", Part::new("y", "")), "{long}{}").unwrap_err();
    assert!(so_far.chars().count() <= 49 && flaw.contains("1 KiB"));
}

#[test]
fn a_message_shows_the_beginning_of_a_long_key() {
    let message = LockKey::new("é".repeat(10_000)).unwrap_err().to_string();
    assert!(message.contains("éé…") && message.len() < 250, "{message}");
}

/// Every pair of short values, over the characters that could confuse a template with two holes, gives a key of its
/// own.
#[test]
fn two_holes_are_injective() {
    for delimiter in ["-", ":", "2", "A", "é"] {
        let mut seen = HashMap::new();
        let alphabet = ['-', ':', '2', 'A', '%', 'é', '{'];
        let values: Vec<String> = alphabet
            .iter()
            .flat_map(|a| {
                let pairs = alphabet.iter().map(move |b| format!("{a}{b}"));
                std::iter::once(a.to_string()).chain(pairs)
            })
            .collect();
        for first in &values {
            for second in &values {
                let one = Part::new(first, delimiter);
                let two = Part::new(second, "");
                let key = render(format_args!("{one}{delimiter}{two}"), "{}{}{}").unwrap();
                if let Some(other) = seen.insert(key.clone(), (first, second)) {
                    panic!("{other:?} and {:?} both give {key}", (first, second));
                }
            }
        }
    }
}

#[test]
fn braces_are_allowed_only_as_a_hash_tag() {
    for sound in ["a", "{user}:7", "x{y}z", "{a}{b}"] {
        assert!(LockKey::new(sound).is_ok(), "{sound}");
    }
    for unsound in ["a}b", "{}x", "a{b", "}{", ""] {
        assert!(
            LockKey::new(unsound).unwrap_err().kind() == LockErrorKind::InvalidKey,
            "{unsound}"
        );
    }
}

#[test]
fn every_conversion_checks_the_key() {
    let conversions = |text: &str| {
        [text.parse::<LockKey>(), text.try_into(), text.to_owned().try_into(), LockKey::new(text)]
    };
    for key in conversions("order:7") {
        assert_eq!(key.unwrap().as_str(), "order:7");
    }
    for key in conversions("a}b") {
        assert!(key.unwrap_err().kind() == LockErrorKind::InvalidKey);
    }
}

proptest! {
    #[test]
    fn a_key_is_kept_as_it_is_or_refused(text in "[{}a:]{0,8}|.{0,40}|\\PC{300,400}") {
        match LockKey::new(text.clone()) {
            Ok(key) => prop_assert_eq!(key.as_str(), text),
            Err(error) => prop_assert_eq!(error.kind(), LockErrorKind::InvalidKey),
        }
    }

    #[test]
    fn a_value_in_a_key_is_read_back(one in "[-:%{} 2Aé]{1,6}|.{1,30}", other in "[-:%{} 2Aé]{1,6}|.{1,30}") {
        let (first, second) = (Part::new(&one, "-"), Part::new(&other, ""));
        let Ok(key) = render(format_args!("{first}-{second}"), "{}-{}") else { return Ok(()) };
        prop_assert!(LockKey::new(key.clone()).is_ok(), "{}", key);
        let (first, second) = key.split_once('-').unwrap();
        prop_assert_eq!((unescaped(first), unescaped(second)), (Some(one), Some(other)));
    }
}
