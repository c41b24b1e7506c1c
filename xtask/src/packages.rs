//! What the published packages bring to the registry, and to their documentation.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::check::Outcome;
use crate::{shell, workspace};

/// All packages are complete, and build from their archives without a warning.
///
/// This is what `cargo publish --dry-run` does, but for the questions to the registry.
pub(crate) fn archives() -> Result<Outcome, String> {
    PACKAGES.iter().try_for_each(|package| complete(package))?;
    let folder = workspace::root().join(workspace::target()).join("archives");
    forget_last(&folder);
    let mut cargo = shell::cargo(&["package", "--offline", "--allow-dirty", "--target-dir"]);
    // As a user builds them: without what this project's own tests see.
    cargo.env("RUSTFLAGS", "");
    cargo.arg(folder).args(PACKAGES.iter().flat_map(|package| ["-p", package]));
    let said = shell::messages(&mut cargo)?;
    // Users need no tests of ours.
    let is_meant = |line: &str| line.starts_with("warning: ignoring test");
    let is_warning = |line: &&str| line.starts_with("warning") && !is_meant(line);
    let warnings: Vec<_> = said.lines().filter(is_warning).collect();
    if warnings.is_empty() { Ok(Outcome::passed()) } else { Err(warnings.join("\n")) }
}

/// For cargo, an archive of the same version has the same content: it would build the last program with the runtime of
/// the time before.
fn forget_last(folder: &Path) {
    drop(fs::remove_dir_all(folder));
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(env::home_dir()?.join(".cargo"))) else { return };
    let unpacked = fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    for of_registry in unpacked {
        for package in PACKAGES {
            let name = format!("{package}-{}", env!("CARGO_PKG_VERSION"));
            drop(fs::remove_dir_all(of_registry.path().join(name)));
        }
    }
}

/// What cargo itself does not miss.
fn complete(package: &str) -> Result<(), String> {
    let mut cargo = shell::cargo(&["package", "--offline", "--allow-dirty", "--list"]);
    let files = shell::output(cargo.args(["-p", package]))?;
    let files = FILES.iter().filter(|file| !files.lines().any(|line| line == **file));
    let manifest = workspace::read(&format!("{package}/Cargo.toml"))?;
    let fields = FIELDS.iter().filter(|field| !manifest.contains(&format!("\n{field} = ")));
    let missing: Vec<_> = files.chain(fields).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("{package} is published without {}", missing.join(", ")))
}

/// What needs a feature says so in the documentation, which the check before this one has built.
pub(crate) fn badges() -> Result<Outcome, String> {
    let pages = workspace::target().join("doc/lockable_runtime");
    for (feature, page) in BADGES {
        let page = pages.join(page);
        let text =
            fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
        if !text.contains(&format!("crate feature <code>{feature}</code>")) {
            return Err(format!("{} does not name the feature {feature}", page.display()));
        }
    }
    Ok(Outcome::passed())
}

/// What another one depends on comes before it.
const PACKAGES: [&str; 4] =
    ["lockable-installed", "lockable-macros", "lockable-runtime", "lockable-cli"];

const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

const FIELDS: [&str; 4] = ["description", "readme", "keywords", "categories"];

/// One page for each feature that something public needs.
const BADGES: [(&str, &str); 4] = [
    ("macros", "attr.distributed_lock.html"),
    ("serde", "struct.FencingToken.html"),
    ("tls-no-provider", "struct.LockerBuilder.html"),
    ("tower", "tower/index.html"),
];
