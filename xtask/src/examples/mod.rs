//! `cargo xtask examples`: builds `examples/stacks`, and runs each of its programs with and without its servers.

mod postgres;
mod redis;

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::check::{self, Check, Needs, Outcome};
use crate::examples::postgres::Postgres;
use crate::examples::redis::Redis;
use crate::test::build::{Build, with_lints};
use crate::{shell, workspace};

/// A line of `cargo xtask lint` too.
pub(crate) const CHECK: Check = Check { name: "examples of stacks", needs: Needs::More, run: all };

pub(crate) fn run() -> bool {
    check::run_all([CHECK].iter())
}

/// A program, and a part of what it prints without its servers and on them.
struct Example {
    name: &'static str,
    alone: &'static str,
    prints: &'static str,
}

const EXAMPLES: [Example; 6] = [
    needs_server("actix", "order 7: 409, another request pays it"),
    needs_server("opentelemetry", "Name         : hold"),
    needs_server("queue_worker", "4 messages, 3 invoices sent"),
    runs_alone("fencing_sql", "late holder: its withdrawal of 50 is refused"),
    runs_alone("scheduled_job", " reports, "),
    runs_alone("ticket", "invoices of each order: {1: 1, 2: 1, 3: 1, 4: 1}"),
];

const fn needs_server(name: &'static str, prints: &'static str) -> Example {
    Example { name, alone: WITHOUT, prints }
}

/// It has its locks, and its rows, in memory without a server.
const fn runs_alone(name: &'static str, prints: &'static str) -> Example {
    Example { name, alone: prints, prints }
}

/// What those print without their servers that need them.
const WITHOUT: &str = " is not set. With ";

fn all() -> Result<Outcome, String> {
    assert_complete()?;
    build()?;
    let redis = Redis::start()?;
    let postgres = postgres::programs().map(|folder| Postgres::start(&folder)).transpose()?;
    for example in &EXAMPLES {
        example.run(&[], example.alone)?;
        let mut servers = vec![("LOCKABLE_URL", redis.url())];
        servers.extend(postgres.iter().map(|postgres| ("DATABASE_URL", postgres.url())));
        example.run(&servers, example.prints)?;
    }
    let skipped = || "fencing_sql was run on SQLite alone: there is no PostgreSQL".to_owned();
    Ok(postgres.map_or_else(|| Outcome::Passed(skipped()), |_| Outcome::passed()))
}

/// Each program of the manifest is run here, and is in the list that users read.
fn assert_complete() -> Result<(), String> {
    let (manifest, list) =
        (workspace::read(&format!("{FOLDER}/Cargo.toml"))?, workspace::read(LIST)?);
    let programs = manifest.split("[[bin]]\nname = \"").skip(1);
    programs.filter_map(|rest| rest.split('"').next()).try_for_each(|name| {
        let is_run = EXAMPLES.iter().any(|example| example.name == name);
        let is_listed = list.contains(&format!("\n| [`{name}`](stacks/{name}.rs) |"));
        match (is_run, is_listed) {
            (true, true) => Ok(()),
            (false, _) => Err(format!("`{name}` is not in xtask/src/examples/mod.rs")),
            (true, false) => Err(format!("`{name}` is not in {LIST}")),
        }
    })
}

/// Apart from what the workspace builds, which other versions of its dependencies would replace.
fn build() -> Result<Outcome, String> {
    let mut cargo = shell::cargo(&["build", "--quiet", "--locked", "--manifest-path"]);
    cargo.arg(format!("{FOLDER}/Cargo.toml")).arg("--target-dir").arg(target());
    let mut build = Build::default();
    build.run(with_lints(&mut cargo))?;
    build.outcome()
}

fn target() -> PathBuf {
    workspace::target().join("stacks")
}

impl Example {
    /// Runs it with these variables, and fails where it does not end well or does not print that.
    fn run(&self, servers: &[(&str, String)], prints: &str) -> Result<(), String> {
        let mut command = Command::new(target().join("debug").join(self.name));
        for variable in ["LOCKABLE_URL", "DATABASE_URL", "REDIS_URL"] {
            command.env_remove(variable);
        }
        command.envs(servers.iter().map(|(name, value)| (name, value)));
        let (ended_well, said) =
            ended(command).map_err(|error| format!("{}: {error}", self.name))?;
        match ended_well && said.contains(prints) {
            true => Ok(()),
            false if ended_well => Err(format!("{} did not print `{prints}`:\n{said}", self.name)),
            false => {
                Err(format!("{} ended badly, or took longer than {LIMIT:?}:\n{said}", self.name))
            }
        }
    }
}

/// Whether a program ended well and in time, and what it wrote to both of its outputs.
fn ended(mut command: Command) -> io::Result<(bool, String)> {
    let (mut output, input) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn()?;
    // It has the other end of the pipe, whose last copy must close with the child.
    drop(command);
    let (sender, text) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).ok();
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    let said = text.recv_timeout(LIMIT);
    if said.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    Ok((status.success(), said.or_else(|_| text.recv()).unwrap_or_default()))
}

const FOLDER: &str = "examples/stacks";

const LIST: &str = "examples/README.md";

/// Many times what the slowest takes.
const LIMIT: Duration = Duration::from_secs(60);
