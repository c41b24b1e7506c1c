//! Runs the Rust blocks of README and guide, each in a process of its own: some of them install the
//! process-wide locker.
#![cfg(test)]
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::process::Command;
use std::thread;

use lockable_runtime::Locker;
use lockable_tests::Server;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

/// What a block need not import.
#[allow(unused_imports, reason = "no block uses all of them")]
mod prelude {
    pub(crate) use std::time::Duration;

    pub(crate) use lockable_runtime::testing::TestLocks;
    pub(crate) use lockable_runtime::*;

    pub(crate) use crate::Outcome;
}

type Outcome = Result<(), Box<dyn Error>>;

/// The block that a process is asked to run.
const BLOCK: &str = "LOCKABLE_TESTS_BLOCK";

/// Starts this program again for the block; in that process, runs the block.
fn run<F: Future<Output = Outcome>>(
    name: &str,
    needs_server: bool,
    block: fn(Locker) -> F,
) -> Outcome {
    if env::var(BLOCK).is_ok_and(|asked| asked == name) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(block(Locker::in_memory()));
    }
    let server = needs_server.then(Server::start);
    let url = server.as_ref().map_or("memory://".to_owned(), Server::url);
    let (is_good, said) = start(name, &url)?;
    assert!(is_good && said.contains(" 1 passed;"), "{said}");
    Ok(())
}

/// Runs a block in a process of its own; gives whether it ended well, and what it said.
fn start(name: &str, url: &str) -> Result<(bool, String), Box<dyn Error>> {
    let mut program = Command::new(env::current_exe()?);
    program.args([name, "--exact", "--nocapture"]).env(BLOCK, name).env("LOCKABLE_URL", url);
    let output = program.output()?;
    let said = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
    Ok((output.status.success(), said))
}

#[test]
fn the_first_program_of_the_readme_locks() -> Outcome {
    const KEY: &str = "disLock:order:7";
    let server = Server::start();
    let admin = server.admin();

    let (is_good, said) = start("readme::lockable", &server.url())?;
    assert!(is_good && said.contains("order 7 is settled\n"), "{said}");
    assert_eq!(admin.get(KEY), None);
    assert!(admin.pttl("lockable:fence:{4EB}") > 0, "it has locked something");

    admin.set(KEY, "another");
    let (is_good, said) = start("readme::lockable", &server.url())?;
    assert!(!is_good && said.contains("another holder still has the lock"), "{said}");
    assert_eq!(admin.get(KEY).as_deref(), Some("another"));
    Ok(())
}

/// The server of this process' block.
fn url() -> &'static str {
    env::var("LOCKABLE_URL").unwrap_or_default().leak()
}

/// Runs a `main` or a test of a block, which may make a runtime of its own.
fn program<T: Ends>(main: fn() -> T) {
    let end = thread::scope(|scope| scope.spawn(|| main().end()).join());
    assert!(end.is_ok(), "it panicked");
}

/// What a `main` returns.
trait Ends {
    fn end(self);
}

impl Ends for () {
    fn end(self) {}
}

impl<E: Debug> Ends for Result<(), E> {
    fn end(self) {
        assert!(self.is_ok(), "{self:?}");
    }
}
