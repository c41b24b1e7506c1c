//! Names that texts mention: commands, files, options and errors.

use std::collections::BTreeSet;
use std::fs;

use crate::{blocks, files, read, root, texts};

#[test]
fn the_commands_of_the_texts_exist() {
    let mut count = 0;
    for text in texts() {
        for line in blocks(&read(&text), "sh").iter().flat_map(|block| block.lines()) {
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
        ["run", "-p", "lockable-examples", "--example", name] => {
            has_target("examples/Cargo.toml", name)
        }
        ["bench", "--bench", name, ..] => has_target("benches/Cargo.toml", name),
        ["xtask", name] | ["xtask", name @ "test", _] => {
            read("xtask/src/main.rs").contains(&format!("Some(\"{name}\")"))
        }
        ["test" | "add", ..] | ["install", "lockable-cli", ..] => true,
        _ => false,
    }
}

fn has_target(manifest: &str, name: &str) -> bool {
    read(manifest).lines().any(|line| line == format!("name = \"{name}\""))
}

/// A text of one's own escapes no value, so it may be another lock than the attribute's.
#[test]
fn no_text_formats_a_key() {
    let of_text = |path: &String| {
        read(path).lines().map(|line| (path.clone(), line.to_owned())).collect::<Vec<_>>()
    };
    let shown = texts().iter().flat_map(of_text).chain(shown_by_code()).collect::<Vec<_>>();
    let formats = |line: &str| {
        ["lock(", "inspect(", "holder("].iter().any(|call| {
            line.contains(&format!("{call}format!(")) || line.contains(&format!("{call}&format!("))
        })
    };
    for (path, line) in shown.iter().filter(|(_, line)| formats(line)) {
        assert!(path.ends_with("migrating.md"), "{path}: {line}");
    }
    assert!(shown.iter().filter(|(_, line)| line.contains("lock_key!(")).count() >= 5);
}

/// The lines of the examples, and those of the comments for users, with their files.
fn shown_by_code() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (folder, start) in [("examples", ""), ("lockable-runtime/src", "///")] {
        for path in files(&root().join(folder)) {
            if path.extension().is_some_and(|it| it == "rs") {
                let (text, path) = (fs::read_to_string(&path).unwrap(), path.display().to_string());
                let shown = text.lines().filter(|line| line.trim_start().starts_with(start));
                lines.extend(shown.map(|line| (path.clone(), line.to_owned())));
            }
        }
    }
    lines
}

/// GitHub and the registry show them.
#[test]
fn texts_have_no_lines_that_rustdoc_hides() {
    for text in texts() {
        for line in blocks(&read(&text), "rust").iter().flat_map(|block| block.lines()) {
            assert!(line != "#" && !line.starts_with("# "), "{text}: {line}");
        }
    }
}

/// Each kind of the code, with its advice.
fn kinds() -> Vec<(String, String)> {
    let errors = read("lockable-runtime/src/core/types/error.rs");
    let (_, kinds) = errors.split_once("\nkinds! {").unwrap();
    let (kinds, _) = kinds.split_once("\n}").unwrap();
    let lines = kinds.lines().filter(|line| !line.trim().starts_with("///"));
    let entries = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let entries = entries.split("\",").filter_map(|entry| entry.split_once(" = "));
    entries
        .map(|(kind, rest)| (kind.trim().to_owned(), rest.split_once(": \"").unwrap().1.to_owned()))
        .collect()
}

#[test]
fn the_guide_has_the_advice_of_every_error_kind() {
    let guide = read("lockable-runtime/guide/errors.md");
    let rows =
        guide.lines().filter(|line| line.contains("[LockErrorKind::") && line.starts_with("| "));
    let cells = rows.map(|row| row.trim_matches(['|', ' ']).split(" | ").collect::<Vec<_>>());
    let plain = |text: &str| {
        let parts = text.split('[').map(|part| match part.split_once(']') {
            Some((shown, rest)) if shown.starts_with('`') => format!("{shown}{rest}"),
            Some((_, rest)) => rest.to_owned(),
            None => part.to_owned(),
        });
        parts.collect::<String>()
    };
    let rows: Vec<_> =
        cells.map(|row| (plain(row[0]).replace('`', ""), plain(row.last().unwrap()))).collect();
    assert_eq!(rows, kinds());
}

#[test]
fn the_guide_explains_every_error_kind_and_predicate() {
    let (errors, guide) = (
        read("lockable-runtime/src/core/types/error.rs"),
        read("lockable-runtime/guide/errors.md"),
    );
    let kinds = kinds().into_iter().map(|(kind, _)| format!("[`{kind}`]"));
    let predicates = errors.lines().filter_map(|line| line.trim().strip_prefix("pub fn is_"));
    let predicates = predicates.map(|rest| format!("[`is_{}`]", rest.split('(').next().unwrap()));
    let names: Vec<_> = kinds.chain(predicates).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(guide.contains(&name), "{name} is not explained");
    }
}

#[test]
fn the_attribute_lists_every_option() {
    let listed = options("lockable-runtime/src/lib.rs", "/// | `");
    let [listed, known] = [listed, known_options()].map(BTreeSet::<String>::from_iter);
    assert_eq!(listed, known);
}

/// Also those that it advises in place of another library's.
#[test]
fn the_guide_advises_options_that_exist() {
    let (known, mut count) = (known_options(), 0);
    for text in texts().iter().filter(|path| path.contains("/guide/")) {
        for line in read(text).lines().filter(|line| line.starts_with("| ")) {
            let Some((_, advice)) = line[2..].split_once(" | ") else { continue };
            for code in codes(advice).filter(|code| !code.starts_with(['#', '?'])) {
                let names = code.split(", ").filter_map(|option| option.split_once(" = "));
                for (name, _) in names.filter(|(name, _)| is_name(name)) {
                    assert!(
                        known.iter().any(|it| it == name),
                        "{text}: `{name}` is no option: {line}"
                    );
                    count += 1;
                }
            }
        }
    }
    assert!(count > 20, "{count} options");
}

/// The compiler and the guide lead from another library's name to the same option.
#[test]
fn hints_agree_with_the_guide() {
    let guide = read("lockable-runtime/guide/migrating.md");
    let table = read("lockable-macros/src/args/table.rs");
    let mut count = 0;
    for row in table.split("    Row {").skip(1) {
        let (_, elsewhere) = row.split_once("elsewhere: &[").unwrap();
        let elsewhere = elsewhere.split_once(']').unwrap().0;
        let name = row.split('"').nth(1).unwrap();
        for line in guide.lines().filter(|line| line.starts_with("| `")) {
            let Some((theirs, here)) = line[2..].split_once(" | ") else { continue };
            let plain = |name: &str| name.to_lowercase().replace('_', "");
            let hinted = codes(theirs).next().filter(|name| is_name(name)).map(plain);
            if hinted.is_some_and(|plain| elsewhere.contains(&format!("\"{plain}\""))) {
                assert!(
                    codes(here).any(|code| code.split([' ', ',']).any(|it| it == name)),
                    "{name}: {line}"
                );
                count += 1;
            }
        }
    }
    assert!(count >= 5, "{count} names");
}

#[test]
fn variables_and_flags_stand_for_settings_of_the_url() {
    let table = read("lockable-runtime/src/core/settings/url_settings.rs");
    let flags = read("lockable-cli/src/arguments/connection.rs");
    for file in
        ["lockable-runtime/src/core/settings/environment.rs", "lockable-cli/src/environment.rs"]
    {
        let code = read(file);
        let forgotten: Vec<_> =
            code.split("(\"LOCKABLE_").skip(1).filter_map(|it| it.split_once("\", \"")).collect();
        assert!(forgotten.len() >= 2, "{file}: {forgotten:?}");
        for (variable, rest) in forgotten {
            let setting = rest.split('"').next().unwrap();
            assert_eq!(variable.to_lowercase(), setting, "{file}");
            assert!(table.contains(&format!("own(\"{setting}\"")), "{file}: `{setting}`");
            assert!(flags.contains(&format!("pub(crate) {setting}: ")), "--{setting} is no flag");
        }
    }
}

/// What is in backticks.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_name(text: &str) -> bool {
    text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

#[test]
fn every_feature_is_in_the_documentation() {
    let (manifest, code) =
        (read("lockable-runtime/Cargo.toml"), read("lockable-runtime/src/lib.rs"));
    let (_, features) = manifest.split_once("[features]\n").unwrap();
    let features = features.lines().take_while(|line| !line.starts_with('['));
    let names = features.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    let public: Vec<_> = names.filter(|name| *name != "default").collect();
    assert!(public.len() >= 5, "{public:?}");
    for name in public {
        assert!(code.contains(&format!("//! | `{name}` |")), "`{name}` has no row in the table");
    }
}

#[test]
fn the_readme_has_all_options() {
    let (known, listed) = (known_options(), options("README.md", "| `"));
    assert!(listed.len() >= 8, "{listed:?}");
    for name in &listed {
        assert!(known.contains(name), "`{name}` is no option");
    }
    let readme = read("README.md");
    let (_, others) = readme.split_once("Not in this table: ").unwrap();
    let others = others.split(';').next().unwrap();
    for name in known {
        let is_there = listed.contains(&name) != others.contains(&format!("`{name}`"));
        assert!(is_there, "`{name}` is in neither, or in both");
    }
}

fn known_options() -> Vec<String> {
    let table = read("lockable-macros/src/args/table.rs");
    let names = table.lines().filter_map(|line| line.trim().strip_prefix("name: \""));
    let names: Vec<_> =
        names.filter_map(|rest| rest.strip_suffix("\",")).map(str::to_owned).collect();
    assert!(names.len() >= 15, "{names:?}");
    names
}

/// The option at the start of each row of a table of options.
fn options(text: &str, start: &str) -> Vec<String> {
    let text = read(text);
    let (_, table) = text.split_once("| option | meaning | default |").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.contains('|'));
    let rows = rows.filter_map(|row| row.strip_prefix(start));
    rows.map(|row| row.split(['`', ' ', '(']).next().unwrap().to_owned()).collect()
}
