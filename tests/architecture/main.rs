//! Which room of the code may know which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use self::floors::FLOORS;
use self::paths::paths;

mod floors;
mod paths;

/// The folder whose floor plan is [`FLOORS`].
const HOUSE: &str = "lockable-runtime/src";

/// A line of code, without its comment, and where it stands.
struct Line {
    /// The file, from the folder that was read.
    file: String,
    number: usize,
    code: String,
}

/// The Rust files in a folder of this workspace, by their paths from there.
fn files(folder: &str) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut folders = vec![root.clone()];
    let mut files = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.insert(name_of(&root, &path), fs::read_to_string(path).unwrap());
            }
        }
    }
    assert!(!files.is_empty(), "no code in {folder}");
    files
}

fn name_of(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
}

fn lines(folder: &str) -> Vec<Line> {
    let of_file = |(file, text): (String, String)| {
        let code = text.lines().map(|line| line.split("//").next().unwrap().to_owned());
        let numbered = code.enumerate();
        let lines = numbered.map(|(at, code)| Line { file: file.clone(), number: at + 1, code });
        lines.collect::<Vec<_>>()
    };
    files(folder).into_iter().flat_map(of_file).collect()
}

/// Fails with every line that breaks the rule.
fn assert_none(rule: &str, breaks: impl Iterator<Item = Line>) {
    let all: Vec<_> =
        breaks.map(|line| format!("{}:{}: {}", line.file, line.number, line.code.trim())).collect();
    assert!(all.is_empty(), "{rule}:\n{}", all.join("\n"));
}

/// A file as its folders and its name, such as `["locker", "mod"]`.
type Place = Vec<String>;

fn place(file: &str) -> Place {
    file.trim_end_matches(".rs").split('/').map(ToOwned::to_owned).collect()
}

/// The module that a file is.
fn module(place: &Place) -> Place {
    let mut module = place.clone();
    let _mod = module.pop_if(|name| name == "mod" || name == "lib");
    module
}

/// What a file imports: each path's file, with the path itself. The crate's root has no path.
fn imports<'a>(
    from: &'a Place,
    code: &'a str,
    all: &'a BTreeSet<Place>,
) -> impl Iterator<Item = (Place, String)> + 'a {
    let is_mod = from.last().is_some_and(|name| name == "mod" || name == "lib");
    let named = paths(code, is_mod).into_iter();
    named.map(move |path| (file_of(&absolute(&module(from), &path), all), path.join("::")))
}

/// A path from the crate's root.
fn absolute(module: &Place, path: &[String]) -> Vec<String> {
    let mut absolute = if path[0] == "crate" { Vec::new() } else { module.clone() };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(absolute.pop()),
            name => absolute.push(name.to_owned()),
        }
    }
    absolute
}

/// The file that defines what a path names.
fn file_of(path: &[String], all: &BTreeSet<Place>) -> Place {
    let candidates = (1..=path.len()).rev().flat_map(|length| {
        let file = path[..length].to_vec();
        let folder = [&file[..], &["mod".to_owned()]].concat();
        [file, folder]
    });
    candidates.into_iter().find(|place| all.contains(place)).unwrap_or_default()
}

/// The folder where two files part, and what each is there.
fn parting<'a>(from: &'a Place, to: &'a Place) -> Option<(String, &'a str, &'a str)> {
    let same = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let (one, other) = (from.get(same)?, to.get(same)?);
    Some((from[..same].join("/"), one, other))
}

/// The code of the house, without `lib.rs`, which is above all, and without tests.
fn house() -> BTreeMap<Place, String> {
    let is_test = |file: &str| file.ends_with("/tests.rs") || file.contains("/tests/");
    let code = files(HOUSE).into_iter().filter(|(file, _)| file != "lib.rs" && !is_test(file));
    code.map(|(file, text)| (place(&file), text)).collect()
}

/// The arrows of the house: which file imports from which, and by which path.
fn arrows() -> Vec<(Place, Place, String)> {
    let house = house();
    let all = house.keys().cloned().collect();
    let of_file = |(from, code): (&Place, &String)| {
        let imports = imports(from, code, &all);
        imports.map(|(to, path)| (from.clone(), to, path)).collect::<Vec<_>>()
    };
    house.iter().flat_map(of_file).filter(|(from, to, _)| from != to).collect()
}

fn level(folder: &str, name: &str) -> Option<usize> {
    let (_, order) = FLOORS.iter().find(|(known, _)| *known == folder)?;
    order.split(' ').position(|known| known == name)
}

fn rooms() -> Vec<&'static str> {
    FLOORS[0].1.split(' ').collect()
}

#[test]
fn imports_point_down_in_every_folder() {
    let points_up = |(from, to, path): &&(Place, Place, String)| {
        // The store of a URL may be any, so the core asks the one file that knows all of them.
        if from.join("/") == "core/locker/builder" && path == "crate::open::open" {
            return false;
        }
        // What is re-exported at the crate's root is in no room, and so above all of them.
        let Some((folder, one, other)) = parting(from, to) else { return true };
        level(&folder, one) >= level(&folder, other)
    };
    let arrows = arrows();
    print_figures(&arrows);
    let up = arrows.iter().filter(points_up);
    let up: Vec<_> = up.map(|(from, _, path)| format!("{}: {path}", from.join("/"))).collect();
    assert!(
        up.is_empty(),
        "imports that point up, or through the crate's root:\n{}",
        up.join("\n")
    );
}

/// How large each folder is: to be looked at when it changes, and no limit.
fn print_figures(arrows: &[(Place, Place, String)]) {
    let partings: BTreeSet<_> =
        arrows.iter().filter_map(|(from, to, _)| parting(from, to)).collect();
    let house = house();
    for (folder, order) in FLOORS {
        let between = partings.iter().filter(|(of, _, _)| of == folder).count();
        let of_folder = house.iter().filter(|(place, _)| place.join("/").starts_with(folder));
        let lines: usize = of_folder.map(|(_, code)| code.lines().count()).sum();
        let rooms = order.split(' ').count();
        println!("{rooms:3} rooms, {between:3} arrows, {lines:6} lines  src/{folder}");
    }
}

#[test]
fn every_file_has_its_floor() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for place in house().keys() {
        for (depth, name) in place.iter().enumerate() {
            found.entry(place[..depth].join("/")).or_default().insert(name.clone());
        }
    }
    let planned = FLOORS.iter().map(|(folder, order)| {
        let names: BTreeSet<_> = order.split(' ').map(str::to_owned).collect();
        assert_eq!(names.len(), order.split(' ').count(), "twice in {folder}");
        ((*folder).to_owned(), names)
    });
    assert_eq!(found, planned.collect());
}

#[test]
fn the_documents_list_the_modules_of_the_plan() {
    let rooms = rooms();
    let root = &files(HOUSE)["lib.rs"];
    let modules = root.lines().filter_map(|line| {
        let declared = line.trim_start_matches("pub ").strip_prefix("mod ")?;
        declared.strip_suffix(';')
    });
    assert_eq!(modules.collect::<BTreeSet<_>>(), rooms.iter().copied().collect());
    let text = contributing();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows: Vec<_> = rows.map(|row| row.trim_end_matches(".rs").trim_end_matches('/')).collect();
    for part in ["", "core", "operators"] {
        let (_, order) = FLOORS.iter().find(|(folder, _)| *folder == part).unwrap();
        let modules = order.split(' ').filter(|name| *name != "mod");
        let planned: Vec<_> = modules.map(|name| format!("{part}/{name}")).collect();
        let planned: Vec<_> = planned.iter().map(|name| name.trim_start_matches('/')).collect();
        let listed: Vec<_> = rows.iter().copied().filter(|row| planned.contains(row)).collect();
        assert_eq!(listed, planned);
    }
}

#[test]
fn the_contributors_find_every_folder_of_tests() {
    let folders = fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap().map(Result::unwrap);
    let folders = folders.filter(|entry| entry.path().is_dir());
    let folders: BTreeSet<_> =
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    let text = contributing();
    let listed = text.lines().filter_map(|line| line.strip_prefix("| `tests/")?.split('`').next());
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), folders);
}

fn contributing() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../CONTRIBUTING.md")).unwrap()
}

/// The files of the path of a call in CONTRIBUTING.md, in its order.
fn listed_path() -> Vec<Place> {
    let text = contributing();
    let (_, section) = text.split_once("### The path of an uncontended call\n").unwrap();
    let rows = section.lines().take_while(|line| !line.starts_with('#'));
    let first = rows.filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    first.flat_map(files_of).collect()
}

/// The files that one column names.
fn files_of(column: &str) -> Vec<Place> {
    column.split(", ").map(|file| place(file.trim_matches('`'))).collect()
}

#[test]
fn the_files_of_the_listed_path_exist() {
    let house = house();
    for file in listed_path() {
        assert!(house.contains_key(&file), "{}", file.join("/"));
    }
}

#[test]
fn only_redis_knows_the_redis_crate() {
    let names_crate = |line: &Line| {
        let is_at_home = ["redis/", "operators/redis/"].iter().any(|it| line.file.starts_with(it));
        let code = line.code.replace("crate::redis::", "").replace("self::redis::", "");
        !is_at_home && (code.contains("redis::") || code.contains("extern crate redis"))
    };
    let code = lines("lockable-runtime/src").into_iter();
    assert_none("the redis crate outside of its part", code.filter(names_crate));
}

#[test]
fn redis_does_not_know_the_store_in_memory() {
    let foreign =
        |line: &Line| line.file.starts_with("redis/") && line.code.contains("core::memory");
    let code = lines("lockable-runtime/src").into_iter();
    assert_none("one store names the other", code.filter(foreign));
}

/// The safety argument in `design/safety.md` rests on this.
#[test]
fn leases_are_made_of_answers_alone() {
    let makers = [
        (
            "Grant::answered(",
            "core/acquire/acquirer.rs core/memory/change.rs redis/batch/acquire.rs redis/route/in_parts.rs \
             redis/verbs.rs",
        ),
        ("Lease::of(", "core/acquire/acquirer.rs core/acquire/in_line.rs"),
        ("LeaseState::new(", "core/lease/mod.rs"),
    ];
    for (maker, places) in makers {
        let code = house().into_iter().filter(|(place, _)| place[0] != "simulation");
        let before_tests = |text: String| text.split("\n#[cfg(test)]").next().unwrap().to_owned();
        let code = code.map(|(place, text)| (place.join("/") + ".rs", before_tests(text)));
        let found: Vec<_> = code.filter(|(_, text)| text.contains(maker)).map(|it| it.0).collect();
        assert_eq!(found.join(" "), places, "{maker}");
    }
}

#[test]
fn the_macro_names_the_runtime_in_one_place() {
    let names_runtime = |line: &Line| {
        line.code.contains("__private")
            && line.file != "expand/tokens.rs"
            && !line.file.starts_with("tests/")
    };
    let code = lines("lockable-macros/src").into_iter();
    assert_none("names of the runtime outside of expand/tokens.rs", code.filter(names_runtime));
}

#[test]
fn the_program_uses_public_names_alone() {
    let is_private = |line: &Line| line.code.contains("__private");
    let code = lines("lockable-cli/src").into_iter();
    assert_none("names that only the attribute may use", code.filter(is_private));
}

/// The text of a duration means the same in the attribute and in a URL.
#[test]
fn both_crates_parse_durations_by_the_same_code() {
    let parser = |folder: &str, file: &str| {
        let text = files(folder).remove(file).unwrap();
        let (code, _) = text.split_once("\n#[cfg(test)]").unwrap_or((&text, ""));
        code.trim_end().to_owned()
    };
    assert_eq!(
        parser("lockable-macros/src", "duration.rs"),
        parser(HOUSE, "core/text/duration.rs")
    );
}

/// A comment that names a test, to show what it says, names one that there is.
#[test]
fn tests_that_comments_name_exist() {
    let code = ["lockable-runtime/src", "tests"].map(files);
    let texts: Vec<&String> = code.iter().flat_map(BTreeMap::values).collect();
    let mentions = texts.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let (_, named) = line.trim().strip_prefix("///")?.split_once("Tests: ")?;
        Some(named.split('`').skip(1).step_by(2))
    });
    let named: Vec<&str> = mentions.flatten().collect();
    assert!(named.len() > 5, "{named:?}");
    let exists = |name: &&str| texts.iter().any(|text| text.contains(&format!("fn {name}()")));
    let unknown: Vec<_> = named.into_iter().filter(|name| !exists(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
