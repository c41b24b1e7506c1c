//! A process that has as many files open as it may.

use lockable_tests::Server;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::freed;
use crate::waiting::support::process;

/// No connection can be opened in place of one that broke, until the limit is raised.
#[tokio::test]
async fn without_file_descriptors_a_call_fails_and_the_next_one_works() {
    let server = Server::start();
    let mut limited = process(&server.url());
    let pid = Pid::from_raw(limited.pid().try_into().unwrap());
    let none = |of: Rlimit| Rlimit { current: Some(0), ..of };
    let usual = prlimit(pid, Resource::Nofile, none(rustix::process::getrlimit(Resource::Nofile)));
    server.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = limited.ask("try 60000");
    assert!(error.starts_with("error ") && error.contains("redis://"), "{error}");
    assert_eq!(limited.hear(), "free");
    prlimit(pid, Resource::Nofile, usual.unwrap()).unwrap();
    assert_eq!(limited.ask("try 60000"), "held");
    assert_eq!(limited.ask("release"), "free");
    limited.finish();
    freed(&server).await;
}
