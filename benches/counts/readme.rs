//! The counts of the table in README.md, beside what its bench `pairs` has measured by the clock.

use std::fs;

use crate::compare::bare_of;
use crate::figures::Figures;
use crate::table::Table;

/// Writes the table between its marks again.
pub(crate) fn write(table: &Table) -> Result<(), String> {
    let text = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let text = with(&text, table).ok_or_else(|| format!("{PATH} has no place for the counts"))?;
    fs::write(PATH, text).map_err(|error| format!("{PATH}: {error}"))
}

fn with(text: &str, table: &Table) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let part = table.servers.first()?;
    let rows = part.pairs.iter().filter_map(|(name, figures)| {
        let bare = part.pairs.get(&bare_of(name)?)?;
        row(name, figures, bare, text)
    });
    let rows: String = rows.collect();
    Some(format!("{before}{BEGIN}\n{}:\n\n{HEAD}{rows}\n{END}{after}", part.place))
}

/// Only few keys have the same case in the bench.
fn row(name: &str, figures: &Figures, bare: &Figures, text: &str) -> Option<String> {
    let [tasks, "64 keys", contender] = name.split(", ").collect::<Vec<_>>()[..] else {
        return None;
    };
    let Figures { client, server, commands, .. } = figures;
    let (client_over, server_over) = (client / bare.client, server / bare.server);
    let (calls, clock) = (figures.all_calls(), by_clock(text, tasks, contender).unwrap_or("–"));
    Some(format!(
        "| {tasks} | {contender} | {client} | {client_over:.2} | {calls:.2} | {server} | \
         {server_over:.2} | {commands} | {clock} |\n"
    ))
}

/// The rate over *bare* in the results of the bench `pairs`, whose rows have it by contender.
fn by_clock<'a>(text: &'a str, tasks: &str, contender: &str) -> Option<&'a str> {
    let row = format!("| {tasks}, few keys | current-thread | ");
    let cells = text.lines().find_map(|line| line.strip_prefix(&row))?;
    let place = match contender {
        "bare" => return Some("1.00"),
        "lockable by hand" => 0,
        "same" => 1,
        "rslock" => 2,
        _ => return None,
    };
    cells.split(" | ").nth(place)?.split(' ').next()
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

const BEGIN: &str = "<!-- counts: `cargo xtask counts --write` writes this table -->\n";
const END: &str = "<!-- end of the counts -->\n";

const HEAD: &str = "\
| | | instructions of the client | over *bare* | system calls | instructions of the server | over *bare* | commands | by the clock: pairs/s over *bare* |
|---|---|---|---|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::{PATH, with};
    use crate::table::Table;

    #[test]
    fn the_counts_of_the_readme_are_those_of_the_table() {
        let text = std::fs::read_to_string(PATH).unwrap();
        let written = with(&text, &Table::read().unwrap()).unwrap();
        assert!(text == written, "run `cargo xtask counts --write`");
    }
}
