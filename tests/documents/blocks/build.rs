//! Writes a test for each Rust block of README and guide. CONTRIBUTING says what surrounds a block.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The server of a block that needs one: the test starts it, and its URL takes the place of this one.
const SERVER: &str = "\"redis://127.0.0.1:6379\"";

const GUIDE: &str = "lockable-runtime/guide";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    println!("cargo::rerun-if-changed={}", root.join(GUIDE).display());
    let mut code = String::new();
    for text in texts(&root)? {
        println!("cargo::rerun-if-changed={}", text.display());
        code += &module(&name_of(&text), &fs::read_to_string(&text)?)?;
    }
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("blocks.rs"), code)?;
    Ok(())
}

fn texts(root: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut texts = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join(GUIDE))? {
        texts.push(entry?.path());
    }
    texts.sort();
    Ok(texts)
}

/// `readme`, `guide_leases`.
fn name_of(text: &Path) -> String {
    let stem = text.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_in_guide = text.parent().is_some_and(|folder| folder.ends_with("guide"));
    if is_in_guide { format!("guide_{stem}") } else { stem }
}

/// The tests of one text.
fn module(name: &str, text: &str) -> Result<String, Box<dyn Error>> {
    let mut code = format!(
        "#[allow(warnings, reason = \"a block shows what it shows\")]\n\
         mod {name} {{\nuse crate::prelude::*;\n"
    );
    let mut names = Vec::new();
    for block in blocks(text) {
        names.push(block.heading.clone());
        let same = names.iter().filter(|other| **other == block.heading).count();
        let heading =
            if same == 1 { block.heading.clone() } else { format!("{}_{same}", block.heading) };
        write_test(&mut code, name, &heading, &block)?;
    }
    code.push_str("}\n");
    Ok(code)
}

fn write_test(
    code: &mut String,
    module: &str,
    name: &str,
    block: &Block,
) -> Result<(), Box<dyn Error>> {
    let Block { line, before, after, .. } = block;
    let (shown, programs) = callable(&block.code);
    let body = format!("{before}\n{shown}\n;{programs}\n{after}\n;");
    let needs_server = body.contains(SERVER);
    let body = body.replace(SERVER, "crate::url()");
    writeln!(
        code,
        "/// Line {line}.\n#[test]\nfn {name}() -> Outcome {{\n\
         async fn block(locks: Locker) -> Outcome {{\n{body}\nOk(())\n}}\n\
         crate::run(\"{module}::{name}\", {needs_server}, block)\n}}"
    )?;
    Ok(())
}

/// A block, and what surrounds it.
#[derive(Default)]
struct Block {
    /// The heading above it, as a name.
    heading: String,
    line: usize,
    code: String,
    before: String,
    after: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut heading, mut around) = (Vec::new(), "start".to_owned(), String::new());
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if line == "<!-- around" {
            around = "\n".to_owned() + &until("-->", &mut lines);
            continue;
        }
        if line.starts_with("```") {
            let code = until("```", &mut lines);
            let (before, after) = around.split_once("\n...\n").unwrap_or((&around, ""));
            if line == "```rust" {
                let (before, after) = (before.to_owned(), after.to_owned());
                blocks.push(Block { heading: heading.clone(), line: number, code, before, after });
            }
        } else if let Some(title) = line.strip_prefix('#') {
            heading = identifier(title);
        }
        around.clear();
    }
    blocks
}

/// The lines before the one that ends them, which is consumed.
fn until<'a>(end: &str, lines: &mut impl Iterator<Item = (&'a str, usize)>) -> String {
    let lines = lines.map(|(line, _)| line).take_while(|line| *line != end);
    lines.fold(String::new(), |all, line| all + line + "\n")
}

/// `How long? (in "s")` as `how_long_in_s`.
fn identifier(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

/// The block with functions that can be called in the place of its tests, and the calls of those and
/// of its `main`.
fn callable(code: &str) -> (String, String) {
    let (mut shown, mut calls, mut is_test) = (String::new(), String::new(), false);
    for line in code.lines() {
        let as_main = as_main(line);
        if is_test || line.starts_with("fn main(") || line.starts_with("async fn main(") {
            let name = line.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
            calls.extend(["crate::program(", name.unwrap_or("main"), ");"]);
        }
        is_test = as_main.is_some();
        shown += as_main.as_deref().unwrap_or(line);
        shown.push('\n');
    }
    (shown, calls)
}

/// What takes the place of the attribute of a test, which could not be called.
fn as_main(line: &str) -> Option<String> {
    if line == "#[test]" {
        return Some(String::new());
    }
    let options = line.strip_prefix("#[tokio::test")?.trim_matches(['(', ')', ']']);
    let flavor = if options.contains("flavor") { "" } else { "flavor = \"current_thread\", " };
    Some(format!("#[tokio::main({flavor}{options})]"))
}
