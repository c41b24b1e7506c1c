//! A mirror: how long the functions of the published crates are.

use std::path::Path;
use std::{fs, io};

use crate::check::Outcome;
use crate::workspace;

/// Prints percentiles and the longest functions, and fails when one is over the limit.
pub(crate) fn mirror() -> Outcome {
    let mut functions = match all() {
        Ok(functions) => functions,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    functions.sort_by_key(|function| function.lines);
    let report = report(&functions);
    match functions.last() {
        Some(longest) if longest.lines > LIMIT => Outcome::Failed(report),
        _ => Outcome::Ok(report),
    }
}

struct Function {
    place: String,
    lines: usize,
}

fn all() -> io::Result<Vec<Function>> {
    let mut functions = Vec::new();
    for package in workspace::published() {
        for file in workspace::files(&package.join("src"), "rs")? {
            functions.extend(functions_of(&file, &fs::read_to_string(&file)?));
        }
    }
    Ok(functions)
}

/// Takes the functions from shortest to longest.
fn report(functions: &[Function]) -> String {
    let percentiles = [50, 90, 99].map(|percent| {
        let index = (functions.len() * percent / 100).min(functions.len().saturating_sub(1));
        format!("p{percent} {}", functions.get(index).map_or(0, |function| function.lines))
    });
    let summary = format!("{} functions, {}", functions.len(), percentiles.join(", "));
    let longest = functions.iter().rev().take(5);
    let longest = longest.map(|function| format!("{:>3}  {}", function.lines, function.place));
    [summary].into_iter().chain(longest).collect::<Vec<_>>().join("\n")
}

fn functions_of(file: &Path, source: &str) -> Vec<Function> {
    let lines: Vec<&str> = source.lines().collect();
    let short = file.strip_prefix(workspace::root()).unwrap_or(file).display();
    let starts = lines.iter().enumerate().filter_map(|(at, line)| Some((at, name(line)?)));
    let functions = starts.filter_map(|(at, name)| {
        let place = format!("{short}:{} {name}", at + 1);
        Some(Function { place, lines: length(lines.get(at..)?)? })
    });
    functions.collect()
}

/// The name of the function that a line begins, if it begins one.
fn name(line: &str) -> Option<&str> {
    let is_qualifier = |word: &&str| QUALIFIERS.contains(word) || word.starts_with("pub(");
    let mut words = line.split_whitespace().skip_while(is_qualifier);
    words.next().filter(|word| *word == "fn")?;
    words.next()?.split(['(', '<']).next()
}

/// The lines from a signature to the end of its body; `None` when there is no body.
///
/// The code is formatted, so the body ends with the first brace that closes in the column where the
/// signature begins, and a signature without a body ends with a semicolon there or on its own line.
fn length(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let column = first.len() - first.trim_start().len();
    if first.ends_with(['}', ';']) {
        return first.ends_with('}').then_some(1);
    }
    let closes = |line: &&&str| line.get(column..).is_some_and(|rest| rest.starts_with(['}', ')']));
    let ends = |line: &&&str| closes(line) && line.ends_with(['}', ';']);
    let last = lines.iter().skip(1).position(|line| ends(&line))?;
    let has_body = lines.get(last + 1)?.ends_with('}');
    has_body.then_some(last + 2)
}

const QUALIFIERS: [&str; 5] = ["pub", "const", "async", "unsafe", "extern"];

/// The same number as clippy's, which does not see into macros.
const LIMIT: usize = 60;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::functions_of;

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let source = "\
fn short() {}
impl Thing {
    pub(crate) async fn long<T>(
        &self,
    ) -> T {
        if true {
        }
    }
    fn declared(&self);
    fn declared_wide(
        &self,
    );
    fn after() {
    }
}
";
        let found = functions_of(Path::new("a.rs"), source);
        let found: Vec<_> = found.iter().map(|f| (f.place.as_str(), f.lines)).collect();
        assert_eq!(found, [("a.rs:1 short", 1), ("a.rs:3 long", 6), ("a.rs:13 after", 2)]);
    }
}
