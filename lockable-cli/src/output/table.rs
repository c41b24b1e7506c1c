//! Rows under a heading, aligned, while they still come.

use super::escape::printable;
use super::write_line;

/// Columns that only grow: a row that has been written stays as it is.
pub(crate) struct Table<const N: usize> {
    headings: Option<[&'static str; N]>,
    widths: [usize; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(headings: [&'static str; N]) -> Self {
        let widths = headings.map(str::len);
        Self { headings: Some(headings), widths, rows: Vec::new() }
    }

    /// Adds a row of other people's texts, which is not written yet.
    pub(crate) fn add(&mut self, row: [String; N]) {
        let row = row.map(|cell| printable(&cell));
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = cell.chars().count().min(WIDEST).max(*width);
        }
        self.rows.push(row);
    }

    /// Writes what there is; `false` where no one reads it any more.
    pub(crate) fn flush(&mut self) -> bool {
        if self.rows.is_empty() {
            return true;
        }
        let lines = self.draw();
        self.headings = None;
        lines.iter().all(|line| write_line(line))
    }

    /// Takes the lines of what there is, under their heading. A table that is drawn again and again only grows wider.
    pub(crate) fn draw(&mut self) -> Vec<String> {
        let rows = std::mem::take(&mut self.rows);
        let headings = self.headings.map(|headings| headings.map(str::to_owned));
        headings.into_iter().chain(rows).map(|row| self.line(&row)).collect()
    }

    fn line(&self, row: &[String; N]) -> String {
        let cells = row.iter().zip(self.widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

/// A longer text moves only what is behind it in its own row.
const WIDEST: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new(["KEY", "LEFT"]);
        table.add(["order:7".to_owned(), "2.1s".to_owned()]);
        table.add(["\u{1b}".to_owned(), "41m".to_owned()]);
        assert_eq!(table.line(&["KEY".to_owned(), "LEFT".to_owned()]), "KEY      LEFT");
        assert_eq!(table.line(&table.rows[0]), "order:7  2.1s");
        assert_eq!(table.line(&table.rows[1]), "\\u{1b}   41m");
    }
}
