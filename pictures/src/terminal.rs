//! `lockable ls` and `lockable show` in a terminal.

use std::fs;

use crate::root;
use crate::svg::{self, text};

/// The incident of the guide, which a test runs against a real server.
pub(crate) fn record() -> String {
    let page = root().join("lockable-runtime/guide/incident.md");
    let page = fs::read_to_string(page).expect("a file that can be read");
    let block = page.split("```console\n").nth(1).and_then(|rest| rest.split_once("```\n"));
    let (shown, _) = block.expect("a block of a terminal");
    let commands: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix(PROMPT)).collect();
    assert_eq!(commands, COMMANDS, "{shown}");
    shown.to_owned()
}

pub(crate) fn draw(transcript: &str) -> String {
    let lines: Vec<_> = transcript.lines().collect();
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let (width, height) = (2.0 * MARGIN + place(longest) * COLUMN, TOP + place(lines.len()) * ROW);
    let drawn = lines.iter().enumerate().map(|(row, line)| drawn(row, line));
    let content = buttons() + &drawn.collect::<String>();
    svg::sheet(width, height + MARGIN, GROUND, "monospace", &content)
}

fn drawn(row: usize, line: &str) -> String {
    let y = TOP + (place(row) + 1.0) * ROW - 6.0;
    match line.strip_prefix(PROMPT) {
        Some(command) => {
            text(MARGIN, y, "start", GREEN, PROMPT)
                + &text(MARGIN + COLUMN * 2.0, y, "start", WHITE, command)
        }
        None => cells(line).map(|(column, cell)| at(column, y, cell)).collect(),
    }
}

/// What stands in a column of its own starts there in every font.
fn cells(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = line
        .char_indices()
        .filter(|(at, letter)| *letter != ' ' && (*at == 0 || line[..*at].ends_with("  ")));
    starts.map(|(at, _)| {
        let cell = &line[at..];
        (line[..at].chars().count(), cell.split("  ").next().unwrap_or(cell))
    })
}

fn at(column: usize, y: f64, cell: &str) -> String {
    text(MARGIN + COLUMN * place(column), y, "start", PALE, cell)
}

fn buttons() -> String {
    let button = |(number, colour): (usize, &str)| {
        let x = MARGIN + 6.0 + place(number) * 20.0;
        format!("<circle cx=\"{x}\" cy=\"20\" r=\"6\" fill=\"{colour}\"/>\n")
    };
    ["#ff5f56", "#ffbd2e", "#27c93f"].into_iter().enumerate().map(button).collect()
}

fn place(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("a small number"))
}

const COMMANDS: [&str; 2] = ["lockable ls", "lockable show order:7"];
const PROMPT: &str = "$ ";

const MARGIN: f64 = 18.0;
const TOP: f64 = 40.0;
/// What a letter of 13 pixels takes in the fonts that terminals have.
const COLUMN: f64 = 7.9;
const ROW: f64 = 19.0;

const GROUND: &str = "#1e2127";
const GREEN: &str = "#7ec699";
const WHITE: &str = "#ffffff";
const PALE: &str = "#d0d4da";
