//! The table of exit codes in the README is what the program does.

use std::time::Duration;

use lockable_runtime::{LockRequest, LockSet, Locker};
use lockable_tests::Server;
use tokio::runtime::Runtime;

use super::names::text;
use crate::program::{json, listening, with};

/// In both protocols, of which each has types of its own for what operators ask.
#[test]
fn every_command_ends_with_the_code_of_the_table() {
    for protocol in ["", "?protocol=resp3"] {
        let (server, cells) = (Server::start(), cells());
        let url = format!("{}{protocol}", server.url());
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async {
            let locker = Locker::connect(&url).await.unwrap();
            for cell in &cells {
                cell.put(&locker, &server).await;
            }
        });
        listening(&server, 1);
        let (_, lock) =
            json(&url, &["show", &cells.iter().find(|cell| cell.state == HELD).unwrap().key]);
        assert_eq!(lock["process"]["connected"], true, "{lock}");
        for command in ["ls", "check"] {
            assert_eq!(with(&url, &[command]).0, 0, "{command} {protocol}");
        }
        std::thread::scope(|scope| {
            for part in cells.chunks(cells.len().div_ceil(AT_ONCE)) {
                scope.spawn(|| part.iter().for_each(|cell| cell.check(&url)));
            }
        });
    }
}

/// What is under a key, a command, and its exit code.
struct Cell {
    key: String,
    state: String,
    command: String,
    code: i32,
}

/// The first row of the table has the commands, and its first column what may be under the key.
fn cells() -> Vec<Cell> {
    let readme = text("lockable-cli/README.md");
    let (_, table) = readme.split_once("\n| under the key is |").unwrap();
    let rows = table.lines().take_while(|line| !line.is_empty());
    let mut rows =
        rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let commands = rows.next().unwrap();
    let mut cells = Vec::new();
    for row in rows.skip(1) {
        assert_eq!(row.len(), 1 + commands.len(), "{row:?}");
        for state in row[0].split(", ") {
            let listed = commands.iter().zip(&row[1..]);
            let listed =
                listed.map(|(command, code)| (command.trim_matches('`'), code.parse().unwrap()));
            let ruled = ["show", "resume"].map(|command| (command, code_of(command, state)));
            for (command, code) in listed.chain(ruled) {
                let (key, state) = (format!("k{}", cells.len()), state.to_owned());
                cells.push(Cell { key, state, command: command.to_owned(), code });
            }
        }
    }
    assert_eq!(cells.len(), STATES * COMMANDS);
    cells
}

/// What the list of all codes says of the commands that are not in the table.
fn code_of(command: &str, state: &str) -> i32 {
    match (command, state) {
        (_, "data that is no lock") => 2,
        ("show", "nothing") => 3,
        ("show", _) | ("resume", "a pause" | "a pause of all permits") => 0,
        _ => 3,
    }
}

impl Cell {
    /// Puts under the key what the table says.
    async fn put(&self, locker: &Locker, server: &Server) {
        let (key, admin) = (&self.key, server.admin());
        let lock = || locker.lock(key).expire(LONG);
        match self.state.as_str() {
            "nothing" => {}
            HELD => hold(lock()).await,
            "one of the keys of a set" => {
                let other = format!("{key}-other");
                let locks = locker.lock_all([key, &other]).expire(LONG).renew();
                hold_all(locks.acquire().await.unwrap());
            }
            "one of two permits" => hold(lock().permits(2)).await,
            "all permits" => {
                hold_all(lock().all_permits(2).renew().acquire().await.unwrap());
            }
            "a run that is done" => {
                lock().once().acquire().await.unwrap().keep(LONG).await.unwrap();
            }
            "a lock that `min_hold` keeps" => {
                lock().min_hold(LONG).acquire().await.unwrap().release().await.unwrap();
            }
            "a ticket" => {
                let guard = lock().acquire().await.unwrap();
                // Dropped, it would release the lock.
                std::mem::forget(guard.into_ticket(LONG).await.unwrap());
            }
            "a pause" => lock().acquire().await.unwrap().into_pause(LONG, "").await.unwrap(),
            "a pause of all permits" => {
                let locks = lock().all_permits(2).acquire().await.unwrap();
                locks.into_pauses(LONG, "").await.unwrap();
            }
            "another library's lock" => admin.set(&format!("disLock:{key}"), "another"),
            "data that is no lock" => {
                admin.command::<()>(&["RPUSH", &format!("disLock:{key}"), "data"]);
            }
            other => panic!("no test puts there `{other}`"),
        }
    }

    fn check(&self, url: &str) {
        let (code, said, why) =
            with(url, &self.arguments(url).iter().map(|it| &**it).collect::<Vec<_>>());
        assert_eq!(code, self.code, "{} where {} is: {said}{why}", self.command, self.state);
    }

    /// Of permits, each but the last commands names the first one.
    fn arguments(&self, url: &str) -> Vec<String> {
        let has_permits = self.state.contains("permit");
        let key = &*self.key;
        let name = if has_permits { format!("{{{key}}}#1") } else { key.to_owned() };
        let permits = if has_permits { " --permits 2" } else { "" };
        let line = match &*self.command {
            "show" => format!("show {name}"),
            "wait --for 0s" => format!("wait {name} --for 0s"),
            "release" => format!("release {name} --grace 1m"),
            "release --force" => {
                let id = json(url, &["show", &name]).1["id"].clone();
                format!("release {name} --force --id {}", id.as_str().unwrap_or("00000000"))
            }
            "pause --wait 0s" => format!("pause {key} --for 1h --wait 0s{permits}"),
            "pause --now" => format!("pause {key} --for 1h --now --grace 1m{permits}"),
            "resume" => format!("resume {key}"),
            "run" => format!("run --key {key}{permits} -- true"),
            "run --once 1h" => format!("run --key {key}{permits} --once 1h -- true"),
            other => panic!("no test runs `{other}`"),
        };
        line.split(' ').map(str::to_owned).collect()
    }
}

/// A lock whose holder stops when it is asked to.
async fn hold(request: LockRequest) {
    let guard = request.renew().acquire().await.unwrap();
    tokio::spawn(async move {
        guard.lease().lost().await;
        guard.release().await
    });
}

fn hold_all(locks: LockSet) {
    tokio::spawn(async move {
        locks.leases().lost().await;
        locks.release().await
    });
}

const HELD: &str = "a lock";
const STATES: usize = 12;
const COMMANDS: usize = 9;

/// Commands that run at the same time.
const AT_ONCE: usize = 4;

/// Longer than the test.
const LONG: Duration = Duration::from_secs(300);
