//! The package manager of Debian and its relatives, where this user may use it.

use std::process::Command;

use crate::shell;

/// Installs a package; `false` when there is no way to, or when it fails.
pub(crate) fn install(package: &str) -> bool {
    let Some(prefix) = prefix() else { return false };
    println!("installing {package} through apt-get");
    // An old list of one source need not keep the package from being found in another.
    shell::show(&mut apt_get(prefix, &["update"]));
    shell::show(&mut apt_get(prefix, &["install", "--yes", "--no-install-recommends", package]))
}

/// What makes this user root; `None` when nothing does, or when there is no apt-get.
fn prefix() -> Option<&'static [&'static str]> {
    match shell::answers("apt-get", &["--version"]) {
        true if is_root() => Some(&["env"]),
        true if shell::answers("sudo", &["-n", "true"]) => Some(&["sudo", "-n", "env"]),
        _ => None,
    }
}

pub(crate) fn is_root() -> bool {
    shell::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// No one is there to answer a question, and another process may be installing too.
fn apt_get(prefix: &[&str], arguments: &[&str]) -> Command {
    let mut words = prefix.iter();
    let mut command = Command::new(words.next().unwrap_or(&"env"));
    command.args(words).args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]);
    command.args(["--option", "DPkg::Lock::Timeout=300"]).args(arguments);
    command
}
