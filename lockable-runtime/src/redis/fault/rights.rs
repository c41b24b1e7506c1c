//! What an ACL has to allow. The lists of that are `acl.md` and `acl_operators.md`, which the documentation
//! shows.

use std::sync::LazyLock;

use crate::core::naming::namespace::Namespace;

const DOCUMENTED: &str = include_str!("../../../acl.md");
const DOCUMENTED_OF_OPERATORS: &str = include_str!("../../../acl_operators.md");

/// The pattern of the keys beside a lock.
pub(crate) fn companions(namespace: &Namespace) -> String {
    format!("~{namespace}:*")
}

/// The pattern of the channels on which wake-ups are published.
pub(crate) fn channels(namespace: &Namespace) -> String {
    format!("&{namespace}:*")
}

/// Says what to do about a right that is missing.
pub(crate) static ADVICE: LazyLock<String> = LazyLock::new(|| advice("", least()));

/// Says what to do about a right that a user of Sentinels lacks.
pub(crate) static ADVICE_OF_SENTINELS: LazyLock<String> = LazyLock::new(|| {
    let rights = least_of_sentinels().collect::<Vec<_>>().join(" ");
    format!("grant it with `ACL SETUSER`: of a Sentinel locks need `{rights}`")
});

/// Says what to do about a missing right that only nodes of a cluster need.
pub(crate) static ADVICE_OF_NODES: LazyLock<String> =
    LazyLock::new(|| advice("in a cluster ", least_of_nodes()));

/// Says what to do about a missing right that looking at locks needs.
pub(crate) static ADVICE_OF_READERS: LazyLock<String> = LazyLock::new(|| advice_of_readers(0));

/// Says what to do about a missing right that looking at locks on a node of a cluster needs.
pub(crate) static ADVICE_OF_READERS_OF_NODES: LazyLock<String> =
    LazyLock::new(|| advice_of_readers(1));

fn advice_of_readers(number: usize) -> String {
    let rights = rules(DOCUMENTED_OF_OPERATORS, number).collect::<Vec<_>>().join(" ");
    format!(
        "grant it with `ACL SETUSER`, with your prefix in place of `disLock:` and your namespace in place of \
         `lockable`: who looks at locks needs `{rights}`"
    )
}

fn advice(place: &str, rights: impl Iterator<Item = &'static str>) -> String {
    format!(
        "grant it with `ACL SETUSER`, with your prefix in place of `disLock:` and your namespace in place of \
         `lockable`: {place}locks need `{}`; `Locker::check` names those that are missing",
        rights.collect::<Vec<_>>().join(" ")
    )
}

/// Whether the words of a server are about a command that only nodes of a cluster are asked for.
pub(crate) fn are_of_nodes(words: &str) -> bool {
    ["spublish", "ssubscribe", "sunsubscribe", "pubsub", "asking", "cluster"]
        .iter()
        .any(|command| words.contains(&format!("'{command}")))
}

/// The least rights of a user, each a rule of `ACL SETUSER`.
pub(crate) fn least() -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED, 0)
}

/// Returns the least rights of a user of Sentinels, each a rule of `ACL SETUSER`.
pub(crate) fn least_of_sentinels() -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED, 1)
}

/// Returns the least rights of a user of a cluster, each a rule of `ACL SETUSER`.
pub(crate) fn least_of_nodes() -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED, 2)
}

/// Returns the rights of the documented line with that number: of readers or operators, of a server or of nodes.
#[cfg(test)]
pub(crate) fn of_operators(number: usize) -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED_OF_OPERATORS, number)
}

/// Returns the rules of the documented line with that number.
fn rules(text: &'static str, number: usize) -> impl Iterator<Item = &'static str> {
    let mut lines = text.lines().filter(|line| line.starts_with("ACL SETUSER "));
    let words = lines.nth(number).unwrap_or_default().split_whitespace();
    words.filter(|word| word.starts_with(['+', '~', '&', '%']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_server_has_a_line() {
        let of_server: Vec<_> = least().collect();
        assert!(of_server.contains(&"+set") && !of_server.contains(&"&+switch-master"));
        let sentinels: Vec<_> = least_of_sentinels().collect();
        assert!(sentinels.contains(&"&+switch-master") && !sentinels.contains(&"+set"));
        let of_nodes: Vec<_> = least_of_nodes().collect();
        assert!(of_nodes.contains(&"+set") && of_nodes.contains(&"+spublish"));
    }
}
