//! A table a scenario, in Markdown.

use lockable_benches::spread;

use crate::arguments::Pace;
use crate::figures::{Column, Figures};
use crate::goals;
use crate::runner::{Row, Runner};
use crate::scenario;

pub(crate) fn print_all(runner: &mut Runner, pace: &Pace, which: &str) {
    println!("{} turns of {} ms; medians (least to most)", pace.turns, pace.window.as_millis());
    for scenario in scenario::all().into_iter().filter(|one| one.name.contains(which)) {
        let rows = runner.rows(&scenario, pace);
        print(scenario.name, &rows);
        goals::print(scenario.name, &rows);
    }
}

fn print(name: &str, rows: &[Row]) {
    let columns: Vec<_> = COLUMNS.into_iter().filter(|(of, _)| is_known(rows, *of)).collect();
    let titles: Vec<&str> = columns.iter().map(|(_, title)| *title).collect();
    let all_rows = || rows.iter().filter_map(|row| row.outcome.as_ref().ok()).flatten();
    let [bare, ping] = [Column::BarePairs, Column::Ping].map(|of| cell(all_rows(), of));
    println!(
        "\n### {name}\n\nbare {bare} pairs/s, a PING {ping} µs\n\n| | {} |",
        titles.join(" | ")
    );
    println!("|---|{}", "---|".repeat(columns.len()));
    for row in rows {
        match &row.outcome {
            Ok(turns) => {
                let cells: Vec<_> = columns.iter().map(|(of, _)| cell(turns, *of)).collect();
                println!("| {} | {} |", row.contender.name(), cells.join(" | "));
            }
            Err(why) => println!("| {} | {why} |", row.contender.name()),
        }
    }
}

fn is_known(rows: &[Row], column: Column) -> bool {
    let turns = rows.iter().filter_map(|row| row.outcome.as_ref().ok()).flatten();
    turns.into_iter().any(|figures| figures.get(column).is_some())
}

fn cell<'a>(turns: impl IntoIterator<Item = &'a Figures>, column: Column) -> String {
    spread(turns.into_iter().filter_map(|turn| turn.get(column)))
}

const COLUMNS: [(Column, &str); 16] = [
    (Column::PerSecond, "sections/s"),
    (Column::OverBare, "over bare"),
    (Column::HandOffP50, "hand-off p50, µs"),
    (Column::HandOffP99, "p99, µs"),
    (Column::PingsP50, "p50, PINGs"),
    (Column::PingsP99, "p99, PINGs"),
    (Column::WaitRatio, "longest/median wait"),
    (Column::Commands, "commands a section"),
    (Column::ServerCommands, "server commands a section"),
    (Column::WaitersDone, "waiters done, %"),
    (Column::LeastProcess, "least process, %"),
    (Column::MostProcess, "most process, %"),
    (Column::Inside, "inside, %"),
    (Column::Overhead, "overhead a section, µs"),
    (Column::OverShare, "longest wait/fair share"),
    (Column::Overlaps, "OVERLAPS"),
];
