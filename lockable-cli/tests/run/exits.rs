//! What a command gets, and what becomes of its exit code.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use lockable_tests::{Server, wait};

use crate::program::{LIMIT, Running, impatient, lockable, outcome, queued, run, script};

#[test]
fn the_exit_code_is_the_commands_own() {
    let server = Server::start();
    let code = |command: &[&str]| {
        let mut lockable = lockable(&server.url());
        outcome(lockable.args(["run", "--key", "job", "--"]).args(command)).0
    };
    assert_eq!(code(&["true"]), 0);
    assert_eq!(code(&["sh", "-c", "exit 7"]), 7);
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), 128 + 9);
    assert_eq!(code(&["no-such-command"]), 127);
    assert_eq!(code(&["/etc/passwd"]), 126);
    assert_eq!(server.admin().get("disLock:job"), None);
}

#[test]
fn a_busy_lock_has_a_code_of_its_own() {
    let server = Server::start();
    let holder = Running::start(&server.url(), &[]);
    let busy = |options: &[&str]| outcome(&mut run(&server.url(), options, "echo ran"));
    let (code, said, why) = busy(&[]);
    assert_eq!((code, said.as_str()), (75, ""));
    assert!(why.contains("another holder has the lock"), "{why}");
    assert_eq!(busy(&["--wait=100ms"]).0, 75);
    assert_eq!(busy(&["--busy-code", "0"]), (0, String::new(), String::new()));
    drop(holder);
}

#[test]
fn a_busy_lock_says_what_has_it() {
    type Begin = fn(&Server);
    let kinds: [(Begin, &str); 5] = [
        (|server| server.admin().command(&HELD), "another holder"),
        (|server| ends(server, &["--expire", "1h", "--min-hold", "1h"]), "its `min_hold` keeps it"),
        (|server| ends(server, &["--once", "1h"]), "a call with `once` ended well"),
        (|server| drop(outcome(lockable(&server.url()).args(PAUSE))), "the lock is paused until 2"),
        (|server| server.admin().command(&TICKET), "a ticket has the lock"),
    ];
    for (begin, words) in kinds {
        let server = Server::start();
        begin(&server);
        for options in [&[][..], &["--wait=100ms"]] {
            let (code, said, why) = outcome(&mut run(&server.url(), options, "echo ran"));
            assert!(code == 75 && said.is_empty() && why.contains("lock `job`: "), "{why}");
            assert!(why.contains(words) && why.ends_with("lockable show job\n"), "{why}");
        }
    }
}

fn ends(server: &Server, options: &[&str]) {
    assert_eq!(outcome(&mut run(&server.url(), options, "true")).0, 0);
}

const HELD: [&str; 5] =
    ["SET", "disLock:job", "0123456789abcdef.17958782843436145037188522", "PX", "3600000"];
const PAUSE: [&str; 4] = ["pause", "job", "--for", "1h"];
const TICKET: [&str; 5] =
    ["SET", "disLock:job", "@0123456789abcdef.17958782843436145037188522", "PX", "3600000"];

#[test]
fn a_command_that_succeeded_is_not_repeated() {
    let server = Server::start();
    let once = |options: &[&str], script: &str| {
        outcome(&mut run(&server.url(), &[&["--once", "1h"][..], options].concat(), script))
    };
    assert_eq!(once(&[], "exit 7").0, 7);
    assert_eq!(once(&[], "kill -9 $$").0, 128 + 9);
    for script in ["sleep 60", "trap 'exit 0' TERM; sleep 60 & wait"] {
        assert_eq!(once(&["--max-hold", "100ms"], script).0, 124);
    }
    assert_eq!(server.admin().get("disLock:job"), None);
    assert_eq!(once(&[], "echo ran"), (0, "ran\n".to_owned(), String::new()));
    assert!(server.admin().pttl("disLock:job") > 3_500_000);
    for options in [&[][..], &["--wait"], &["--wait=1ms"], &["--busy-code", "7"]] {
        let (code, said, why) = once(options, "echo ran");
        assert_eq!((code, said.as_str()), (0, ""), "{why}");
        let parts = [
            "lock `disLock:job`: its run is done",
            " began at ",
            " until ",
            "; the command was not run\n",
        ];
        assert!(why.lines().count() == 1 && parts.iter().all(|part| why.contains(part)), "{why}");
    }
    assert_eq!(once(&["--busy-code", "0"], "echo ran"), (0, String::new(), String::new()));
    let (code, _, why) = outcome(&mut run(&server.url(), &[], "echo ran"));
    assert!(code == 75 && why.contains("a call with `once` ended well"), "{why}");
}

#[test]
fn a_command_that_waits_runs_after_the_holder() {
    let server = Server::start();
    for options in [&["--wait"][..], &["--wait", "--fair"]] {
        let holder = Running::of(run(&server.url(), &[], "echo $$; read line; echo $line"), 1);
        let waiter = run(&server.url(), options, "echo ran").stdout(Stdio::piped()).spawn();
        queued(&server, "job");
        assert_eq!(holder.end().0, Some(0));
        let output = waiter.unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(0), b"ran\n".to_vec()));
    }
}

#[test]
fn a_server_that_is_down_is_69() {
    let server = Server::start();
    server.kill();
    let (code, said, why) = outcome(&mut run(&server.url(), &[], "echo ran"));
    assert_eq!((code, said.as_str(), why.lines().count()), (69, "", 1), "{why}");
}

#[test]
fn a_server_that_says_nothing_is_given_up_after_the_timeout() {
    let server = Server::start();
    server.pause();
    let (code, _, why) =
        outcome(impatient(&server.url()).args(["run", "--key", "job", "--", "true"]));
    assert!(code == 69 && why.contains("could not connect within 200ms"), "{why}");
    server.resume();
}

#[test]
fn errors_that_cannot_be_written_change_no_code() {
    let server = Server::start();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let code = |command: &mut Command| command.stderr(full()).status().unwrap().code();
    assert_eq!(code(lockable(&server.url()).args(["show", "free"])), Some(3));
    assert_eq!(code(&mut run(&server.url(), &[], "setsid sleep 60 & exit 7")), Some(7));
    server.admin().set("disLock:a", "another");
    let listing = lockable(&server.url()).arg("ls").stdout(full()).status().unwrap();
    assert_eq!(listing.code(), Some(125), "its output is lost");
}

/// Goal: a command is not ended at the end of its first lease.
#[test]
fn a_command_outlives_its_first_lease() {
    let server = Server::start();
    let options = ["--expire", "6s", "--kill-after", "500ms"];
    let running = Running::of(run(&server.url(), &options, "echo $$; read line; true"), 1);
    let (admin, mut last, mut renewals) = (server.admin(), i64::MAX, 0);
    // Each third of a lease one.
    wait::until(LIMIT, || {
        let rest = admin.command::<i64>(&["PTTL", "disLock:job"]);
        renewals += u32::from(rest > last);
        last = rest;
        renewals > 3
    });
    assert!(running.is_alive());
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn a_prefix_may_be_empty() {
    let server = Server::start();
    assert_eq!(outcome(&mut run(&server.url(), &["--prefix", ""], "true")).0, 0);
}

#[test]
fn a_command_has_the_input_and_knows_its_lock() {
    let server = Server::start();
    let script = "cat; echo $LOCKABLE_KEY $LOCKABLE_REQUEST_ID $LOCKABLE_FENCING_TOKEN";
    let mut command = run(&server.url(), &["--request-id", "me"], script);
    let input = File::open("/etc/hostname").unwrap();
    let (code, said, _) = outcome(command.stdin(input));
    let (host, rest) = said.split_once('\n').unwrap();
    assert_eq!((code, host), (0, std::fs::read_to_string("/etc/hostname").unwrap().trim_end()));
    let words: Vec<_> = rest.split_whitespace().collect();
    assert_eq!(words[..2], ["job", "me"]);
    assert!(words[2].parse::<u64>().is_ok());
    let mut command = run(&server.url(), &[], "echo $LOCKABLE_REQUEST_ID");
    assert_eq!(outcome(command.env("LOCKABLE_REQUEST_ID", "outer")).1, "outer\n");
}

#[test]
fn a_command_runs_under_several_locks() {
    let server = Server::start();
    let script = "echo \"$LOCKABLE_KEY\"; echo \"$LOCKABLE_FENCING_TOKEN\"";
    let both = |script| {
        let mut lockable = lockable(&server.url());
        let keys = ["run", "--key", "b", "--key", "a", "--", "sh", "-c", script];
        outcome(lockable.args(keys))
    };
    let (code, said, why) = both(script);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!((code, lines.len(), &lines[..2]), (0, 4, &["b", "a"][..]), "{said}{why}");
    assert!(lines[2..].iter().all(|token| token.parse::<u64>().is_ok()));
    server.admin().command::<String>(&["SET", "disLock:b", "another"]);
    let (code, said, why) = both(script);
    assert_eq!((code, said.as_str()), (75, ""));
    assert!(why.contains("lock `b`") && why.contains("lockable show"), "{why}");
    assert_eq!(server.admin().get("disLock:a"), None);
    server.admin().del("disLock:b");
    server.admin().set("disLock:a", "another");
    let (code, _, why) = both(script);
    assert!(code == 75 && why.contains("lock `a`") && why.ends_with("lockable show a\n"), "{why}");
}

/// What reads the command's output ends when it has read all of it, as the `tee` of a script that logs. It has half a
/// second: where the machine takes that, the next one is left alone.
#[test]
fn what_ends_with_the_command_is_left_alone() {
    let server = Server::start();
    wait::until(LIMIT, || {
        let mut command = run(&server.url(), &[], "(sleep 0.02; echo tail) & exit 5");
        let (code, said, why) = outcome(&mut command);
        assert_eq!(code, 5);
        said == "tail\n" && why.is_empty()
    });
}

#[test]
fn what_a_command_leaves_behind_is_ended_before_the_release() {
    let server = Server::start();
    let script = "trap '' TERM; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; exit 5";
    let options = ["--kill-after", "200ms"];
    let running = Running::of(run(&server.url(), &options, script), 2);
    assert_released_behind(&server, &running);
    let (code, why) = running.end();
    assert_eq!(code, Some(5));
    assert!(why.contains("left processes behind"), "{why}");
}

#[test]
fn a_command_is_ended_when_max_hold_is_over() {
    let server = Server::start();
    // By then the command has named its processes.
    let options = ["--kill-after", "200ms", "--max-hold", "4s"];
    let running = Running::start(&server.url(), &options);
    assert_released_behind(&server, &running);
    let (code, why) = running.end();
    assert_eq!(code, Some(124));
    assert!(why.contains("--max-hold is over"), "{why}");
}

/// Who is alive is asked after the server has said that the lock is free.
fn assert_released_behind(server: &Server, running: &Running) {
    let admin = server.admin();
    wait::until(LIMIT, || {
        let is_free = admin.get("disLock:job").is_none();
        assert!(!(is_free && running.is_alive()), "the lock was released before");
        is_free
    });
}

#[test]
fn mistakes_are_said_before_anything_runs() {
    let server = Server::start();
    let mistake = |url: &str, options: &[&str]| {
        let (code, said, why) = outcome(&mut run(url, options, "echo ran"));
        assert_eq!((code, said.as_str()), (2, ""), "{why}");
        why
    };
    let url = server.url();
    let why = mistake(&url, &["--url", "redis://:secret@host"]);
    assert!(why.contains("--password-file") && !why.contains("secret"), "{why}");
    assert!(mistake("memory://", &[]).contains("inside of one process"));
    assert!(mistake("", &[]).contains("set LOCKABLE_URL"));
    assert!(mistake(&url, &["--expire", "500ms"]).contains("at least 1s"));
    assert!(mistake(&url, &["--kill-after", "20s"]).contains("a third of --expire"));
    assert!(mistake(&url, &["--wait=soon"]).contains("1m30s"));
    assert!(mistake(&url, &["--fair"]).contains("--wait"));
    for period in ["5ms", "0s"] {
        assert!(mistake(&url, &["--once", period]).contains("--once must be at least 10ms"));
    }
    assert!(mistake(&url, &["--prefix", "jo"]).contains("`b` for `job`"));
    assert!(mistake(&format!("{url}?prefix=jo"), &[]).contains("without its prefix"));
    assert!(mistake(&format!("{url}?prefx=jo"), &[]).contains("did you mean `prefix`?"));
    for url in [format!("{url}?prefix =jo"), format!("{url}?prefix\u{a0}=jo")] {
        assert!(mistake(&url, &[]).contains("write `prefix=` and its value"));
        assert!(mistake("", &["--url", &url]).contains("write `prefix=` and its value"));
    }
}

/// A lock, a permit, all permits, and several locks, each with `--max-hold` and with `--min-hold`.
#[test]
fn every_kind_of_command_has_its_hold_times() {
    let server = Server::start();
    let kinds: [(&[&str], &[&str]); 4] = [
        (&["--key", "a"], &["a"]),
        (&["--key", "a", "--permits", "2"], &["{a}#1"]),
        (&["--key", "a", "--permits", "all:2"], &["{a}#1", "{a}#2"]),
        (&["--key", "a", "--key", "b"], &["a", "b"]),
    ];
    let admin = server.admin();
    for (kind, names) in kinds {
        let run = |options: &[&str]| {
            let mut lockable = lockable(&server.url());
            outcome(lockable.arg("run").args(kind).args(options)).0
        };
        assert_eq!(run(&["--max-hold", "100ms", "--", "sleep", "60"]), 124, "{kind:?}");
        assert_eq!(admin.command::<Vec<String>>(&["KEYS", "disLock:*"]), [""; 0], "{kind:?}");
        assert_eq!(run(&["--expire", "1h", "--min-hold", "1h", "--", "true"]), 0, "{kind:?}");
        let expected: Vec<_> = names.iter().map(|name| format!("disLock:{name}")).collect();
        let mut kept: Vec<String> = admin.command(&["KEYS", "disLock:*"]);
        kept.sort_unstable();
        assert_eq!(kept, expected, "{kind:?}");
        admin.flush();
    }
}

#[test]
fn a_variable_that_cannot_count_is_refused() {
    let server = Server::start();
    for (name, value, advice) in [
        ("LOCKABLE_PREFIX", &b"shop:"[..], "`?prefix=…` at the end of LOCKABLE_URL"),
        ("LOCKABLE_NAMESPACE", b"shop", "`?namespace=…` at the end of LOCKABLE_URL"),
        ("LOCKABLE_URL", b"redis://\xff", "LOCKABLE_URL is not UTF-8"),
        ("LOCKABLE_REQUEST_ID", b"\xff", "LOCKABLE_REQUEST_ID is not UTF-8"),
    ] {
        let mut command = run(&server.url(), &[], "echo ran");
        let (code, said, why) = outcome(command.env(name, OsStr::from_bytes(value)));
        assert_eq!((code, said.as_str()), (2, ""), "{name}");
        assert!(why.contains(name) && why.contains(advice), "{why}");
    }
}

/// As by a program that waits for its children's signals itself: the mask is inherited. Without the signal, the end of
/// the command would not be seen before that of the lease.
#[test]
fn a_blocked_signal_of_children_makes_no_command_late() {
    let server = Server::start();
    let command = run(&server.url(), &["--expire", "1h"], "true");
    let mut blocked = Command::new("env");
    blocked.arg("--block-signal=CHLD").arg(command.get_program()).args(command.get_args());
    blocked.env("LOCKABLE_URL", server.url());
    assert_eq!(Running::of(blocked, 0).end().0, Some(0));
}

/// Other programs read it too.
#[test]
fn redis_url_may_have_settings_of_others() {
    let server = Server::start();
    let locks_by = |url: &str| {
        let mut command = run("", &[], "true");
        outcome(command.env("REDIS_URL", url)).0
    };
    let url = server.url();
    assert_eq!(locks_by(&format!("{url}/0?socket_timeout=5&prefix=shop:")), 0);
    assert_eq!(locks_by(&format!("{url}/0?prefx=shop:")), 2);
    assert_eq!(outcome(&mut run(&format!("{url}/0?socket_timeout=5"), &[], "true")).0, 2);
}

#[test]
fn a_password_comes_from_a_file() {
    let server = Server::builder().user("app", "on >secret ~* &* +@all").start();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret\n").unwrap();
    let url = format!("redis://app@{}", server.addr());
    let file = file.path().to_str().unwrap();
    let mut command = run(&url, &["--password-file", file], "echo ran; env | grep -c secret");
    // The command does not have it.
    assert_eq!(outcome(&mut command), (1, "ran\n0\n".to_owned(), String::new()));
}

/// Goal: all that a command does and says is right although the password can be read once.
#[test]
fn a_password_comes_from_a_pipe() {
    let server = Server::builder().user("app", "on >secret ~* &* +@all").start();
    let url = format!("redis://app@{}", server.addr());
    let piped = |rest: &str| {
        let words = format!("\"$0\" \"$@\" {rest} --password-file <(echo secret)");
        outcome(&mut script("bash", &url, &words))
    };
    let (code, _, why) = piped("show job");
    assert!(code == 3 && why.contains("`disLock:job` is free"), "{code} {why}");
    let (code, _, why) = piped("ls disLock:*");
    assert!(code == 0 && why.contains("write the pattern without the prefix"), "{code} {why}");
    let ran = "\"$0\" \"$@\" run --password-file <(echo secret) --key job -- echo ran";
    assert_eq!(outcome(&mut script("bash", &url, ran)), (0, "ran\n".to_owned(), String::new()));
}

#[test]
fn errors_are_json_where_it_is_asked_for() {
    let server = Server::start();
    let holder = Running::start(&server.url(), &[]);
    let (_, _, why) = outcome(&mut run(&server.url(), &["--json"], "true"));
    let error: serde_json::Value = serde_json::from_str(&why).unwrap();
    assert_eq!((&error["schema"], &error["error"]), (&1.into(), &"busy".into()));
    assert_eq!(error["exit_code"], 75);
    drop(holder);
}

#[test]
fn a_lock_is_held_for_min_hold_although_the_command_has_ended() {
    let server = Server::start();
    let options = ["--expire", "1h", "--min-hold", "1h"];
    let (code, ..) = outcome(&mut run(&server.url(), &options, "true"));
    assert_eq!(code, 0);
    let rest = u64::try_from(server.admin().pttl("disLock:job")).unwrap();
    assert!(Duration::from_millis(rest) > LIMIT, "{rest}");
}

#[test]
fn an_empty_variable_is_none() {
    let server = Server::start();
    let script = "echo $$; read line; true";
    let mut command = run(&server.url(), &["--expire", "1h", "--min-hold", "1h"], script);
    for name in ["LOCKABLE_PREFIX", "LOCKABLE_NAMESPACE", "LOCKABLE_REQUEST_ID", "REDIS_URL"] {
        command.env(name, "");
    }
    command.env("OTEL_SERVICE_NAME", "");
    let running = Running::of(command, 1);
    let clients: String = server.admin().command(&["CLIENT", "LIST"]);
    assert!(clients.contains(":lockable@"), "{clients}");
    assert_eq!(running.end().0, Some(0));
    assert!(server.admin().get("disLock:job").is_some());
}

#[test]
fn a_release_that_fails_does_not_hide_that_the_command_ran() {
    let server = Server::start();
    let running = Running::of(run(&server.url(), &[], "echo $$; read line; exit 7"), 1);
    server.kill();
    let (code, why) = running.end();
    assert_eq!(code, Some(7));
    assert!(why.contains("the command has run") && why.lines().count() == 1, "{why}");
}

/// As by an upgrade while the call waits.
#[test]
fn a_program_whose_file_is_gone_runs_its_command() {
    let server = Server::start();
    let holder = Running::start(&server.url(), &[]);
    let program = std::path::PathBuf::from(lockable("").get_program());
    // Not a copy, which cannot be executed while another thread's new process has it open.
    let folder = tempfile::TempDir::new_in(program.parent().unwrap()).unwrap();
    let copy = folder.path().join("lockable");
    std::fs::hard_link(program, &copy).unwrap();
    let mut command = Command::new(&copy);
    command.env("LOCKABLE_URL", server.url());
    let run = ["--timeout", "5m", "run", "--key", "job", "--wait", "--", "sh", "-c", "exit 7"];
    command.args(run);
    let waiter = Running::of(command, 0);
    queued(&server, "job");
    std::fs::remove_file(copy).unwrap();
    drop(holder);
    server.admin().del("disLock:job");
    assert_eq!(waiter.end().0, Some(7));
}
