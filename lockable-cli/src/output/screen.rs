//! Lines that are drawn again and again at one place of a terminal.

use std::env;
use std::io::{IsTerminal, stdout};

use super::write_bytes;

/// The lines above the cursor of a terminal, which the next frame replaces.
///
/// A frame is one write: it moves the cursor up, writes over each line and deletes only what is behind it. So nothing
/// flickers, and what was on the screen before stays above.
pub(crate) struct Screen {
    is_coloured: bool,
    /// How many lines the last frame had, and how wide the terminal was.
    drawn: usize,
    columns: usize,
}

/// A line of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Green,
    Yellow,
    Faint,
}

impl Line {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

impl Screen {
    /// `None` where the output is no terminal, or one that cannot move its cursor.
    pub(crate) fn of_terminal() -> Option<Self> {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_some_and(|kind| kind == "dumb");
        let is_there = stdout().is_terminal() && !is_dumb;
        is_there.then(|| Self { is_coloured: !is_set("NO_COLOR"), drawn: 0, columns: 0 })
    }

    /// Draws the lines of a table, as many as there is room for, with those of its foot below; `false` where no one
    /// reads them.
    pub(crate) fn draw(&mut self, table: Vec<Line>, foot: Vec<Line>) -> bool {
        let (columns, rows) = size();
        let frame = fitted(table, foot, rows);
        // A terminal that was made narrower has broken the lines of the last frame, and some do not: they stay.
        let up = if columns == self.columns { self.drawn } else { 0 };
        (self.drawn, self.columns) = (frame.len(), columns);
        write_bytes(written(&frame, columns, up, self.is_coloured).as_bytes())
    }

    /// Leaves the last frame, without the `^C` that the terminal shows below it.
    pub(crate) fn leave() {
        if Self::of_terminal().is_some() {
            write_bytes(format!("\r{CLEAR_LINE}").as_bytes());
        }
    }
}

/// What there is room for above the line of the cursor.
fn fitted(mut table: Vec<Line>, foot: Vec<Line>, rows: usize) -> Vec<Line> {
    let room = rows.saturating_sub(foot.len() + 1).max(2);
    if table.len() > room {
        let more = table.len() - room + 1;
        table.truncate(room - 1);
        table.push(Line::plain(format!("   … {more} more, for which there is no room")));
    }
    table.extend(foot);
    table
}

fn written(frame: &[Line], columns: usize, up: usize, is_coloured: bool) -> String {
    let up = if up == 0 { String::new() } else { format!("\u{1b}[{up}A") };
    let mut text = format!("{NO_WRAP}\r{up}");
    for line in frame {
        let cut: String = line.text.chars().take(columns.saturating_sub(1)).collect();
        match line.tone.colour().filter(|_| is_coloured) {
            Some(colour) => text += &[colour, &cut, PLAIN].concat(),
            None => text += &cut,
        }
        text += CLEAR_LINE;
        text += "\n";
    }
    text + CLEAR_BELOW + WRAP
}

impl Tone {
    fn colour(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Green => Some("\u{1b}[32m"),
            Self::Yellow => Some("\u{1b}[33m"),
            Self::Faint => Some("\u{1b}[2m"),
        }
    }
}

/// Columns and rows; those of the oldest terminals where it does not say.
fn size() -> (usize, usize) {
    let (columns, rows) = of_system().unwrap_or_default();
    let or = |count: u16, usual| if count == 0 { usual } else { usize::from(count) };
    (or(columns, 80), or(rows, 24))
}

#[cfg(unix)]
fn of_system() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

#[cfg(not(unix))]
fn of_system() -> Option<(u16, u16)> {
    None
}

const PLAIN: &str = "\u{1b}[0m";

/// Deletes the rest of the line.
const CLEAR_LINE: &str = "\u{1b}[K";

const CLEAR_BELOW: &str = "\u{1b}[J";

/// A character may be wider than one column: what does not fit is left out, and takes no line of its own.
const NO_WRAP: &str = "\u{1b}[?7l";

const WRAP: &str = "\u{1b}[?7h";

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        (0..count).map(|number| Line::plain(number.to_string())).collect()
    }

    #[test]
    fn a_frame_replaces_the_last_one() {
        let frame = [Line::plain("KEY"), Line { text: "order:7".to_owned(), tone: Tone::Green }];
        let first = written(&frame, 80, 0, false);
        assert_eq!(first, "\u{1b}[?7l\rKEY\u{1b}[K\norder:7\u{1b}[K\n\u{1b}[J\u{1b}[?7h");
        let next = written(&frame, 5, 2, true);
        let expected = "\r\u{1b}[2AKEY\u{1b}[K\n\u{1b}[32morde\u{1b}[0m\u{1b}[K\n\u{1b}[J";
        assert!(next.contains(expected), "{next:?}");
    }

    #[test]
    fn a_frame_leaves_room_for_the_cursor() {
        assert_eq!(fitted(lines(5), lines(1), 24).len(), 6);
        let frame = fitted(lines(50), lines(1), 24);
        assert_eq!(frame.len(), 23);
        assert_eq!(frame[21].text, "   … 29 more, for which there is no room");
        assert_eq!(fitted(lines(50), lines(1), 0).len(), 3, "two lines are shown at least");
    }
}
