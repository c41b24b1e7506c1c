//! Servers start, stop, pause and come back.

use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use lockable_tests::{Admin, Server, clock, wait};
use tempfile::TempDir;

#[test]
fn a_server_starts_and_ends_with_its_value() {
    let server = Server::start();
    server.admin().set("key", "value");
    assert_eq!(server.admin().get("key").as_deref(), Some("value"));
    let (addr, pid) = (server.addr(), server.pid());
    drop(server);
    assert!(TcpStream::connect(addr).is_err());
    assert!(!process_exists(pid));
}

#[test]
fn a_server_clock_can_be_set_back() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let time = || server.admin().command::<(u64, u64)>(&["TIME"]).0;
    let before = time();
    server.set_clock_back(Duration::from_secs(3_600));
    assert!((before - 3_600..before - 3_000).contains(&time()));
}

#[test]
fn a_server_clock_can_be_stopped() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let admin = server.admin();
    for at in [Duration::from_secs(2_000_000_000), Duration::from_micros(2_000_000_000_000_007)] {
        server.stop_clock(at);
        let (seconds, micros) = admin.command::<(u64, u64)>(&["TIME"]);
        assert_eq!(Duration::from_secs(seconds) + Duration::from_micros(micros), at);
    }
    admin.command::<()>(&["SET", "key", "value", "PX", "10"]);
    server.stop_clock(Duration::from_secs(2_000_000_001));
    assert_eq!(admin.get("key"), None);
}

#[test]
fn a_panicking_test_leaves_no_server_behind() {
    let test = std::thread::spawn(|| {
        let server = Server::start();
        std::panic::panic_any(server.pid());
    });
    let pid = test.join().expect_err("the test panics");
    assert!(!process_exists(*pid.downcast::<u32>().expect("it panics with a process id")));
}

/// Goal: a test process that gets no chance to clean up leaves no server behind.
/// Method: the test runs itself in a process of its own, which says where its server is and waits
/// to be killed.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_test_leaves_no_server_behind() {
    if env::var_os("LOCKABLE_TEST_WAITS").is_some() {
        return start_and_wait();
    }
    let leftovers = TempDir::new().unwrap();
    let mut test = Command::new(env::current_exe().unwrap());
    test.env("TMPDIR", leftovers.path());
    test.args(["--exact", "server::a_killed_test_leaves_no_server_behind", "--nocapture"]);
    test.env("LOCKABLE_TEST_WAITS", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut test = test.spawn().unwrap();
    let mut lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let addr = lines.find_map(|line| line.strip_prefix("server: ").map(str::to_owned));
    let addr = addr.expect("the other process starts a server");
    assert!(TcpStream::connect(&addr).is_ok());
    test.kill().and_then(|()| test.wait()).unwrap();
    wait::until(Duration::from_secs(10), || TcpStream::connect(&addr).is_err());
}

#[cfg(target_os = "linux")]
fn start_and_wait() {
    let server = Server::start();
    println!("\nserver: {}", server.addr());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_restarted_server_is_empty_on_its_port() {
    let server = Server::start();
    server.admin().set("key", "value");
    let (addr, pid) = (server.addr(), server.pid());
    server.kill();
    assert!(TcpStream::connect(addr).is_err());
    server.restart();
    assert_eq!(server.addr(), addr);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.admin().get("key"), None);
}

#[test]
fn a_server_restarts_with_what_was_saved() {
    let server = Server::start();
    server.admin().set("saved", "value");
    server.admin().command::<()>(&["SAVE"]);
    server.admin().set("lost", "value");
    server.restart();
    assert_eq!(server.admin().keys("*"), ["saved"]);
}

#[test]
fn a_replica_follows_its_primary_until_promoted() {
    let (primary, replica) = (Server::start(), Server::start());
    let (early, late) = (primary.admin(), replica.admin());
    early.set("before", "value");
    late.follow(primary.addr());
    assert_eq!(late.get("before").as_deref(), Some("value"));
    early.set("during", "value");
    wait::until(Duration::from_secs(10), || late.get("during").is_some());
    late.promote();
    early.set("after", "value");
    late.set("own", "value");
    assert_eq!(late.keys("*"), ["before", "during", "own"]);
}

#[test]
fn a_paused_server_answers_when_it_is_resumed() {
    let server = Server::start();
    server.pause();
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let silence = stream.read(&mut [0; 7]).expect_err("no reply comes");
    assert_eq!(silence.kind(), ErrorKind::WouldBlock);
    server.resume();
    let mut answer = [0; 7];
    stream.set_read_timeout(None).unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_server_can_be_dropped_while_it_is_paused() {
    let server = Server::start();
    server.pause();
    let pid = server.pid();
    drop(server);
    assert!(!process_exists(pid));
}

#[test]
fn users_have_passwords_and_their_own_keys() {
    let server =
        Server::builder().password("secret").user("app", "on >word ~app:* +get +select").start();
    let admin = Admin::connect(&server.url_with("", "secret", 3));
    admin.set("app:key", "value");
    let app = Admin::connect(&server.url_with("app", "word", 3));
    assert_eq!(app.get("app:key").as_deref(), Some("value"));
    let refused = app.try_command(&["GET", "other"]).expect_err("the key is not the user's");
    assert_eq!(refused.code(), Some("NOPERM"));
}

#[test]
fn a_unix_socket_reaches_the_same_server() {
    let server = Server::builder().unix_socket().start();
    Admin::connect(&server.unix_url()).set("key", "value");
    assert_eq!(server.admin().get("key").as_deref(), Some("value"));
}

#[test]
fn statistics_count_the_commands_of_a_server() {
    let server = Server::start();
    let admin = server.admin();
    admin.set("first", "1");
    admin.reset_statistics();
    admin.set("second", "2");
    assert_eq!((admin.command_calls("SET"), admin.command_calls("get")), (1, 0));
    assert_eq!(admin.keys("*"), ["first", "second"]);
    assert_eq!((admin.type_of("first").as_str(), admin.pttl("first")), ("string", -1));
    admin.flush();
    assert_eq!((admin.keys("*").len(), admin.pttl("first")), (0, -2));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let start = || Server::builder().config("no-such-directive", "1").start();
    let message = *std::panic::catch_unwind(start).unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("no-such-directive"), "{message}");
}

#[test]
fn an_unreachable_server_is_an_io_error() {
    let server = Server::start();
    let admin = server.admin();
    server.kill();
    let error = admin.try_command(&["PING"]).expect_err("no reply comes");
    assert_eq!(error.kind(), redis::ErrorKind::Io);
}

#[test]
#[should_panic(expected = "did not hold within 20ms")]
fn waiting_has_a_limit() {
    wait::until(Duration::from_millis(20), || false);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "harness/server.rs")]
async fn waiting_has_a_limit_under_a_paused_clock() {
    wait::until_async(Duration::from_millis(20), async || false).await;
}

fn process_exists(pid: u32) -> bool {
    Command::new("kill").args(["-0", &pid.to_string()]).output().unwrap().status.success()
}
