//! What an ACL has to allow, by the documented lists `acl.md` and `acl_operators.md`.

use std::sync::LazyLock;

use crate::core::naming::namespace::Namespace;

const DOCUMENTED: &str = include_str!("../../../acl.md");
const DOCUMENTED_OF_OPERATORS: &str = include_str!("../../../acl_operators.md");

pub(crate) fn companions(namespace: &Namespace) -> String {
    format!("~{namespace}:*")
}

pub(crate) fn channels(namespace: &Namespace) -> String {
    format!("&{namespace}:*")
}

pub(crate) static ADVICE: LazyLock<String> = LazyLock::new(|| advice("", least()));

pub(crate) static ADVICE_OF_SENTINELS: LazyLock<String> = LazyLock::new(|| {
    let rights = least_of_sentinels().collect::<Vec<_>>().join(" ");
    format!("grant it with `ACL SETUSER`: of a Sentinel locks need `{rights}`")
});

pub(crate) static ADVICE_OF_NODES: LazyLock<String> =
    LazyLock::new(|| advice("in a cluster ", least_of_nodes()));

pub(crate) static ADVICE_OF_READERS: LazyLock<String> = LazyLock::new(|| advice_of_readers(0));

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
         `lockable`: {place}locks need `{}`; `Locker::check` and `lockable check` name those that are missing",
        rights.collect::<Vec<_>>().join(" ")
    )
}

/// Whether the server's words are about a command that only nodes of a cluster get.
pub(crate) fn are_of_nodes(words: &str) -> bool {
    ["spublish", "ssubscribe", "sunsubscribe", "pubsub", "asking", "cluster"]
        .iter()
        .any(|command| words.contains(&format!("'{command}")))
}

pub(crate) fn least() -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED, 0)
}

pub(crate) fn least_of_sentinels() -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED, 1)
}

pub(crate) fn least_of_nodes() -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED, 2)
}

/// The rights of the documented line with that number: of readers or operators, of a server or of nodes.
#[cfg(test)]
pub(crate) fn of_operators(number: usize) -> impl Iterator<Item = &'static str> {
    rules(DOCUMENTED_OF_OPERATORS, number)
}

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
