//! Names that texts mention: commands, files, options and errors.

use crate::{blocks, read, root};

const TEXTS: [&str; 6] = [
    "README.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "CHANGELOG.md",
    "examples/README.md",
    "benches/README.md",
];

#[test]
fn the_commands_of_the_texts_exist() {
    let mut count = 0;
    for text in TEXTS {
        for line in blocks(&read(text), "sh").iter().flat_map(|block| block.lines()) {
            let command = line.split(" # ").next().unwrap().trim();
            let Some((_, command)) = command.split_once("cargo ") else { continue };
            assert!(exists(command), "{text}: cargo {command}");
            count += 1;
        }
    }
    assert!(count >= 6, "{count} commands");
}

/// Whether the manifests, or the project's own commands, know what a command names.
fn exists(command: &str) -> bool {
    let words: Vec<_> = command.split_whitespace().collect();
    match words[..] {
        ["run", "--example", name] => {
            let manifests = ["examples/Cargo.toml", "examples/services/Cargo.toml"];
            manifests.iter().any(|manifest| has_target(manifest, name))
        }
        ["bench", "--bench", name, ..] => has_target("benches/Cargo.toml", name),
        ["xtask", name] => read("xtask/src/main.rs").contains(&format!("Some(\"{name}\")")),
        ["test", ..] => true,
        _ => false,
    }
}

fn has_target(manifest: &str, name: &str) -> bool {
    read(manifest).lines().any(|line| line == format!("name = \"{name}\""))
}

#[test]
fn the_links_between_the_texts_lead_somewhere() {
    let mut count = 0;
    for text in TEXTS {
        let folder = root().join(text).parent().unwrap().to_owned();
        for link in links(&read(text)) {
            let path = link.split('#').next().unwrap();
            assert!(folder.join(path).exists(), "{text}: {link}");
            count += 1;
        }
    }
    assert!(count >= 10, "{count} links");
}

/// The targets of the links to files.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_file = |target: &&str| !target.starts_with(['#', 'h']) && !target.contains(' ');
    targets.filter(is_file).map(ToOwned::to_owned).collect()
}

#[test]
fn the_guide_explains_every_error_kind_and_predicate() {
    let (errors, guide) =
        (read("lockable-runtime/src/types/error.rs"), read("lockable-runtime/guide/errors.md"));
    let (_, kinds) = errors.split_once("pub enum LockErrorKind {").unwrap();
    let kinds = kinds.lines().take_while(|line| *line != "}").map(str::trim);
    let kinds = kinds.filter_map(|line| line.strip_suffix(',')).map(|kind| format!("[`{kind}`]"));
    let predicates = errors.lines().filter_map(|line| line.trim().strip_prefix("pub fn is_"));
    let predicates = predicates.map(|rest| format!("[`is_{}`]", rest.split('(').next().unwrap()));
    let names: Vec<_> = kinds.chain(predicates).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(guide.contains(&name), "{name} is not explained");
    }
}

#[test]
fn readme_and_attribute_list_every_option() {
    let table = read("lockable-macros/src/args/table.rs");
    let names = table.lines().filter_map(|line| line.trim().strip_prefix("name: \""));
    let names: Vec<_> = names.filter_map(|rest| rest.strip_suffix("\",")).collect();
    assert!(names.len() >= 15, "{names:?}");
    for (text, start) in [("README.md", "| `"), ("lockable-runtime/src/lib.rs", "/// | `")] {
        let text = read(text);
        let rows: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(start)).collect();
        for name in &names {
            let has_row = rows.iter().any(|row| {
                row.strip_prefix(name).is_some_and(|rest| rest.starts_with(['`', ' ', '(']))
            });
            assert!(has_row, "`{name}` has no row in the table");
        }
    }
}
