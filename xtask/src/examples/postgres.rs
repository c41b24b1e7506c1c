//! The PostgreSQL of the examples: a cluster of its own, in a temporary folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::examples::redis::free_port;
use crate::{apt, shell};

/// Ends when it is dropped, and its folder with it.
pub(super) struct Postgres {
    programs: PathBuf,
    folder: String,
    port: u16,
}

impl Postgres {
    pub(super) fn start(programs: &Path) -> Result<Self, String> {
        let folder = shell::output(as_user("mktemp").args(["--directory"]))?.trim().to_owned();
        let server = Self { programs: programs.to_owned(), folder, port: free_port()? };
        let init = ["--username=postgres", "--auth=trust", "--no-locale", "--no-sync"];
        shell::output(server.command("initdb").args(init))?;
        // On its port alone, and without waiting for the disk.
        let options = format!("-F -p {} -h 127.0.0.1 -k ''", server.port);
        let log = server.data().join("log");
        let mut start = server.command("pg_ctl");
        start.args(["-w", "-o", &options, "-l"]).arg(log).arg("start");
        // The server has the outputs of the command that starts it, so a pipe would stay open.
        let is_started = shell::show(start.stdout(Stdio::null()).stderr(Stdio::null()));
        is_started.then_some(server).ok_or_else(|| format!("{start:?} failed"))
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn data(&self) -> PathBuf {
        Path::new(&self.folder).join("data")
    }

    /// One of its programs, for its data.
    fn command(&self, program: &str) -> Command {
        let mut command = as_user(self.programs.join(program));
        command.arg("-D").arg(self.data()).current_dir(&self.folder);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its data are of no use to anyone, so nothing is lost where this fails.
        shell::output(self.command("pg_ctl").args(["-w", "-m", "immediate", "stop"])).ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Where `initdb` and `pg_ctl` are, which are installed first where they can be.
pub(super) fn programs() -> Option<PathBuf> {
    installed().or_else(|| apt::install("postgresql").then(installed).flatten())
}

/// Debian has them out of the `PATH`, in a folder for each version.
fn installed() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.map(|version| version.path().join("bin"));
    let mut folders = env::split_paths(&path).chain(versions);
    folders.find(|folder| ["initdb", "pg_ctl"].iter().all(|name| folder.join(name).is_file()))
}

/// PostgreSQL refuses to run as root: then as the user that its package has made.
fn as_user(program: impl AsRef<OsStr>) -> Command {
    if !apt::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}
