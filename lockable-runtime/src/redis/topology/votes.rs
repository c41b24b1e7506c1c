//! Majorities: of Sentinels about the primary, and of nodes about a slot.

use std::collections::BTreeSet;

use crate::redis::connect::endpoint::Endpoint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vote<F> {
    Primary(Endpoint),
    /// It watches no primary of that name, but these, as far as the user may ask.
    Unknown(Vec<String>),
    None(F),
}

impl<F> Vote<F> {
    pub(crate) fn primary(&self) -> Option<&Endpoint> {
        if let Self::Primary(endpoint) = self { Some(endpoint) } else { None }
    }

    pub(crate) fn watched(&self) -> Option<&[String]> {
        if let Self::Unknown(watched) = self { Some(watched) } else { None }
    }
}

pub(crate) struct Elected {
    pub(crate) endpoint: Endpoint,
    pub(crate) is_by_majority: bool,
    pub(crate) is_tied: bool,
}

pub(crate) struct Votes<F> {
    voters: usize,
    votes: Vec<Vote<F>>,
}

impl<F> Votes<F> {
    pub(crate) fn of(voters: usize) -> Self {
        Self { voters, votes: Vec::with_capacity(voters) }
    }

    pub(crate) fn add(&mut self, vote: Vote<F>) {
        self.votes.push(vote);
    }

    pub(crate) fn has_primary(&self) -> bool {
        self.named().next().is_some()
    }

    /// Whether most of all Sentinels name the same primary, so that the others do not matter.
    pub(crate) fn are_decided(&self) -> bool {
        self.elected().is_some_and(|elected| elected.is_by_majority)
    }

    /// The primary with the most votes; in a tie, the one that was named first.
    pub(crate) fn elected(&self) -> Option<Elected> {
        let Most { what, count, is_tied } = most(&self.named().collect::<Vec<_>>())?;
        let is_by_majority = count > self.voters / 2;
        Some(Elected { endpoint: what.clone(), is_by_majority, is_tied })
    }

    pub(crate) fn named(&self) -> impl Iterator<Item = &Endpoint> {
        self.votes.iter().filter_map(Vote::primary)
    }

    pub(crate) fn has_unknown(&self) -> bool {
        self.votes.iter().any(|vote| vote.watched().is_some())
    }

    pub(crate) fn watched(&self) -> BTreeSet<&str> {
        self.votes.iter().filter_map(Vote::watched).flatten().map(String::as_str).collect()
    }

    pub(crate) fn reasons(&self) -> impl Iterator<Item = &F> {
        self.votes.iter().filter_map(|vote| match vote {
            Vote::None(reason) => Some(reason),
            Vote::Primary(_) | Vote::Unknown(_) => None,
        })
    }
}

pub(super) struct Most<'a, T> {
    /// The first of several.
    pub(super) what: &'a T,
    pub(super) count: usize,
    pub(super) is_tied: bool,
}

pub(super) fn most<'a, T: PartialEq>(named: &[&'a T]) -> Option<Most<'a, T>> {
    let [first, others @ ..] = named else { return None };
    if others.iter().all(|other| other == first) {
        return Some(Most { what: first, count: named.len(), is_tied: false });
    }
    let count = |what: &T| named.iter().filter(|other| **other == what).count();
    let highest = named.iter().map(|what| count(what)).max()?;
    let what = *named.iter().find(|what| count(what) == highest)?;
    let is_tied = named.iter().any(|other| *other != what && count(other) == highest);
    Some(Most { what, count: highest, is_tied })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Endpoint {
        Endpoint { host: "10.0.0.7".to_owned(), port }
    }

    /// A port is a vote for it, zero one for no primary, a dot no vote.
    fn votes(voters: usize, text: &str) -> Votes<()> {
        let mut all = Votes::of(voters);
        for vote in text.split_whitespace() {
            all.add(match vote {
                "." => Vote::None(()),
                "0" => Vote::Unknown(vec!["other".to_owned()]),
                port => Vote::Primary(at(port.parse().unwrap())),
            });
        }
        all
    }

    #[test]
    fn a_majority_decides_at_once() {
        let decided = |voters, text| {
            let votes = votes(voters, text);
            let elected = votes.elected().filter(|elected| elected.is_by_majority);
            assert_eq!(votes.are_decided(), elected.is_some());
            elected.map(|elected| elected.endpoint)
        };
        assert_eq!(decided(3, "1"), None);
        assert_eq!(decided(3, "1 1"), Some(at(1)));
        assert_eq!(decided(3, "1 2"), None);
        assert_eq!(decided(3, ". 2 2"), Some(at(2)));
        assert_eq!(decided(1, "1"), Some(at(1)));
        assert_eq!(decided(2, "1"), None);
        assert_eq!(decided(5, "1 0 . 1"), None);
    }

    #[test]
    fn without_a_majority_the_most_named_is_elected() {
        let elected = |voters, text| votes(voters, text).elected().map(|elected| elected.endpoint);
        assert_eq!(elected(3, "1 . ."), Some(at(1)));
        assert_eq!(elected(5, "1 2 2 0"), Some(at(2)));
        assert_eq!(elected(2, "2 1"), Some(at(2)), "the first of two");
        assert_eq!(elected(3, "0 . ."), None);
    }

    #[test]
    fn places_that_are_named_equally_often_are_tied() {
        let is_tied = |text| votes(4, text).elected().unwrap().is_tied;
        assert!(is_tied("1 2") && is_tied("2 1 . 0") && is_tied("1 2 2 1"));
        assert!(!is_tied("1 . .") && !is_tied("1 2 2") && !is_tied("1 1"));
    }

    #[test]
    fn what_is_no_vote_stays_known() {
        let votes = votes(4, "0 . . 0");
        assert!(votes.has_unknown() && !votes.has_primary());
        assert_eq!(votes.reasons().count(), 2);
        assert_eq!(votes.watched().into_iter().collect::<Vec<_>>(), ["other"]);
    }
}
