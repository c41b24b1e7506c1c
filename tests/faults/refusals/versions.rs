//! Servers that are too old, or no servers of this kind: a stub node gives their answers.

use lockable_runtime::LockErrorKind;
use lockable_runtime::check::{Code, Finding};
use lockable_tests::{Answer, Cue, Server, StubNodes, wait};
use rstest::rstest;

use crate::support::ample;

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_and_found() {
    for version in ["6.2.14", "5.0.7", "2.8.0"] {
        let (stub_nodes, _server) = answering(Cue::of(["HELLO"]), &handshake(version));
        let url = stub_nodes.url_of(0);
        let error = ample(&url).connect().await.unwrap_err();
        assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains(version) && text.contains("7.0 or later") && text.contains(&url),
            "{text}"
        );
        let report = ample(&url).connect_lazy().unwrap().check().await;
        let codes: Vec<_> = report.findings().map(Finding::code).collect();
        assert_eq!(codes, [Code::TooOld], "{report}");
        assert!(!report.is_ok() && report.to_string().contains(version), "{report}");
    }
}

#[tokio::test]
async fn a_server_without_a_handshake_is_refused() {
    let (stub_nodes, _server) = answering(Cue::of(["HELLO"]), "-ERR unknown command 'HELLO'\r\n");
    let error = ample(&stub_nodes.url_of(0)).connect().await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("older than 6.2"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_new_enough_is_taken() {
    let (stub_nodes, _server) = answering(Cue::of(["HELLO"]), &handshake("7.0.0"));
    ample(&stub_nodes.url_of(0)).connect().await.unwrap();
}

/// It is found at once, and not when the deadline ends.
#[rstest]
#[case::of_another_protocol("HTTP/1.1 400 Bad Request\r\n\r\n")]
#[case::with_one_answer_to_all("+PONG\r\n")]
#[tokio::test]
async fn a_server_of_another_kind_is_an_error(#[case] answer: &str) {
    let (stub_nodes, _server) = answering(Cue::all(), answer);
    let url = stub_nodes.url_of(0);
    let error = wait::ends(ample(&url).connect()).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(&url), "{error:?}");
}

/// A server whose stub node has another answer to these commands.
fn answering(cue: Cue, answer: &str) -> (StubNodes, Server) {
    let server = Server::start();
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    stub_nodes.answer(0, cue, Answer::Bytes(answer.to_owned()));
    (stub_nodes, server)
}

fn handshake(version: &str) -> String {
    let length = version.len();
    format!("*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n${length}\r\n{version}\r\n")
}
