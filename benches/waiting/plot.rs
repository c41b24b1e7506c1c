//! Throughput against the number of waiters in one process.

use std::fs;
use std::path::Path;

use lockable_benches::median;

use crate::arguments::Pace;
use crate::figures::{Column, Figures};
use crate::runner::Runner;
use crate::scenario::Scenario;
use crate::svg::{self, Line};

/// Measures, and writes the picture.
pub(crate) fn draw(runner: &mut Runner, pace: &Pace, file: &Path) {
    let mut lines: Vec<Line> = Vec::new();
    for waiters in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        for row in runner.rows(&Scenario::one_process(waiters), pace) {
            let Ok(turns) = &row.outcome else { continue };
            if !row.contender.is_lock() {
                continue;
            }
            let name = row.contender.name();
            let at = lines.iter().position(|line| line.name == name).unwrap_or(lines.len());
            if at == lines.len() {
                lines.push(Line { name, points: Vec::new() });
            }
            lines[at].points.push((waiters, rate(turns)));
        }
    }
    fs::write(file, svg::picture(&lines)).expect("a file that can be written");
    println!("the picture is in {}", file.display());
}

fn rate(turns: &[Figures]) -> f64 {
    median(turns.iter().filter_map(|turn| turn.get(Column::PerSecond)))
}
