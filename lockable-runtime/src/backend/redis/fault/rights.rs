//! What an ACL has to allow. The one list of that is `acl.md`, which the documentation shows.

use std::sync::LazyLock;

use crate::types::namespace::Namespace;

const DOCUMENTED: &str = include_str!("../../../../acl.md");

/// Of the keys beside a lock.
pub(crate) fn companions(namespace: &Namespace) -> String {
    format!("~{namespace}:*")
}

/// Of the channels on which grants are published.
pub(crate) fn channels(namespace: &Namespace) -> String {
    format!("&{namespace}:*")
}

/// What to do about a right that is missing.
pub(crate) static ADVICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "grant it with `ACL SETUSER`, with your prefix in place of `disLock:` and your namespace in \
         place of `lockable`: locks need `{}`; `Locker::check` names those that are missing",
        least().collect::<Vec<_>>().join(" ")
    )
});

/// The least rights of a user, each a rule of `ACL SETUSER`.
pub(crate) fn least() -> impl Iterator<Item = &'static str> {
    DOCUMENTED.split_whitespace().filter(|word| word.starts_with(['+', '~', '&']))
}
