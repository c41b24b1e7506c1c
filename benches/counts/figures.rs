//! The numbers of a run, and what a pair takes of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of one run.
#[derive(Default)]
pub(crate) struct Totals {
    /// Instructions in user mode.
    pub(crate) client: u64,
    pub(crate) server: u64,
    pub(crate) commands: u64,
    pub(crate) bytes: u64,
    pub(crate) calls: BTreeMap<String, u64>,
}

/// Of one pair; the names are those of the table.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Instructions in user mode.
    pub(crate) client: f64,
    pub(crate) server: f64,
    /// What the server ran, with what scripts called.
    pub(crate) commands: f64,
    /// Of the requests.
    pub(crate) bytes: f64,
    /// System calls of the client.
    pub(crate) calls: BTreeMap<String, f64>,
}

impl Figures {
    /// What start and end of a process take is in both runs, and cancels out.
    pub(crate) fn between(short: &Totals, long: &Totals, pairs: usize) -> Self {
        let each = |short: u64, long: u64, precision: f64| {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let each = (long as f64 - short as f64) / pairs as f64;
            (each * precision).round() / precision
        };
        let calls = long.calls.iter().map(|(name, calls)| {
            let earlier = short.calls.get(name).copied().unwrap_or(0);
            (name.clone(), each(earlier, *calls, 100.0))
        });
        Self {
            client: each(short.client, long.client, 1.0),
            server: each(short.server, long.server, 1.0),
            commands: each(short.commands, long.commands, 100.0),
            bytes: each(short.bytes, long.bytes, 10.0),
            // Fewer in the longer run is the pace of both, and no call of a pair.
            calls: calls.filter(|(_, calls)| *calls > 0.0).collect(),
        }
    }

    /// All system calls.
    pub(crate) fn all_calls(&self) -> f64 {
        self.calls.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, Totals};

    #[test]
    fn a_figure_is_the_difference_by_the_pairs_between() {
        let calls = |getpid, write| {
            [("getpid", getpid), ("mmap", 9), ("write", write)]
                .map(|(name, calls)| (name.to_owned(), calls))
                .into()
        };
        let totals = |client, getpid, write| Totals {
            client,
            calls: calls(getpid, write),
            ..Totals::default()
        };
        let figures = Figures::between(&totals(1_000, 70, 9), &totals(5_000, 271, 6), 100);
        assert_eq!(figures.client.to_string(), "40");
        assert_eq!(figures.calls, [("getpid".to_owned(), 2.01)].into());
    }
}
