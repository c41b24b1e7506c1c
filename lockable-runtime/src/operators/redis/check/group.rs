//! The Sentinels of a URL: whether they name a primary, and can move it when it fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cluster::each;
use super::sentinel::{Said, examine};
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::topology::sentinels::Sentinels;
use crate::redis::topology::votes::Vote;

/// What all of them said.
///
/// See "What does the check examine at Sentinels and in a cluster?" in DESIGN.md.
pub(super) struct Group {
    primary: String,
    said: Vec<Said>,
}

impl Group {
    pub(super) async fn of(all: &Arc<Sentinels>) -> Self {
        let examine = |sentinel| examine(sentinel, Arc::clone(all));
        let said = each(all.each.iter().cloned().map(examine).collect()).await;
        Self { primary: all.primary.clone(), said }
    }

    pub(super) fn names_primary(&self) -> bool {
        self.endpoints().next().is_some()
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<_> = self.said.iter().flat_map(|one| self.of_one(one)).collect();
        findings.extend(self.of_names());
        findings
    }

    /// A flaw of one is an error if no other Sentinel helps.
    fn of_one(&self, said: &Said) -> impl Iterator<Item = Finding> {
        let severity = if self.names_primary() { Severity::Warning } else { Severity::Error };
        let vote = match &said.vote {
            Vote::None(flaw) => Some(flaw.finding.clone().graded(severity)),
            Vote::Unknown(_) if self.names_primary() => {
                let message = format!("it watches no primary named {:?}", self.primary);
                Some(Finding::new(severity, Code::UnknownPrimary, message))
            }
            Vote::Unknown(_) | Vote::Primary(_) => None,
        };
        let all = vote.into_iter().chain(said.besides.clone());
        all.map(|finding| finding.at(&said.name))
    }

    fn of_names(&self) -> Option<Finding> {
        let mut by_place = BTreeMap::<_, Vec<_>>::new();
        for (endpoint, name) in self.endpoints() {
            by_place.entry(endpoint).or_default().push(name);
        }
        if by_place.is_empty() {
            return Some(self.nameless());
        }
        let named =
            by_place.iter().map(|(endpoint, by)| format!("{endpoint} by {}", by.join(", ")));
        let named: Vec<_> = named.collect();
        let message = format!("the Sentinels name different primaries: {}", named.join("; "));
        let finding = Finding::new(Severity::Error, Code::SentinelsDisagree, message);
        (by_place.len() > 1).then_some(finding)
    }

    fn nameless(&self) -> Finding {
        let unknown: Vec<_> = self.said.iter().filter_map(|one| one.vote.watched()).collect();
        if unknown.is_empty() {
            let message = format!("no Sentinel names the primary {:?}", self.primary);
            let finding = Finding::new(Severity::Error, Code::Unreachable, message);
            return finding.advise("see what was found about each Sentinel");
        }
        let names: BTreeSet<_> = unknown.into_iter().flatten().map(String::as_str).collect();
        let names: Vec<_> = names.into_iter().collect();
        let others =
            if names.is_empty() { String::new() } else { format!(", but {}", names.join(", ")) };
        let message = format!("the Sentinels watch no primary named {:?}{others}", self.primary);
        Finding::new(Severity::Error, Code::UnknownPrimary, message)
    }

    fn endpoints(&self) -> impl Iterator<Item = (&Endpoint, &str)> {
        self.said.iter().filter_map(|one| Some((one.vote.primary()?, one.name.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::backend::Fault;
    use crate::redis::wire::flaw::Flaw;

    /// What Sentinels said: the port of the primary, zero for another one's, or a dot for nothing.
    fn group(said: &str) -> Group {
        let one = |(number, text): (usize, &str)| {
            let vote = match text {
                "." => {
                    let finding = Finding::new(Severity::Warning, Code::SentinelSilent, "silent");
                    let fault = Fault::unavailable("silent");
                    Vote::None(Flaw { finding, fault, error: None })
                }
                "0" => Vote::Unknown(vec!["other".to_owned()]),
                port => {
                    Vote::Primary(Endpoint { host: "h".to_owned(), port: port.parse().unwrap() })
                }
            };
            Said { name: format!("s{number}:26379"), vote, besides: None }
        };
        let said = said.split_whitespace().enumerate().map(one).collect();
        Group { primary: "mm".to_owned(), said }
    }

    fn found(said: &str) -> Vec<(Severity, Code)> {
        let findings = group(said).findings();
        findings.iter().map(|finding| (finding.severity(), finding.code())).collect()
    }

    #[test]
    fn a_whole_group_is_without_findings() {
        assert_eq!(found("1 1 1"), []);
    }

    #[test]
    fn one_that_fails_warns_and_all_are_errors() {
        let silent = |severity| (severity, Code::SentinelSilent);
        assert_eq!(found("1 . 1")[0], silent(Severity::Warning));
        let all = found(". . .");
        assert_eq!(all[..3], [silent(Severity::Error); 3]);
        assert_eq!(all[3], (Severity::Error, Code::Unreachable));
        assert!(!group(". . .").names_primary() && group(". 1 .").names_primary());
    }

    #[test]
    fn a_name_that_none_has_is_one_error() {
        let unknown = |severity| (severity, Code::UnknownPrimary);
        assert_eq!(found("0 0 0"), [unknown(Severity::Error)]);
        assert_eq!(found("1 0 1"), [unknown(Severity::Warning)]);
        let message = group("0 0 0").nameless().message().to_owned();
        assert_eq!(message, "the Sentinels watch no primary named \"mm\", but other");
    }

    #[test]
    fn different_primaries_are_named_with_their_sentinels() {
        let findings = group("1 2 1").findings();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].code(), Code::SentinelsDisagree);
        let message = findings[0].message();
        assert!(message.ends_with("h:1 by s0:26379, s2:26379; h:2 by s1:26379"), "{message}");
    }
}
