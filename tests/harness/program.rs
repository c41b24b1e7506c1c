//! A program is run to its end, or to its limit.

use std::time::Duration;

use lockable_tests::Program;

#[test]
fn both_outputs_of_a_program_are_returned() {
    let said = shell("echo $GREETING; echo again >&2").env("GREETING", "hello").run(LONG);
    assert_eq!(said.as_deref(), Ok("hello\nagain\n"));
}

#[test]
fn a_variable_that_was_removed_is_not_there() {
    let greet = || shell("echo ${GREETING:-none}").env("GREETING", "hello");
    assert_eq!(greet().env_remove("GREETING").run(LONG).as_deref(), Ok("none\n"));
}

#[test]
fn a_failed_program_returns_its_output() {
    let failure = shell("echo before; exit 3").run(LONG).unwrap_err();
    assert_eq!(failure, "it ended with exit status: 3\nbefore\n");
    let failure = Program::new("/no/such/program").run(LONG).unwrap_err();
    assert!(failure.contains("/no/such/program") || failure.contains("No such file"), "{failure}");
}

#[test]
fn a_program_over_its_limit_is_killed() {
    let failure = shell("echo $$; exec sleep 600").run(Duration::from_secs(1)).unwrap_err();
    let (why, said) = failure.split_once('\n').unwrap();
    assert_eq!(why, "it had not ended after 1s");
    // The shell's own id is also that of what it has become.
    let is_there = shell(&format!("kill -0 {}", said.trim())).run(LONG).is_ok();
    assert!(!is_there, "process {said} still runs");
}

fn shell(script: &str) -> Program {
    Program::new("sh").arg("-c").arg(script)
}

const LONG: Duration = Duration::from_secs(60);
