//! A table a case, in Markdown.

use lockable_benches::{quartiles, three_digits_of_median as middle};

use crate::case::Case;
use crate::contender::Contender;
use crate::figures::Column;
use crate::row::{Row, row};

pub(crate) fn print(case: &Case, rows: &[Row]) {
    println!("\n### {}\n", case.name());
    let titles = COLUMNS.map(|(_, title)| title).join(" | ");
    println!("| | over bare | {titles} |\n|---|---|{}", "---|".repeat(COLUMNS.len()));
    for one in rows {
        let over = over_bare(rows, one.contender, Column::PerSecond);
        let cells = COLUMNS.map(|(column, _)| quartiles(one.column(column)));
        println!("| {} | {} | {} |", one.contender.name(), quartiles(over), cells.join(" | "));
    }
}

/// All cases in one table, the one of README.md: what is over *bare*, round by round, and the commands.
pub(crate) fn summarize(cases: &[(Case, Vec<Row>)]) {
    println!("\n### Over bare\n\n{SUMMARY}\n|{}", "---|".repeat(10));
    for (case, rows) in cases {
        let ours = |column| over_bare(rows, Contender::Ours, column);
        let rate = |contender| middle(&over_bare(rows, contender, Column::PerSecond));
        let commands = row(rows, Contender::Ours).map(|ours| ours.column(Column::Commands));
        let cells = [
            case.pattern(),
            case.flavour.name().to_owned(),
            quartiles(ours(Column::PerSecond)),
            rate(Contender::Same),
            rate(Contender::Rslock),
            middle(&ours(Column::AcquireP50)),
            middle(&ours(Column::PairP99)),
            middle(&ours(Column::ClientCpu)),
            middle(&ours(Column::ServerCpu)),
            middle(&commands.into_iter().flatten().collect::<Vec<_>>()),
        ];
        println!("| {} |", cells.join(" | "));
    }
}

/// Nothing where one of both was left out.
fn over_bare(rows: &[Row], contender: Contender, column: Column) -> Vec<f64> {
    let both = row(rows, contender).zip(row(rows, Contender::Bare));
    both.map(|(one, bare)| one.over(bare, column)).unwrap_or_default()
}

const SUMMARY: &str = "| case | runtime | pairs/s over bare | *same* | rslock | acquire p50 \
    | p99 of a pair | client CPU | server CPU | commands a pair |";

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
