//! The numbers of a round.

use std::collections::{BTreeMap, BTreeSet};

use lockable_benches::median;

use crate::round::{Round, Section};
use crate::scenario::{Kind, Scenario};

/// A column of the tables; README.md says what each of them means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    PerSecond,
    OverBare,
    HandOffP50,
    HandOffP99,
    PingsP50,
    PingsP99,
    WaitRatio,
    Commands,
    ServerCommands,
    WaitersDone,
    LeastProcess,
    MostProcess,
    Inside,
    Overhead,
    OverShare,
    /// How many sections began before another one had ended: there is none, or it is no lock.
    Overlaps,
    /// The yardsticks' results in that turn: pairs a second, and microseconds a `PING`.
    BarePairs,
    Ping,
}

/// What a turn is measured by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Yardstick {
    pairs_per_second: f64,
    /// Nanoseconds of a median one.
    ping: f64,
}

impl Yardstick {
    /// Nothing, when a machine was so busy that there was not a single one of them.
    pub(crate) fn new(bare: &Round, ping: &Round) -> Option<Self> {
        let pairs = bare.inside_window().count();
        let pings: Vec<f64> = ping.inside_window().map(Section::wait).collect();
        let is_known = pairs > 0 && !pings.is_empty();
        is_known.then(|| Self { pairs_per_second: rate(bare, pairs), ping: median(pings) })
    }

    /// Of some that were measured one after another.
    pub(crate) fn median(yardsticks: &[Self]) -> Self {
        let of = |part: fn(&Self) -> f64| median(yardsticks.iter().map(part));
        Self { pairs_per_second: of(|one| one.pairs_per_second), ping: of(|one| one.ping) }
    }
}

/// Those of the columns that a round has something to say to.
pub(crate) struct Figures(BTreeMap<Column, f64>);

impl Figures {
    pub(crate) fn of(round: &Round, scenario: &Scenario, yardstick: Yardstick) -> Self {
        let mut figures = Self(BTreeMap::new());
        let sections: Vec<&Section> = round.inside_window().collect();
        if sections.is_empty() {
            figures.0.insert(Column::PerSecond, 0.0);
            return figures;
        }
        figures.add_rates(round, &sections, yardstick);
        if scenario.is_busy() {
            figures.add_hand_offs(&sections, yardstick);
            figures.add_fairness(round, &sections);
        }
        if !scenario.section.is_zero() {
            figures.add_time(round, &sections, scenario.kind);
        }
        figures
    }

    pub(crate) fn get(&self, column: Column) -> Option<f64> {
        self.0.get(&column).copied()
    }

    fn add_rates(&mut self, round: &Round, sections: &[&Section], yardstick: Yardstick) {
        let rate = rate(round, sections.len());
        self.0.insert(Column::PerSecond, rate);
        self.0.insert(Column::OverBare, rate / yardstick.pairs_per_second);
        self.0.insert(Column::BarePairs, yardstick.pairs_per_second);
        self.0.insert(Column::Ping, yardstick.ping / 1e3);
        for (column, commands) in
            [(Column::Commands, round.commands), (Column::ServerCommands, round.server_commands)]
        {
            self.0.insert(column, float(commands) / count(sections.len()));
        }
    }

    /// From the start of a release to the start of the next section.
    fn add_hand_offs(&mut self, sections: &[&Section], yardstick: Yardstick) {
        let pairs = sections.iter().zip(sections.iter().skip(1));
        let times = pairs.map(|(one, next)| float(next.entered) - float(one.left));
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        let overlaps = times.iter().take_while(|time| **time < 0.0).count();
        if overlaps > 0 {
            self.0.insert(Column::Overlaps, count(overlaps));
        }
        for (percent, absolute, pings) in
            [(50, Column::HandOffP50, Column::PingsP50), (99, Column::HandOffP99, Column::PingsP99)]
        {
            if let Some(time) = times.get(times.len() * percent / 100) {
                self.0.insert(absolute, time / 1e3);
                self.0.insert(pings, time / yardstick.ping);
            }
        }
    }

    fn add_fairness(&mut self, round: &Round, sections: &[&Section]) {
        let typical = median(sections.iter().map(|section| section.wait()));
        self.0.insert(Column::WaitRatio, round.longest_wait() / typical.max(1.0));
        let served = round.sections.iter().filter(|section| section.entered < round.window.1);
        let served: BTreeSet<usize> = served.map(|section| section.waiter).collect();
        self.0.insert(Column::WaitersDone, percent(served.len(), round.waiters));
        if round.processes > 1 {
            let of = |process| sections.iter().filter(|s| s.process == process).count();
            let shares = (0..round.processes).map(|process| percent(of(process), sections.len()));
            let (least, most) =
                shares.fold((100.0, 0.0), |(l, m), s| (f64::min(l, s), f64::max(m, s)));
            self.0.insert(Column::LeastProcess, least);
            self.0.insert(Column::MostProcess, most);
        }
    }

    fn add_time(&mut self, round: &Round, sections: &[&Section], kind: Kind) {
        let inside: f64 = round.sections.iter().map(|section| round.share_of(section)).sum();
        let wall = round.wall();
        self.0.insert(Column::Inside, 100.0 * inside / wall);
        if kind == Kind::Burst {
            self.0.insert(Column::Overhead, (wall - inside) / count(sections.len()) / 1e3);
            self.0.insert(Column::OverShare, round.longest_wait() / inside);
        }
    }
}

impl Section {
    fn wait(&self) -> f64 {
        float(self.entered) - float(self.asked)
    }
}

impl Round {
    fn inside_window(&self) -> impl Iterator<Item = &Section> {
        let (begin, end) = self.window;
        self.sections.iter().filter(move |section| (begin..end).contains(&section.entered))
    }

    /// Nanoseconds that are looked at; a round that ends by itself does so with its last section.
    fn wall(&self) -> f64 {
        let last = self.sections.iter().map(|section| section.left).max().unwrap_or(0);
        float(self.window.1.min(last.max(self.window.0 + 1))) - float(self.window.0)
    }

    /// Nanoseconds of a section within the window.
    fn share_of(&self, section: &Section) -> f64 {
        let (begin, end) = self.window;
        let (from, until) = (section.entered.max(begin), section.left.min(end));
        float(until.saturating_sub(from))
    }

    /// Of those that ended in the window, and of those that had not ended with it.
    fn longest_wait(&self) -> f64 {
        let (begin, end) = self.window;
        let ended = self.sections.iter().filter(|section| section.entered >= begin);
        let ended = ended.map(|section| (section.asked, section.entered.min(end)));
        let waits = ended.chain(self.pending.iter().map(|asked| (*asked, end)));
        waits.map(|(asked, until)| float(until) - float(asked)).fold(0.0, f64::max)
    }
}

fn rate(round: &Round, sections: usize) -> f64 {
    count(sections) / round.wall() * 1e9
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * count(part) / count(whole)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("few enough"))
}

/// Exact for the nanoseconds and the numbers of a round.
#[expect(clippy::cast_precision_loss, reason = "a round is seconds, not months")]
fn float(number: u64) -> f64 {
    number as f64
}
