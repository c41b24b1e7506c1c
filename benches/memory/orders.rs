//! A process that uses each of many keys once.

use std::env::current_exe;
use std::process::Command;
use std::time::{Duration, Instant};

use lockable_benches::{Observer, Team};

/// How many bytes the server has more, when the process that locked is gone.
pub(crate) fn lock_each(url: &str, keys: u32, observer: &mut Observer) -> f64 {
    // The server has the scripts then, and has used what its connections need.
    lock_in_a_process(url, TASKS, "warm", observer);
    observer.flush();
    let before = observer.number("memory", "used_memory");
    lock_in_a_process(url, keys, "order", observer);
    observer.number("memory", "used_memory") - before
}

fn lock_in_a_process(url: &str, keys: u32, name: &str, observer: &mut Observer) {
    let bench = current_exe().expect("this bench");
    let command = || {
        let mut command = Command::new(&bench);
        command.args(["--worker", url]);
        command
    };
    let mut team = Team::start(1, command).expect("a process");
    let worker = &mut team.first(1)[0];
    let each = keys.div_ceil(TASKS);
    worker.say(&format!("pairs {name}:*:# {TASKS} {each} {LONG}")).expect("a process");
    let answer = worker.answer_within(Duration::from_millis(LONG)).expect("an answer");
    let done = answer.split(' ').next().and_then(|pairs| pairs.parse().ok());
    assert_eq!(done, Some(each * TASKS), "it ran out of time: {answer}");
    drop(team);
    wait_until_alone(observer);
}

/// The connections of a process that is gone take memory until the server sees it.
fn wait_until_alone(observer: &mut Observer) {
    let started = Instant::now();
    while observer.number("clients", "connected_clients") > 1.0 {
        assert!(started.elapsed() < Duration::from_secs(5), "a connection of no process");
        std::thread::yield_now();
    }
}

const TASKS: u32 = 64;

/// Milliseconds that suffice on any machine.
const LONG: u64 = 600_000;
