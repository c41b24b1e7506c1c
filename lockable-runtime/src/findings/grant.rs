//! The rights that a user lacks, in one line of `ACL SETUSER`.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AclGrant {
    pub(crate) user: String,
    pub(crate) rules: String,
    /// Rules that may be missing too.
    pub(crate) besides: String,
    /// What follows without it; empty where the finding has words of its own.
    pub(crate) effect: String,
}

impl AclGrant {
    pub(crate) fn message<'a>(&self, all: impl Iterator<Item = &'a Self>) -> String {
        let Self { user, effect, .. } = self;
        let rules = sorted(all.map(|grant| &*grant.rules));
        let rights = if rules.len() == 1 { "right" } else { "rights" };
        format!("the user `{user}` lacks the {rights} `{}`: {effect}", rules.join(" "))
    }
}

/// One line for each user, which grants all of it.
pub(crate) fn lines<'a>(grants: impl Iterator<Item = &'a AclGrant>) -> Vec<String> {
    let mut users = BTreeMap::<_, Vec<_>>::new();
    for grant in grants {
        users.entry(&grant.user).or_default().push(grant);
    }
    let line = |(user, grants): (&String, Vec<&AclGrant>)| {
        let all = grants.iter().flat_map(|grant| [&*grant.rules, &*grant.besides]);
        format!("ACL SETUSER {user} {}", sorted(all).join(" "))
    };
    users.into_iter().map(line).collect()
}

fn sorted<'a>(rules: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let rules: BTreeSet<_> = rules.flat_map(str::split_whitespace).collect();
    let mut rules: Vec<_> = rules.into_iter().collect();
    let kind = |rule: &&str| ["~", "%", "&"].iter().position(|kind| rule.starts_with(kind));
    rules.sort_by_key(|rule| kind(rule).unwrap_or(usize::MAX));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(user: &str, rules: &str) -> AclGrant {
        let (user, rules) = (user.to_owned(), rules.to_owned());
        AclGrant { user, rules, besides: String::new(), effect: "no lock".to_owned() }
    }

    #[test]
    fn each_user_has_one_line() {
        let besides = "~x:* +get".to_owned();
        let grants = [
            AclGrant { besides, ..grant("b", "+set") },
            grant("a", "+evalsha"),
            grant("b", "&x:*"),
            grant("b", "~y:*"),
            grant("b", "+set"),
        ];
        let of = lines(grants.iter());
        assert_eq!(of, ["ACL SETUSER a +evalsha", "ACL SETUSER b ~x:* ~y:* &x:* +get +set"]);
        let [one, ..] = &grants;
        assert_eq!(one.message([one].into_iter()), "the user `b` lacks the right `+set`: no lock");
    }
}
