//! What was measured beside the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::contender::Contender;
use crate::measure::Pairs;
use crate::opening;
use crate::place::Place;
use crate::table::{Part, Table};
use crate::waiting;

pub(crate) struct Comparison {
    pub(crate) basis: Basis,
    pub(crate) differences: Vec<String>,
}

/// What can be compared with a part of the table; each has less of it than the one before.
pub(crate) enum Basis {
    /// Compiler, libc, processor and server are the same.
    Everything,
    /// The server gets the same requests, but another machine or compiler needs other instructions.
    Ratios { listed: Place },
    /// The server may get other requests.
    RatiosAlone { listed: Place },
}

pub(crate) fn compare(table: &Table, counted: &Part) -> Result<Comparison, String> {
    let listed = table.nearest(&counted.place).ok_or("the table is empty")?;
    let basis = Basis::of(&listed.place, &counted.place);
    let pairs = &counted.pairs;
    let differences = pairs.keys().flat_map(|name| differences(name, &basis, pairs, &listed.pairs));
    let mut differences: Vec<_> = differences.collect();
    if !matches!(basis, Basis::RatiosAlone { .. }) {
        if !listed.openings.is_empty() {
            differences.extend(opening::differences(&counted.openings, &listed.openings));
        }
        if !listed.waiting.is_empty() {
            differences.extend(waiting::differences(&counted.waiting, &listed.waiting));
        }
    }
    Ok(Comparison { basis, differences })
}

impl Basis {
    fn of(listed: &Place, here: &Place) -> Self {
        if listed == here {
            Self::Everything
        } else if listed.series() == here.series() {
            Self::Ratios { listed: listed.clone() }
        } else {
            Self::RatiosAlone { listed: listed.clone() }
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => write!(formatter, "compared with the table: everything"),
            Self::Ratios { listed } => write!(
                formatter,
                "the table is of {listed}: of the instructions, only ratios to bare are compared"
            ),
            Self::RatiosAlone { listed } => write!(
                formatter,
                "the table has no such server, and is of {listed}: only ratios of instructions to bare are compared"
            ),
        }
    }
}

/// Of a row.
fn differences(name: &str, basis: &Basis, pairs: &Pairs, listed: &Pairs) -> Vec<String> {
    let (Some(now), Some(listed)) = (values(name, basis, pairs), values(name, basis, listed))
    else {
        return vec![format!("{name}: not in the table")];
    };
    let value = |values: &Values, what: &str| values.get(what).copied().unwrap_or_default();
    let all: BTreeSet<_> = now.keys().chain(listed.keys()).collect();
    let rows = all.into_iter().map(|what| (what, value(&now, what), value(&listed, what)));
    let differing = rows.filter(|(what, now, listed)| {
        (now - listed).abs() > tolerance(name, what, *listed) + ROUNDING
    });
    let line = |(what, now, listed)| format!("{name}: {what} {now:.2}, in the table {listed:.2}");
    differing.map(line).collect()
}

/// What is compared, by what it is.
type Values = BTreeMap<String, f64>;

fn values(name: &str, basis: &Basis, pairs: &Pairs) -> Option<Values> {
    let (own, bare) = (pairs.get(name)?, pairs.get(&bare_of(name)?)?);
    let named = |(what, value): (&str, f64)| (what.to_owned(), value);
    let instructions = match basis {
        Basis::Everything => [(CLIENT, own.client), (SERVER, own.server)],
        Basis::Ratios { .. } | Basis::RatiosAlone { .. } => {
            [(CLIENT_RATIO, own.client / bare.client), (SERVER_RATIO, own.server / bare.server)]
        }
    };
    let mut values: Values = instructions.map(named).into();
    if !matches!(basis, Basis::RatiosAlone { .. }) {
        values.extend([("commands", own.commands), ("bytes", own.bytes)].map(named));
        values.extend(own.calls.iter().map(|(call, calls)| (format!("{CALLS} {call}"), *calls)));
        values.insert(CALLS.to_owned(), own.all_calls());
    }
    Some(values)
}

/// The row of *bare* with the same tasks and keys.
pub(crate) fn bare_of(name: &str) -> Option<String> {
    let (case, _) = name.rsplit_once(", ")?;
    Some(format!("{case}, {}", Contender::Bare.name()))
}

fn tolerance(name: &str, what: &str, listed: f64) -> f64 {
    if what.starts_with(CALLS) {
        return 0.1;
    }
    let share = match (what, name.starts_with("1 task")) {
        (SERVER | SERVER_RATIO | CLIENT_RATIO, true) => 0.05,
        (_, true) => 0.02,
        (CLIENT | CLIENT_RATIO, false) => 0.1,
        // The pace of both sides decides how many requests share a script, and that decides the commands.
        (_, false) => 0.6,
    };
    listed * share
}

const CALLS: &str = "system calls";
const CLIENT: &str = "client";
const CLIENT_RATIO: &str = "client over bare";
/// The housekeeping of a server goes by time.
const SERVER: &str = "server";
const SERVER_RATIO: &str = "server over bare";

/// Less than any figure of the table shows.
const ROUNDING: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::{Basis, differences};
    use crate::figures::Figures;
    use crate::measure::Pairs;
    use crate::place::Place;

    fn pairs(bare: f64, ours: f64, getpid: f64) -> Pairs {
        let figures = |client| Figures { client, ..Figures::default() };
        let calls = [("getpid".to_owned(), getpid)].into();
        let ours = Figures { calls, ..figures(ours) };
        [("1 task, keys, bare".to_owned(), figures(bare)), (OURS.to_owned(), ours)].into()
    }

    fn found(basis: &Basis, now: &Pairs) -> Vec<String> {
        differences(OURS, basis, now, &pairs(20_000.0, 30_000.0, 7.0))
    }

    #[test]
    fn more_than_the_tolerance_is_a_difference() {
        assert!(found(&Basis::Everything, &pairs(20_000.0, 30_600.0, 7.1)).is_empty());
        let found = found(&Basis::Everything, &pairs(20_000.0, 29_300.0, 8.0));
        assert_eq!(
            found,
            [
                "client 29300.00, in the table 30000.00",
                "system calls 8.00, in the table 7.00",
                "system calls getpid 8.00, in the table 7.00",
            ]
            .map(|difference| format!("{OURS}: {difference}"))
        );
    }

    #[test]
    fn elsewhere_the_ratio_to_bare_counts() {
        let basis = || Basis::RatiosAlone { listed: Place::default() };
        assert!(found(&basis(), &pairs(40_000.0, 60_000.0, 9.0)).is_empty());
        assert_eq!(found(&basis(), &pairs(40_000.0, 64_000.0, 7.0)).len(), 1);
        let basis = Basis::Ratios { listed: Place::default() };
        assert_eq!(found(&basis, &pairs(40_000.0, 60_000.0, 9.0)).len(), 2);
    }

    const OURS: &str = "1 task, keys, lockable";
}
