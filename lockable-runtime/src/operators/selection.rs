//! Which keys a listing is about.

use crate::core::naming::namespace::Namespace;

/// The keys of locks with a prefix, and a glob for the rest of their names.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// A glob for whole keys, for the server.
    pattern: String,
    namespace: Namespace,
    /// A key of this length has only the prefix, and is no lock.
    prefix_len: usize,
}

impl Selection {
    pub(crate) fn new(prefix: &str, glob: &str, namespace: &Namespace) -> Self {
        let mut pattern = String::with_capacity(prefix.len() + glob.len());
        for c in prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern.push_str(glob);
        Self { pattern, namespace: namespace.clone(), prefix_len: prefix.len() }
    }

    pub(crate) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the key is of a lock, where it matches the pattern.
    pub(crate) fn may_be_lock(&self, key: &str) -> bool {
        key.len() > self.prefix_len && !self.namespace.is_companion(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.may_be_lock(key) && matches(self.pattern.as_bytes(), key.as_bytes())
    }
}

/// Whether a key matches a glob, as a Redis server decides that.
fn matches(mut pattern: &[u8], mut key: &[u8]) -> bool {
    // Where the last `*` was: what is behind it, and the key from there on.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            (pattern, star) = (rest, Some((rest, key)));
            continue;
        }
        if let Some((first, rest)) = key.split_first() {
            if let Some(behind) = one(pattern, *first) {
                (pattern, key) = (behind, rest);
                continue;
            }
        } else if pattern.is_empty() {
            return true;
        }
        // The last `*` takes one more.
        let Some((behind, [_, rest @ ..])) = star else { return false };
        (pattern, key, star) = (behind, rest, Some((behind, rest)));
    }
}

/// The rest of the pattern, if its first part matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] => {
            let (takes, rest) = class_takes(class, byte);
            takes.then_some(rest)
        }
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [first, rest @ ..] => (*first == byte).then_some(rest),
        [] => None,
    }
}

/// Whether a class such as `a-z]` or `^abc]` matches the byte, and what is behind it. An unclosed class ends with the
/// pattern.
fn class_takes(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_negated, mut class) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut takes = false;
    loop {
        class = match class {
            [] => return (takes != is_negated, class),
            [b']', rest @ ..] => return (takes != is_negated, rest),
            [b'\\', escaped, rest @ ..] => {
                takes |= *escaped == byte;
                rest
            }
            [first, b'-', last, rest @ ..] => {
                takes |= (*first.min(last)..=*first.max(last)).contains(&byte);
                rest
            }
            [first, rest @ ..] => {
                takes |= *first == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn has(prefix: &str, glob: &str, key: &str) -> bool {
        Selection::new(prefix, glob, &Namespace::default()).has(key)
    }

    #[test]
    fn a_glob_is_about_the_name() {
        assert!(has("shop:", "*", "shop:a") && !has("shop:", "*", "shop:"));
        assert!(has("shop:", "order:*", "shop:order:7") && has("", "order:?", "order:7"));
        assert!(!has("shop:", "order:*", "order:7") && !has("shop:", "order", "shop:order:7"));
        assert!(has("", "*a*b*c*", "xxabxbbcx") && !has("", "*a*b*c*", "xxacxb"));
        assert!(has("", "[a-c]\\*[^x]", "b*y") && !has("", "[a-c]\\*[^x]", "b*x"));
    }

    #[test]
    fn a_prefix_is_no_glob() {
        assert!(has("a*?[b]\\:", "*", "a*?[b]\\:c"));
        assert!(!has("a*:", "*", "ab:c") && !has("a?:", "*", "ab:c") && !has("[a]:", "*", "a:c"));
    }

    #[test]
    fn companion_keys_are_no_locks() {
        assert!(!has("", "*", "lockable:queue:{a}") && !has("lock", "*", "lockable:fence:{b}"));
        assert!(has("", "*", "lockables") && has("", "*", "x:lockable:y"));
        let probe = "lockable:probe:0123456789abcdef";
        assert!(!has("", "*", "lockable:queue::{a}:b") && !has("", "*", probe));
        // The prefix of a locker may begin as the namespace does.
        assert!(has("lockable:", "*", "lockable:order:7") && has("", "*", "lockable:queue:a"));
        assert!(!has("lockable:", "*", "lockable:fence:{b}"));
    }

    proptest! {
        #[test]
        fn an_escaped_text_matches_itself_alone(text in ".{1,9}|[a*]{1,3}", other in ".{1,9}|[a*]{1,3}") {
            let escaped: String = text.chars().flat_map(|c| ['\\', c]).collect();
            let key = |name: &str| format!("p:{name}");
            prop_assert!(has("p:", &escaped, &key(&text)));
            prop_assert_eq!(has("p:", &escaped, &key(&other)), text == other);
        }

        #[test]
        fn any_pattern_matches_behind_its_prefix_alone(
            glob in "[-ab*?^\\[\\]\\\\]{0,9}", key in "[-ab*?]{0,9}",
        ) {
            let whole = format!("p:{key}");
            prop_assert!(!has("p:", &glob, &key));
            prop_assert_eq!(has("p:", &glob, &whole), has("", &glob, &key));
        }
    }
}
