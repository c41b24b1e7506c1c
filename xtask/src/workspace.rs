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

/// The oldest toolchain that the published crates promise to build with.
pub(crate) fn oldest_toolchain() -> Option<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).ok()?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "))?;
    Some(line.trim_matches('"').to_owned())
}

/// The features of a package, but for the default set.
pub(crate) fn features(package: &str) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(root().join(package).join("Cargo.toml"))?;
    let table = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let entries = table.take_while(|line| !line.starts_with('[')).filter_map(entry_name);
    Ok(entries.filter(|name| name != "default").collect())
}

fn entry_name(line: &str) -> Option<String> {
    let (name, _) = line.split_once(" = ")?;
    let is_name = !name.starts_with(['#', ' ']);
    is_name.then(|| name.trim_matches('"').to_owned())
}

/// Every file below a folder whose name ends like this, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
