//! Where the project's files are, and what its manifests say.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Where cargo builds, which is also where this project's tools put their files.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The features of a package, but for the default set.
pub(crate) fn features(package: &str) -> Result<Vec<String>, String> {
    let manifest = read(&format!("{package}/Cargo.toml"))?;
    let table = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let entries = table.take_while(|line| !line.starts_with('[')).filter_map(entry_name);
    Ok(entries.filter(|name| name != "default").collect())
}

fn entry_name(line: &str) -> Option<String> {
    let (name, _) = line.split_once(" = ")?;
    let is_name = !name.starts_with(['#', ' ']);
    is_name.then(|| name.trim_matches('"').to_owned())
}

/// A text of this workspace.
pub(crate) fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The files in a folder of this workspace.
pub(crate) fn files(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, String> {
    let folder = root().join(folder);
    let entries = fs::read_dir(&folder).and_then(Iterator::collect);
    let entries: Vec<fs::DirEntry> =
        entries.map_err(|error: io::Error| format!("{}: {error}", folder.display()))?;
    Ok(entries.iter().map(fs::DirEntry::path).collect())
}

/// The files in a folder and in those inside of it.
pub(crate) fn files_below(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in files(folder)? {
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
