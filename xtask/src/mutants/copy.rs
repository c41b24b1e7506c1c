//! A copy of the sources with every bug in it. Each waits for its id in a variable of the environment.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use super::text::Mutant;
use crate::{shell, workspace};

pub(super) const VARIABLE: &str = "LOCKABLE_MUTANT";

/// Writes what is not in the copy yet. Cargo builds again what that changes.
pub(super) fn write(mutants: &[Mutant], folder: &Path) -> Result<(), String> {
    let (changed, sources) = (changed(mutants)?, sources()?);
    for name in &sources {
        let text = match changed.get(name) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => fs::read(workspace::root().join(name)),
        };
        let written = text.and_then(|text| put(&folder.join(name), &text));
        written.map_err(|error| format!("{name}: {error}"))?;
    }
    let sources: BTreeSet<_> = sources.iter().map(|name| folder.join(name)).collect();
    let copied = workspace::files_below(folder)?;
    let mut gone = copied.iter().filter(|path| !sources.contains(*path));
    gone.try_for_each(fs::remove_file).map_err(|error| error.to_string())
}

/// What git tracks, and what is new.
fn sources() -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let names = shell::output(git.current_dir(workspace::root()))?;
    let names = names.split_terminator('\0').map(str::to_owned);
    // A file that was deleted is tracked until that is committed.
    Ok(names.filter(|name| workspace::root().join(name).is_file()).collect())
}

fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, text)
}

/// The files that bugs change, by their paths from the workspace.
fn changed(mutants: &[Mutant]) -> Result<BTreeMap<String, String>, String> {
    let mut changed = BTreeMap::new();
    for root in ROOTS {
        changed.insert(root.to_owned(), workspace::read(root)? + MUTANT);
    }
    let all = mutants.iter().flat_map(|Mutant { id, file, changes, .. }| {
        changes.iter().map(move |(before, after)| (file.as_str(), id, before, after))
    });
    let (scripts, mut code): (Vec<_>, Vec<_>) = all.partition(|it| it.0.starts_with(SCRIPTS));
    // The longest first, because another bug may change a part of a text.
    code.sort_by_key(|(_, _, before, _)| Reverse(before.len()));
    for (file, id, before, after) in code {
        let both = format!("if crate::mutant({id:?}) {{\n{after}\n}} else {{\n{before}\n}}");
        let replaced = replace(&mut changed, file, before, &both);
        replaced.map_err(|problem| format!("{id} and another bug: {problem}"))?;
    }
    replace(&mut changed, SOURCE, JOINED, JOINED_AT_RUN_TIME)?;
    replace(&mut changed, FENCING, GUARDED, GUARDED_AT_RUN_TIME)?;
    let script = MUTANT_SCRIPT.replace("CHANGES", &format!("{scripts:?}"));
    changed.entry(ROOTS[0].to_owned()).or_default().push_str(&script);
    Ok(changed)
}

fn replace(
    changed: &mut BTreeMap<String, String>,
    file: &str,
    before: &str,
    after: &str,
) -> Result<(), String> {
    let text = changed.remove(file).map_or_else(|| workspace::read(file), Ok)?;
    let is_there = text.contains(before);
    changed.insert(file.to_owned(), text.replace(before, after));
    if is_there { Ok(()) } else { Err(format!("{file} has no `{before}`")) }
}

const ROOTS: [&str; 3] =
    ["lockable-runtime/src/lib.rs", "lockable-macros/src/lib.rs", "lockable-cli/src/main.rs"];

/// Whether this process has the bug of that id.
const MUTANT: &str = r#"
pub(crate) fn mutant(id: &str) -> bool {
    static ID: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    ID.get_or_init(|| std::env::var("LOCKABLE_MUTANT").ok()).as_deref() == Some(id)
}
"#;

/// A script cannot read the variable, so the process that sends it changes its text.
const MUTANT_SCRIPT: &str = r#"
pub(crate) fn mutant_script(name: &str, text: &str) -> String {
    let scripts: &[(&str, &str, &str, &str)] = &CHANGES;
    let mut text = text.to_owned();
    for (file, id, before, after) in scripts {
        if file.ends_with(&format!("/{name}.lua")) && mutant(id) {
            text = text.replace(before, after);
        }
    }
    text
}
"#;

const SCRIPTS: &str = "lockable-runtime/scripts/";

/// Where they are joined.
const SOURCE: &str = "lockable-runtime/src/redis/wire/source.rs";
const JOINED: &str = r#"concat!($(include_str!(concat!("../../../scripts/", $name, ".lua"))),+)"#;
const JOINED_AT_RUN_TIME: &str = r#"{
    static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| [$(
        crate::mutant_script($name, include_str!(concat!("../../../scripts/", $name, ".lua")))
    ),+].concat());
    TEXT.as_str()
}"#;

/// Where the script of guarded writes gets its body.
const FENCING: &str = "lockable-runtime/src/core/fencing.rs";
const GUARDED: &str = "FENCE].concat()";
const GUARDED_AT_RUN_TIME: &str = r#"&crate::mutant_script("fence", FENCE)].concat()"#;

#[cfg(test)]
mod tests {
    use super::changed;
    use crate::mutants::text::Mutant;

    #[test]
    fn a_bug_may_change_a_part_of_what_another_changes() {
        let bug = |id, before: &str, after: &str| {
            let change = format!("--- before\n{before}\n--- after\n{after}\n");
            Mutant::parse(id, &format!("A bug.\nfile: deny.toml\ntest: none\n{change}")).unwrap()
        };
        let bugs = [bug("part", "licenses", "bans"), bug("whole", "[licenses]", "")];
        let changed = changed(&bugs).unwrap();
        let part = "if crate::mutant(\"part\") {\nbans\n} else {\nlicenses\n}";
        let whole = format!("if crate::mutant(\"whole\") {{\n\n}} else {{\n[{part}]\n}}");
        assert!(changed["deny.toml"].contains(&whole));
    }
}
