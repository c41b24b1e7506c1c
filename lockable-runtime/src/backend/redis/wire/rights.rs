//! What an ACL has to allow. The one list of that is `acl.md`, which the documentation shows.

use std::sync::LazyLock;

const DOCUMENTED: &str = include_str!("../../../../acl.md");

/// Of the keys beside a lock.
pub(crate) const COMPANIONS: &str = "~lockable:*";

/// Of the channels on which grants are published.
pub(crate) const CHANNELS: &str = "&lockable:*";

/// What to do about a right that is missing.
pub(crate) static ADVICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "grant it with `ACL SETUSER`, with your prefix in place of `disLock:`: locks need `{}`; \
         `Locker::check` names those that are missing",
        least().collect::<Vec<_>>().join(" ")
    )
});

/// The least rights of a user, each a rule of `ACL SETUSER`.
pub(crate) fn least() -> impl Iterator<Item = &'static str> {
    DOCUMENTED.split_whitespace().filter(|word| word.starts_with(['+', '~', '&']))
}
