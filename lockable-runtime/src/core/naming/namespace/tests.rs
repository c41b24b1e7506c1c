use crate::core::types::error::LockErrorKind;
use proptest::prelude::*;

use super::*;

fn namespace(text: &str) -> Namespace {
    Namespace::new(text).unwrap()
}

#[test]
fn companion_keys_share_the_slot() {
    let namespace = Namespace::default();
    for key in ["disLock:order:7", "disLock:{user}:7"].map(LockKey::from_static) {
        let (slot, queue) = (Slot::of(&key), namespace.queue(&key).to_string());
        for name in [namespace.fence(slot).to_string(), queue] {
            assert_eq!(Slot::of(&LockKey::new(name).unwrap()), slot);
        }
    }
    let tagged = LockKey::from_static("disLock:{user}:7");
    assert_eq!(namespace.queue(&tagged).to_string(), "lockable:queue::disLock:{user}:7");
}

fn hashed(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map_or(key, |(tag, _)| if tag.is_empty() { key } else { tag })
}

proptest! {
    #[test]
    fn no_two_keys_share_a_name(
        prefix in "([{}:a]{1,3})?", one in "[{}:#a01]{1,6}", other in "[{}:#a01]{1,6}", is_tag: bool,
    ) {
        let namespace = Namespace::default();
        let other = if is_tag { format!("{{{one}}}") } else { other };
        let keys = [one, other].map(|text| namespace.key(&prefix, &text));
        let [Ok(one), Ok(other)] = keys else { return Ok(()) };
        let queue = namespace.queue(&one).to_string();
        prop_assert_eq!(hashed(&queue), hashed(one.as_str()));
        let [ours, theirs] = [&one, &other].map(|key| names(&namespace, key, prefix.len()));
        let shared = ours.iter().find(|name| theirs.contains(name));
        prop_assert!(one == other || shared.is_none(), "{shared:?} of `{one}` and `{other}`");
    }

    /// Goal: a text that a user can give names a permit, a gate, a queue or a fence counter of another key. Method:
    /// each of their names, behind every prefix that it can begin with.
    #[test]
    fn no_key_has_the_name_of_what_belongs_to_another(
        namespace in "[:#a]{1,3}", prefix in "([{}:a]{1,3})?", text in "[{}:#a01]{1,6}",
    ) {
        let namespace = Namespace::new(&namespace).unwrap();
        let Ok(key) = namespace.key(&prefix, &text) else { return Ok(()) };
        let fence = namespace.fence(Slot::of(&key)).to_string();
        for name in names(&namespace, &key, prefix.len()).into_iter().chain([fence]) {
            for (at, _) in name.char_indices() {
                let (prefix, text) = name.split_at(at);
                let is_key = namespace.key(prefix, text).is_ok();
                prop_assert!(!is_key, "`{prefix}` and `{text}` name what belongs to `{key}`");
            }
        }
    }
}

/// The names of what belongs to a key, without the lock itself and the fence counter, which a slot shares.
fn names(namespace: &Namespace, key: &LockKey, prefix: usize) -> Vec<String> {
    let mut names = vec![namespace.queue(key).to_string()];
    if let Ok(permits_key) = PermitsKey::of(key, prefix) {
        let all = permits_key.all(64).unwrap();
        let gate = all.first().map(|gate| namespace.queue(gate).to_string());
        names.extend([namespace.queue_of(&permits_key).to_string()].into_iter().chain(gate));
        names.extend(all.iter().map(ToString::to_string));
    }
    names
}

#[test]
fn a_whole_key_as_tag_has_a_queue_of_its_own() {
    let (plain, tagged) = (LockKey::from_static("user"), LockKey::from_static("{user}"));
    let namespace = Namespace::default();
    assert_ne!(namespace.queue(&plain).to_string(), namespace.queue(&tagged).to_string());
}

#[test]
fn every_name_lies_in_the_namespace() {
    let (shop, key) = (namespace("shop:lockable"), LockKey::from_static("shop:order:7"));
    let origin = Origin::draw().unwrap();
    let probe = shop.of_probe(origin);
    let slot = Slot::of(&key);
    let names = [shop.fence(slot), shop.queue(&key), probe.fence(slot), probe.queue(&key)];
    for name in names.map(|name| name.to_string()).into_iter().chain([shop.channel(origin)]) {
        assert!(name.starts_with("shop:lockable:"), "{name}");
    }
    assert_eq!(shop.channel(origin), format!("shop:lockable:grant:{origin}"));
}

/// `spublish.lua` makes the same name of the fence counter's.
#[test]
fn a_shard_channel_shares_the_slot() {
    let (shop, key) = (namespace("shop:lockable"), LockKey::from_static("shop:order:7"));
    let (origin, slot) = (Origin::draw().unwrap(), Slot::of(&key));
    let channel = shop.shard_channel(origin, slot);
    let fence = shop.fence(slot).to_string();
    let (begin, end) = (&fence[..fence.len() - 12], &fence[fence.len() - 5..]);
    assert_eq!(channel, format!("{begin}:grant:{origin}:{end}"));
    assert_eq!(Slot::of(&LockKey::new(channel).unwrap()), slot);
}

#[test]
fn what_begins_no_name_is_refused() {
    let long = "x".repeat(MAX_BYTES + 1);
    let cases = [
        ("", "is empty"),
        ("shop lockable", "white space"),
        (" shop", "white space"),
        ("shop\n", "white space"),
        ("shop\u{a0}", "white space"),
        ("shop\0", "a control character"),
        ("{shop}", "a brace"),
        ("shop}", "a brace"),
        (&long, "longer than 256 bytes"),
    ];
    for (text, flaw) in cases {
        let error = Namespace::new(text).unwrap_err();
        assert!(error.kind() == LockErrorKind::InvalidOption, "{text:?}");
        assert!(error.to_string().contains(flaw), "{text:?}: {error}");
        assert!(error.to_string().contains("`shop:lockable`"), "{error}");
    }
    for text in ["lockable", "shop:lockable", "é", &long[1..]] {
        assert_eq!(Namespace::new(text).unwrap().as_str(), text);
    }
}

#[test]
fn no_lock_has_the_name_of_a_companion() {
    let namespace = Namespace::new("shop:lockable").unwrap();
    for (prefix, text) in [("", "shop:lockable:queue:{k}"), ("shop:", "lockable:fence:{abc}")] {
        let error = namespace.key(prefix, text).unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidKey && error.to_string().contains("`namespace`"),
            "{error}"
        );
    }
    assert_eq!(
        namespace.key("shop:", "lockable:order:7").unwrap().as_str(),
        "shop:lockable:order:7"
    );
}
