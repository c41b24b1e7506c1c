//! A table a case, in Markdown.

use lockable_benches::spread;

use crate::case::Case;
use crate::contender::Contender;
use crate::figures::Column;
use crate::row::{Row, row};

pub(crate) fn print(case: &Case, rows: &[Row]) {
    println!("\n### {}\n", case.name());
    let titles = COLUMNS.map(|(_, title)| title).join(" | ");
    println!("| | over bare | {titles} |\n|---|---|{}", "---|".repeat(COLUMNS.len()));
    for one in rows {
        let cells = COLUMNS.map(|(column, _)| spread(one.column(column)));
        let bare = row(rows, Contender::Bare);
        let over = bare.map(|bare| one.over(bare, Column::PerSecond)).unwrap_or_default();
        println!("| {} | {} | {} |", one.contender.name(), spread(over), cells.join(" | "));
    }
}

const COLUMNS: [(Column, &str); 8] = [
    (Column::PerSecond, "pairs/s"),
    (Column::AcquireP50, "acquire p50, µs"),
    (Column::AcquireP99, "p99, µs"),
    (Column::PairP50, "pair p50, µs"),
    (Column::PairP99, "p99, µs"),
    (Column::ClientCpu, "client CPU a pair, µs"),
    (Column::ServerCpu, "server CPU a pair, µs"),
    (Column::Commands, "commands a pair"),
];
