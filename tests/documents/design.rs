//! The questions that `design` answers, their list in DESIGN.md, and the comments of the code that name them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{files, markdown, read, root};

/// Where a comment that names a question may be.
const CODE: [&str; 5] = [
    "lockable-runtime/src",
    "lockable-runtime/scripts",
    "lockable-macros/src",
    "lockable-cli/src",
    "xtask/src",
];

/// What comes after the question, which is in quotation marks.
const MENTION: &str = " in DESIGN.md";

/// A reader finds the way in a text of this length.
const MAX_LINES: usize = 500;

#[test]
fn every_heading_of_the_design_asks_a_question() {
    let headings = headings();
    let questions: BTreeSet<_> = headings.iter().filter(|heading| heading.ends_with('?')).collect();
    assert!(headings.len() > 40, "{headings:?}");
    assert_eq!(questions.len(), headings.len(), "twice, or no question: {headings:?}");
}

#[test]
fn the_contents_of_the_design_are_its_questions_in_order() {
    let contents = contents();
    for (part, listed) in &contents {
        assert_eq!(*listed, questions(part), "{part} in DESIGN.md, and in {part}.md");
    }
    let listed: BTreeSet<_> = contents.into_iter().map(|(part, _)| file(&part)).collect();
    assert_eq!(listed, markdown("design").into_iter().collect());
}

#[test]
fn each_word_of_the_code_is_a_type() {
    let words = read("design/words.md");
    let rows = words.lines().filter(|line| line.starts_with("| ") && line.contains(".rs` `"));
    let types: Vec<_> = rows.map(|row| row.split('`').collect::<Vec<_>>()).collect();
    assert!(types.len() > 15, "{types:?}");
    for row in types {
        let (file, name) = (row[1], row[3]);
        let code = read(&format!("lockable-runtime/src/{file}"));
        let is_type = |kind| {
            let start = format!("{kind} {name}");
            code.match_indices(&start).any(|(at, _)| {
                !code[at + start.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        };
        assert!(["struct", "enum", "trait"].into_iter().any(is_type), "{file} has no {name}");
    }
}

#[test]
fn no_part_of_the_design_is_long() {
    for text in markdown("design").into_iter().chain(["DESIGN.md".to_owned()]) {
        let lines = read(&text).lines().count();
        assert!(lines <= MAX_LINES, "{text} has {lines} lines: divide it");
    }
}

#[test]
fn every_answer_of_the_design_is_named_by_code() {
    let named: BTreeSet<_> = mentions().into_iter().map(|(_, question)| question).collect();
    let missing: Vec<_> = headings().into_iter().filter(|it| !named.contains(it)).collect();
    assert!(missing.is_empty(), "no comment names {missing:#?}");
}

#[test]
fn every_mention_of_the_design_names_its_question() {
    let headings = headings();
    for (file, question) in mentions() {
        let file = file.display();
        assert!(headings.contains(&question), "{file}: DESIGN.md does not ask \"{question}\"");
    }
}

/// The questions of all parts.
fn headings() -> Vec<String> {
    contents().into_iter().flat_map(|(part, _)| questions(&part)).collect()
}

fn questions(part: &str) -> Vec<String> {
    let text = read(&file(part));
    text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
}

fn file(part: &str) -> String {
    format!("design/{part}.md")
}

/// The parts that DESIGN.md lists, each with its questions. A question links to its place there, and its answer follows.
fn contents() -> Vec<(String, Vec<String>)> {
    let design = read("DESIGN.md");
    let sections = design.split("\n## ").skip(1).map(|section| {
        let (title, list) = section.split_once('\n').unwrap();
        let (_, part) = title.split_once("][guide::design::").unwrap();
        let part = part.trim_end_matches(']').to_owned();
        let entries = list.split("\n\n").map(str::trim);
        let questions = entries.filter_map(|entry| {
            let (question, rest) = entry.strip_prefix('[')?.split_once("][guide::design::")?;
            let (label, answer) = rest.split_once("]\n").unwrap_or_else(|| panic!("{question}"));
            assert!(label.starts_with(&format!("{part}#")) && answer.ends_with('.'), "{question}");
            Some(question.to_owned())
        });
        let questions = questions.collect();
        (part, questions)
    });
    sections.collect()
}

/// The questions that comments name, each with its file.
fn mentions() -> Vec<(PathBuf, String)> {
    let files = CODE.iter().flat_map(|folder| files(&root().join(folder)));
    files
        .flat_map(|file| mentions_of(&file).into_iter().map(move |it| (file.clone(), it)))
        .collect()
}

/// What is before each mention, from its opening quotation mark on. Without one it is no question.
fn mentions_of(file: &Path) -> Vec<String> {
    let text = unwrapped(&fs::read_to_string(file).unwrap());
    let mut parts: Vec<_> = text.split(MENTION).collect();
    parts.pop();
    let quoted = |part: &str| part.strip_suffix('"')?.rsplit('"').next().map(str::to_owned);
    parts.into_iter().map(|part| quoted(part).unwrap_or_default()).collect()
}

/// The text in one line, without what each line of a comment begins with.
fn unwrapped(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '/' | '!' | '-' | ' ');
    text.lines().map(|line| line.trim_start_matches(is_mark)).collect::<Vec<_>>().join(" ")
}
