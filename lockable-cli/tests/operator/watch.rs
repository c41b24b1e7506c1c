//! Looking on: `ls --watch` and `show --watch`, for programs, in files and at a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use lockable_tests::{Server, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::holders::{incident, service};
use super::names::text;
use super::transcripts::pattern;
use crate::program::{LIMIT, lockable, outcome, send};

/// With a hyphen, a waiter may put its mark in front.
const TOKEN: &str = "0123456789abcdef-1764000000000000 checkout-7";

const ANOTHER: &str = "fedcba9876543210.1764000000000000 cart-12";

/// A watch whose output is read line by line.
pub(super) struct Watch {
    child: Child,
    output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Watch {
    pub(super) fn start(url: &str, arguments: &[&str]) -> Self {
        let mut command = lockable(url);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, output, errors }
    }

    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// The next line of standard error.
    pub(super) fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).unwrap();
        line
    }

    /// The change, and the lock, of the next line.
    fn change(&mut self) -> (String, Value) {
        let line = self.line();
        let lock: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut why = String::new();
            self.errors.read_to_string(&mut why).unwrap();
            panic!("`{line}`: {why}")
        });
        (lock["change"].as_str().unwrap().to_owned(), lock)
    }

    fn changes(&mut self, expected: &str) -> Value {
        let (change, lock) = self.change();
        assert_eq!(change, expected, "{lock}");
        lock
    }

    /// Ends it as Ctrl-C does.
    pub(super) fn end(mut self) {
        send(i32::try_from(self.child.id()).unwrap(), Signal::INT);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It has ended already, but in a test that fails.
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_pause_is_no_pattern_and_a_wrong_password_ends_a_watch() {
    let server = Server::builder().config("requirepass", "right").start();
    let (code, _, why) = outcome(lockable(&server.url()).args(["ls", "--watch", "2s"]));
    assert!(code == 2 && why.contains("--watch=2s"), "{why}");
    let (code, _, why) = outcome(lockable(&server.url()).args(["ls", "--watch=2s"]));
    assert!(code == 69 && why.contains("password"), "{why}");
}

/// The same for both commands; only `show` says who waits.
fn every_change_is_a_line(url: &str, server: &Server, arguments: &[&str]) {
    let admin = server.admin();
    let set = |value: &str, rest: &str| {
        admin.command::<()>(&["SET", "disLock:order:7", value, "PX", rest]);
    };
    set(TOKEN, "60000");
    let mut watch = Watch::start(url, arguments);
    let lock = watch.changes("listed");
    assert_eq!((&lock["schema"], &lock["request_id"]), (&1.into(), &"checkout-7".into()));
    assert!(lock["at"].as_str().unwrap().ends_with('Z'), "{lock}");
    set(TOKEN, "120000");
    assert!(watch.changes("renewed")["remaining_ms"].as_u64() > Some(60_000));
    // The mark of a waiter is no change of the hold.
    set(&format!("+{TOKEN}"), "110000");
    admin.command::<()>(&[
        "RPUSH",
        "lockable:queue:{disLock:order:7}",
        "whose listeners are unknown",
    ]);
    assert_eq!(watch.changes("waiting")["waiting"], 1);
    set(ANOTHER, "60000");
    assert_eq!(watch.changes("changed")["request_id"], "cart-12");
    admin.del("disLock:order:7");
    assert_eq!(watch.changes("gone")["request_id"], "cart-12");
    set(TOKEN, "60000");
    watch.changes("new");
    watch.end();
}

#[test]
fn a_reader_sees_every_change_of_a_listing() {
    let server = Server::builder().user("reader", READER).start();
    let url = server.url_with("reader", "secret", 0);
    every_change_is_a_line(&url, &server, &["ls", "--watch=100ms", "--json"]);
}

#[test]
fn a_reader_sees_every_change_of_a_lock() {
    let server = Server::builder().user("reader", READER).start();
    let url = server.url_with("reader", "secret", 0);
    every_change_is_a_line(&url, &server, &["show", "order:7", "--watch=100ms", "--json"]);
}

/// Goal: where the server reports a change, it is seen at once: no look comes by itself in time.
#[test]
fn a_change_that_is_reported_is_seen_at_once() {
    let server = Server::builder().user("reader", READER).start();
    let rights = ["ACL", "SETUSER", "reader", "+client|tracking", "+client|caching"];
    server.admin().command::<()>(&rights);
    let url = server.url_with("reader", "secret", 0);
    every_change_is_a_line(&url, &server, &["show", "order:7", "--watch=10m", "--json"]);
}

/// As the page about rights has it.
const READER: &str = "on >secret %R~disLock:* %R~lockable:* +scan +getrange +pttl +llen +lrange \
                      +dbsize +time +client|list +pubsub|numsub +select";

#[test]
fn a_file_gets_one_listing_after_the_other() {
    let server = Server::start();
    let mut watch = Watch::start(&server.url(), &["ls", "--watch=100ms"]);
    assert!(watch.line().ends_with("Z\n"));
    assert!(watch.line().starts_with("no lock `disLock:*` is held on "));
    server.admin().set("disLock:order:7", TOKEN);
    let mut lines = std::iter::repeat_with(|| watch.line());
    assert!(lines.any(|line| line.starts_with("+  order:7")));
    assert!(lines.any(|line| line.starts_with("   order:7")), "it is new once");
    server.admin().del("disLock:order:7");
    let gone = lines.find(|line| line.starts_with("-  order:7")).unwrap();
    assert!(gone.contains("  gone") && !gone.contains('\u{1b}'), "{gone}");
    watch.end();
}

#[test]
fn a_lock_that_is_free_is_watched_too() {
    let server = Server::start();
    let mut watch = Watch::start(&server.url(), &["show", "order:7", "--watch=100ms"]);
    let mut lines = std::iter::repeat_with(|| watch.line());
    assert!(lines.any(|line| line.starts_with("the lock `disLock:order:7` is free on ")));
    server.admin().command::<()>(&["SET", "disLock:order:7", TOKEN, "PX", "60000"]);
    assert!(lines.any(|line| line == "holder   checkout-7  +\n"));
    assert!(lines.any(|line| line.starts_with("left     ") && line.contains("  #########")));
    watch.end();
}

#[test]
fn a_watch_outlives_its_server() {
    let server = Server::start();
    server.admin().set("disLock:order:7", TOKEN);
    let mut watch = Watch::start(&server.url(), &["ls", "--watch=100ms", "--json"]);
    watch.changes("listed");
    server.kill();
    let note = watch.complaint();
    assert!(note.contains("the watch continues"), "{note}");
    server.restart();
    let note = watch.complaint();
    assert!(note.contains("reply again"), "{note}");
    // Nothing was on a disk. That it is gone is seen, and not that it was unknown.
    watch.changes("gone");
    watch.end();
}

#[test]
fn a_watch_of_no_server_fails_at_once() {
    let server = Server::start();
    server.kill();
    for arguments in [&["ls", "--watch"][..], &["show", "a", "--watch"]] {
        let (code, said, why) = outcome(lockable(&server.url()).args(arguments));
        assert_eq!((code, said.as_str()), (69, ""), "{why}");
    }
}

#[test]
fn a_kept_lock_that_is_waited_for_has_the_same_hold() {
    let server = Server::start();
    let admin = server.admin();
    let set = |mark: &str| {
        let value = format!("{mark}0123456789abcdef.1764000000000000 cron");
        admin.command::<()>(&["SET", "disLock:nightly", &value, "PX", "60000"]);
    };
    set("~");
    let mut watch = Watch::start(&server.url(), &["ls", "--watch=100ms", "--json"]);
    watch.changes("listed");
    // The second for those who wait is not counted, so less is left.
    set("=");
    admin.command::<()>(&[
        "RPUSH",
        "lockable:queue:{disLock:nightly}",
        "whose listeners are unknown",
    ]);
    watch.changes("waiting");
    watch.end();
}

/// A watch in a terminal of this size.
struct Terminal {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Terminal {
    fn start(url: &str, rows: u32, words: &str, variables: &[(&str, &str)]) -> Self {
        let program = env!("CARGO_BIN_EXE_lockable");
        let line = format!("stty rows {rows} columns 100; exec {program} {words}");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--echo", "never", "--command", &line, "/dev/null"]);
        command.env("LOCKABLE_URL", url).env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The next frame, from one switch of the wrapping to the other.
    fn frame(&mut self) -> String {
        let mut frame = Vec::new();
        while !frame.ends_with(b"\x1b[?7h") {
            let read = self.output.read_until(b'h', &mut frame).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&frame));
        }
        String::from_utf8(frame).unwrap()
    }

    /// The first frame with this text.
    fn frame_with(&mut self, text: &str) -> String {
        std::iter::repeat_with(|| self.frame()).find(|frame| frame.contains(text)).unwrap()
    }

    /// Types Ctrl-C; the output is what comes behind the last frame.
    fn end(mut self) -> String {
        self.child.stdin.take().unwrap().write_all(b"\x03").unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        rest
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already, but where a test ends before.
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_terminal_has_one_table_that_is_drawn_again() {
    let server = Server::start();
    let admin = server.admin();
    admin.command::<()>(&["SET", "disLock:order:7", TOKEN, "PX", "60000"]);
    let mut terminal = Terminal::start(&server.url(), 24, "ls --watch=200ms", &[]);
    let first = terminal.frame();
    assert!(first.starts_with("\u{1b}[?7l\r   KEY"), "{first:?}");
    assert!(first.contains("1 lock at ") && first.contains("##########"), "{first:?}");
    admin.set("disLock:job", ANOTHER);
    let new = terminal.frame_with("job");
    // A heading, a lock, and what the marks mean.
    assert!(new.contains("\r\u{1b}[3A   KEY"), "{new:?}");
    assert!(new.contains("\u{1b}[32m+  job"), "{new:?}");
    admin.del("disLock:order:7");
    let gone = terminal.frame_with("\u{1b}[2m-  order:7");
    // Nothing is deleted before it is written again, so nothing flickers.
    assert!(!gone.contains("\u{1b}[2J") && gone.ends_with("\u{1b}[K\r\n\u{1b}[J\u{1b}[?7h"));
    assert!(terminal.end().ends_with("\r\u{1b}[K"));
}

#[test]
fn a_terminal_counts_the_runs_that_are_done() {
    let (server, done) = (Server::start(), "~0123456789abcdef.1764000000000000! cron");
    let admin = server.admin();
    for month in ["2026-10", "2026-11"] {
        admin.set(&format!("disLock:report:{month}"), done);
    }
    let mut terminal = Terminal::start(&server.url(), 24, "ls --watch=100ms", &[]);
    for _ in 0..3 {
        let frame = terminal.frame();
        assert!(frame.contains("0 locks, 2 done at ") && !frame.contains("report:"), "{frame:?}");
    }
    admin.set("disLock:report:2026-12", done);
    terminal.frame_with("0 locks, 3 done at ");
    terminal.end();
}

#[test]
fn a_terminal_without_colours_or_room_gets_none() {
    let server = Server::start();
    let admin = server.admin();
    let variables = [("NO_COLOR", "1")];
    let mut terminal = Terminal::start(&server.url(), 10, "ls --watch=200ms", &variables);
    terminal.frame();
    for number in 10..40 {
        admin.set(&format!("disLock:{number}"), TOKEN);
    }
    let frame = terminal.frame_with("… 24 more, for which there is no room");
    assert!(frame.contains("+  ") && !frame.contains("\u{1b}[32m"), "{frame:?}");
    assert_eq!(frame.lines().count(), 9 + 1, "{frame:?}");
    terminal.end();
    let dumb = [("TERM", "dumb")];
    let mut terminal = Terminal::start(&server.url(), 10, "ls --watch=200ms", &dumb);
    let mut line = String::new();
    terminal.output.read_line(&mut line).unwrap();
    assert!(line.trim_end().ends_with('Z') && !line.contains('\u{1b}'), "{line:?}");
}

/// Goal: what the text shows of a terminal is a frame of one.
#[test]
fn the_watch_of_the_guide_is_real() {
    let server = Server::start();
    let mut running = incident(&server);
    let page = text("lockable-runtime/guide/incident.md");
    let (_, shown) = page.split_once("$ lockable ls --watch\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let mut terminal = Terminal::start(&server.url(), 24, "ls --watch=200ms", &[]);
    terminal.frame_with("2 locks at ");
    running.push(service(&server, "checkout", "order:9", &["--request-id", "checkout-9"]));
    let frame = plain(&terminal.frame_with("+  order:9"));
    assert_eq!(frame.lines().count(), shown.lines().count(), "{frame}");
    for (line, shown) in frame.lines().zip(shown.lines()) {
        assert!(is_like(line, shown), "`{line}` is not like `{shown}`");
    }
    terminal.end();
    drop(running);
}

/// What is left of a frame on the screen.
fn plain(frame: &str) -> String {
    let mut parts = frame.split("\u{1b}[");
    let first = parts.next().unwrap().to_owned();
    let rest = parts.map(|part| part.split_once(|c: char| c.is_ascii_alphabetic()).unwrap().1);
    let text = first + &rest.collect::<String>();
    text.replace('\r', "")
}

/// Whether a line is like one of a text, but for what differs from run to run.
fn is_like(line: &str, shown: &str) -> bool {
    let is_bar = |word: &&str| word.starts_with('#') && word.ends_with(['#', '.']);
    let bar = shown.split(' ').find(is_bar);
    let pattern = pattern(&bar.map_or_else(|| shown.to_owned(), |bar| shown.replace(bar, "1s")));
    let mut rest = Some(line);
    for part in pattern.split("[..]") {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

#[test]
fn a_renewal_is_marked_where_the_rest_grew() {
    let server = Server::start();
    let running = incident(&server);
    let admin = server.admin();
    let mut watch = Watch::start(&server.url(), &["ls", "order:*", "--watch=100ms"]);
    let mut lines = std::iter::repeat_with(|| watch.line());
    assert!(lines.any(|line| line.starts_with("   order:7")));
    wait::until(LIMIT, || admin.pttl("disLock:order:7") < 29_500);
    admin.command::<()>(&["PEXPIRE", "disLock:order:7", "30000"]);
    assert!(lines.any(|line| line.starts_with("^  order:7")));
    watch.end();
    drop(running);
}
