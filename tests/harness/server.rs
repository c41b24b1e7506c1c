//! Servers end with their tests, and do what no test would miss at once.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use lockable_tests::{Cluster, Server, clock, cluster, wait};
use tempfile::TempDir;

#[test]
fn a_panicking_test_leaves_no_server_behind() {
    let test = std::thread::spawn(|| {
        let server = Server::start();
        server.pause();
        std::panic::panic_any(server.pid());
    });
    let pid = test.join().expect_err("the test panics").downcast::<u32>();
    let pid = pid.expect("it panics with a process id").to_string();
    assert!(!Command::new("kill").args(["-0", &pid]).output().unwrap().status.success());
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
fn a_server_that_cannot_start_says_why() {
    let start = || Server::builder().config("no-such-directive", "1").start();
    let message = *std::panic::catch_unwind(start).unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("no-such-directive"), "{message}");
}

#[test]
fn statistics_count_the_commands_of_a_server() {
    let server = Server::start();
    let admin = server.admin();
    admin.set("first", "1");
    admin.reset_statistics();
    admin.set("second", "2");
    assert_eq!((admin.command_calls("SET"), admin.command_calls("get")), (1, 0));
}

#[test]
fn a_server_clock_can_be_set_back_and_stopped() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let admin = server.admin();
    let time = || admin.command::<(u64, u64)>(&["TIME"]);
    let (before, _) = time();
    server.set_clock_back(Duration::from_secs(3_600));
    assert!((before - 3_600..before - 3_000).contains(&time().0));
    server.stop_clock(Duration::from_micros(2_000_000_000_000_007));
    assert_eq!(time(), (2_000_000_000, 7));
    admin.command::<()>(&["SET", "key", "value", "PX", "10"]);
    server.stop_clock(Duration::from_secs(2_000_000_001));
    assert_eq!(admin.get("key"), None);
}

/// Goal: a client that writes a key at the target, which the source still has, is found out.
#[test]
fn a_key_at_both_masters_cannot_be_moved() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let [from, to] = cluster.first_masters().collect::<Vec<_>>()[..] else { panic!("two") };
    let name = cluster.name_at(from, "k");
    from.admin().set(&name, "value");
    cluster.begin_move(cluster::slot(&name), to);
    let target = to.admin();
    target.command::<()>(&["ASKING"]);
    target.set(&name, "other");
    let error = cluster.end_move(cluster::slot(&name)).unwrap_err();
    assert!(error.to_string().contains("BUSYKEY"), "{error}");
}
