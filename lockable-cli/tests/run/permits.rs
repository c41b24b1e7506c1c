//! Commands that run several at a time, and one that runs beside none of them.

use std::process::{Child, Stdio};

use lockable_tests::Server;

use crate::program::{Running, listening, lockable, outcome, queued_for_permits, run};

/// A command under a permit, which runs until its input ends.
fn inside(server: &Server) -> Running {
    Running::of(run(&server.url(), &["--permits", "2"], "echo $$; read line; true"), 1)
}

/// A command that waits, and writes a line when it runs.
fn waiting(server: &Server, permits: &str) -> Child {
    let mut command = run(&server.url(), &["--permits", permits, "--wait"], "echo ran");
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn assert_ran(waiter: Child) {
    let output = waiter.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"ran\n".to_vec()));
}

#[test]
fn so_many_commands_run_at_a_time_as_permits() {
    let server = Server::start();
    let (first, second) = (inside(&server), inside(&server));
    let busy = |options: &[&str]| {
        let options = [&["--permits", "2"], options].concat();
        outcome(&mut run(&server.url(), &options, "echo ran"))
    };
    let (code, said, why) = busy(&[]);
    assert_eq!((code, said.as_str()), (75, ""));
    assert!(why.contains("lock `{job}`: all permits are taken"), "{why}");
    assert!(why.contains("wait with --wait") && why.ends_with(" ls '{job}#*'\n"), "{why}");
    let (code, _, why) = busy(&["--wait=100ms"]);
    assert!(code == 75 && why.contains("all permits are still taken; see"), "{why}");
    assert_eq!(busy(&["--busy-code", "0"]), (0, String::new(), String::new()));
    let waiter = waiting(&server, "2");
    queued_for_permits(&server, "job", 1);
    assert_eq!(first.end().0, Some(0));
    assert_ran(waiter);
    assert!(second.is_alive());
    assert_eq!(server.admin().get("disLock:{job}#1"), None);
}

#[test]
fn a_command_with_all_permits_runs_when_the_others_are_out() {
    let server = Server::start();
    let (first, second) = (inside(&server), inside(&server));
    let (code, said, why) = outcome(&mut run(&server.url(), &["--permits", "all:2"], "echo ran"));
    assert_eq!((code, said.as_str()), (75, ""));
    assert!(why.contains("lock `{job}`: a permit is taken") && why.contains("'{job}#*'"), "{why}");
    let all = waiting(&server, "all:2");
    queued_for_permits(&server, "job", 2);
    assert_eq!(first.end().0, Some(0));
    queued_for_permits(&server, "job", 1);
    // What became free is not for those that come later.
    assert_eq!(outcome(&mut run(&server.url(), &["--permits", "2"], "echo ran")).0, 75);
    assert!(second.is_alive());
    assert_eq!(second.end().0, Some(0));
    assert_ran(all);
}

#[test]
fn a_command_with_a_permit_knows_its_key_and_one_token() {
    let server = Server::start();
    let script = "echo \"$LOCKABLE_KEY\"; echo \"$LOCKABLE_FENCING_TOKEN\"";
    let mut latest = 0;
    for permits in ["3", "all:3", "3", "all:2", "1", "all:1"] {
        let (code, said, why) = outcome(&mut run(&server.url(), &["--permits", permits], script));
        let lines: Vec<_> = said.lines().collect();
        assert_eq!((code, lines.len(), lines[0]), (0, 2, "job"), "{said}{why}");
        let token: u64 = lines[1].parse().unwrap();
        assert!(token > latest, "{token} after {latest}");
        latest = token;
        // The newest token of all permits refuses those of all calls before it.
        let (admin, counter) = (server.admin(), "lockable:fence:*");
        let counts = admin.keys(counter).into_iter().filter_map(|key| admin.get(&key));
        assert_eq!(Some(token), counts.filter_map(|count| count.parse().ok()).max(), "{permits}");
    }
}

#[test]
fn a_command_is_ended_when_any_of_all_permits_is_taken() {
    let server = Server::start();
    let options = ["--permits", "all:2", "--expire", "5s"];
    let running = Running::of(run(&server.url(), &options, "echo $$; read line; true"), 1);
    listening(&server, 1);
    server.admin().del("disLock:{job}#2");
    lockable_tests::wait::until(crate::program::LIMIT, || !running.is_alive());
    let (code, why) = running.end();
    assert_eq!(code, Some(124));
    assert!(why.contains("{job}#2"), "{why}");
    assert_eq!(server.admin().get("disLock:{job}#1"), None);
}

#[test]
fn permits_go_with_one_key_alone() {
    let server = Server::start();
    let mistake = |options: &[&str]| {
        let mut command = lockable(&server.url());
        command.args(["run", "--key", "job"]).args(options).args(["--", "echo", "ran"]);
        let (code, said, why) = outcome(&mut command);
        assert_eq!((code, said.as_str()), (2, ""), "{why}");
        why
    };
    for permits in ["2", "all:2"] {
        let with = |options: &[&str]| mistake(&[&["--permits", permits], options].concat());
        assert!(with(&["--key", "b"]).contains("--permits is for one --key"));
        assert!(with(&["--once", "1h"]).contains("'--once <TIME>'"));
        assert!(with(&["--wait", "--fair"]).contains("'--fair'"));
    }
    for permits in ["0", "65", "all:0", "all", "two"] {
        assert!(mistake(&["--permits", permits]).contains("from 1 to 64"));
    }
    assert!(mistake(&["--once", "1h", "--key", "b"]).contains("--once is for one --key"));
}
