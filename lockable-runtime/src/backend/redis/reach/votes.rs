//! Which server is the primary, by what Sentinels answer.

use std::collections::{BTreeSet, HashMap};

use super::place::Place;

/// What one Sentinel answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vote<F> {
    Primary(Place),
    /// It watches no primary of that name, but these, as far as the user may ask.
    Unknown(Vec<String>),
    /// It gave no answer that counts, for this reason.
    None(F),
}

/// The primary that Sentinels name.
pub(crate) struct Elected {
    pub(crate) place: Place,
    /// Whether most of all Sentinels name it.
    pub(crate) is_by_majority: bool,
    /// Whether others are named as often.
    pub(crate) is_tied: bool,
}

/// The votes of a number of Sentinels.
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

    /// Whether a primary was named yet.
    pub(crate) fn has_primary(&self) -> bool {
        self.votes.iter().any(|vote| matches!(vote, Vote::Primary(_)))
    }

    /// Whether most of all Sentinels name the same primary: what the others would answer makes no difference.
    pub(crate) fn are_decided(&self) -> bool {
        self.most_named().is_some_and(|(_, count)| self.is_majority(count))
    }

    /// The primary that most of the votes name; of two that are named equally often, the one that was named
    /// first.
    pub(crate) fn elected(&self) -> Option<Elected> {
        let (place, count) = self.most_named()?;
        let is_named_as_often = |other: &Place| {
            other != place && self.named().filter(|it| *it == other).count() == count
        };
        let is_tied = self.named().any(is_named_as_often);
        Some(Elected { place: place.clone(), is_by_majority: self.is_majority(count), is_tied })
    }

    fn is_majority(&self, count: usize) -> bool {
        count > self.voters / 2
    }

    fn most_named(&self) -> Option<(&Place, usize)> {
        let mut counts = HashMap::<&Place, usize>::new();
        let named: Vec<_> = self.named().collect();
        for place in &named {
            *counts.entry(place).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let first = named.into_iter().find(|place| counts.get(place) == Some(&most))?;
        Some((first, most))
    }

    /// The primaries that are named, in the order of the votes.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Place> {
        self.votes.iter().filter_map(|vote| match vote {
            Vote::Primary(place) => Some(place),
            Vote::Unknown(_) | Vote::None(_) => None,
        })
    }

    /// Whether a Sentinel answered that it watches no primary of that name.
    pub(crate) fn has_unknown(&self) -> bool {
        self.votes.iter().any(|vote| matches!(vote, Vote::Unknown(_)))
    }

    /// The primaries that those watch.
    pub(crate) fn watched(&self) -> BTreeSet<&str> {
        let watched = self.votes.iter().filter_map(|vote| match vote {
            Vote::Unknown(watched) => Some(watched),
            Vote::Primary(_) | Vote::None(_) => None,
        });
        watched.flatten().map(String::as_str).collect()
    }

    /// Why those have no vote that gave no answer.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &F> {
        self.votes.iter().filter_map(|vote| match vote {
            Vote::None(reason) => Some(reason),
            Vote::Primary(_) | Vote::Unknown(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Place {
        Place { host: "10.0.0.7".to_owned(), port }
    }

    /// A port is a vote for it, zero one for no primary, and a dot no vote.
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
            elected.map(|elected| elected.place)
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
        let elected = |voters, text| votes(voters, text).elected().map(|elected| elected.place);
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
