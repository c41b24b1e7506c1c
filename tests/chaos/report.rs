//! What a run has shown, for those who read it, and for the record.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::checker::{Verdict, judge};
use crate::history::History;
use crate::settings::Settings;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Report {
    settings: Settings,
    server: String,
    /// The kinds of faults that the run has drawn.
    kinds: Vec<&'static str>,
    verdict: Verdict,
}

impl Report {
    pub(crate) fn of(
        settings: &Settings,
        kinds: Vec<&'static str>,
        world: &World,
        history: &History,
    ) -> Self {
        let server = world.servers.version();
        Self { settings: settings.clone(), server, kinds, verdict: judge(history) }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.verdict.violations.is_empty()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.shortfalls().is_empty()
    }

    fn shortfalls(&self) -> Vec<String> {
        self.verdict.shortfalls(&self.kinds)
    }

    /// Adds the line of a long run to the record.
    pub(crate) fn append(&self) {
        let minutes = self.settings.length.as_secs() / 60;
        if minutes < FEWEST_MINUTES {
            return;
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("chaos/TRACK-RECORD.md");
        let file = File::options().append(true).open(file);
        let Settings { topology, seed, .. } = &self.settings;
        let Verdict { holds, excused, violations, outside, .. } = &self.verdict;
        let (commit, date) = (said("LOCKABLE_CHAOS_COMMIT"), said("LOCKABLE_CHAOS_DATE"));
        let (faults, server, topology) = (self.faults(), &self.server, topology.name());
        let remark = if self.is_valid() { String::new() } else { " (invalid)".to_owned() };
        let line = format!(
            "| {date} | {commit} | {server} | {topology} | {seed} | {minutes} | {holds} | {faults} | \
             {outside} % | {excused} | {}{remark} |\n",
            violations.len()
        );
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the record is there");
    }

    fn faults(&self) -> String {
        let faults = self.verdict.faults.iter().map(|(kind, count)| format!("{kind} {count}"));
        faults.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { topology, seed, length } = &self.settings;
        let (name, seconds, server) = (topology.name(), length.as_secs(), &self.server);
        writeln!(formatter, "{name} on {server}, {seconds} s, seed {seed}: {}", self.faults())?;
        let Verdict { losses, passes, hand_offs, outside, excused, .. } = &self.verdict;
        let Verdict { runs, redemptions, terms, .. } = &self.verdict;
        writeln!(
            formatter,
            "{losses} losses, {passes} passes, {hand_offs} hand-offs, {runs} runs done, {redemptions} \
             redemptions, {terms} terms; {outside} % outside of windows, {excused} overlaps in them"
        )?;
        for violation in &self.verdict.violations {
            writeln!(formatter, "VIOLATION: {violation}")?;
        }
        if !self.is_valid() {
            writeln!(
                formatter,
                "INVALID, because it has too little: {}",
                self.shortfalls().join(", ")
            )?;
        }
        write!(formatter, "{}", summary(std::slice::from_ref(self)))
    }
}

fn summary(reports: &[Report]) -> String {
    let sum = |count: fn(&Verdict) -> usize| -> usize {
        reports.iter().map(|report| count(&report.verdict)).sum()
    };
    let holds = sum(|verdict| verdict.holds);
    let faults = sum(|verdict| verdict.faults.values().sum());
    let violations = sum(|verdict| verdict.violations.len());
    format!("chaos: {holds} holds, {faults} faults, {violations} violations")
}

/// The last line of `cargo xtask chaos`.
pub(crate) fn write_summary(reports: &[Report]) {
    if !reports.is_empty() {
        fs::write(folder().join("summary"), summary(reports) + "\n")
            .expect("a file can be written");
    }
}

/// Where the runs of this build are.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("chaos")
}

fn said(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| "-".to_owned())
}

/// Of a run that stands in the record.
const FEWEST_MINUTES: u64 = 5;
