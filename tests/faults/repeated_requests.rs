//! A request that was sent twice: the first was granted and its reply lost, and the second is refused.

use std::sync::Arc;

use lockable_tests::{Answer, Cue, Server, StubNodes, wait};
use rstest::rstest;
use tokio::sync::Notify;

use crate::support::{KEY, LIMIT, LONG, connect_ample, freed};

/// Goal: a refusal that is taken for a proof that the call holds nothing.
#[rstest]
#[case::by_its_rights("NOPERM this user has no permissions to run the 'set' command")]
#[case::without_memory("OOM command not allowed when used memory > 'maxmemory'.")]
#[case::by_a_replica("READONLY You can't write against a read only replica.")]
#[tokio::test]
async fn a_refused_repetition_releases_what_came_before(#[case] refusal: &str) {
    let (server, stub_nodes) = breaking(Answer::error(refusal));
    let locker = connect_ample(&stub_nodes.url_of(0)).await;
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains(&refusal[..5]), "{error}");
    assert_eq!(stub_nodes.count(0, &set()), 2);
    freed(&server).await;
}

/// Goal: the same where the refusal comes when the call is gone.
/// Method: the call is dropped before its second request is answered.
#[tokio::test]
async fn a_late_refusal_releases_what_came_before() {
    let refused = Arc::new(Notify::new());
    let refusal = "OOM command not allowed when used memory > 'maxmemory'.".to_owned();
    let (server, stub_nodes) = breaking(Answer::LateError(refusal, Arc::clone(&refused)));
    let locker = connect_ample(&stub_nodes.url_of(0)).await;
    let call = tokio::spawn(locker.lock("k").acquire());
    wait::until_async(LIMIT, async || stub_nodes.count(0, &set()) == 2).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert!(server.admin().get(KEY).is_some());
    refused.notify_one();
    freed(&server).await;
}

/// Goal: a guard that comes back although a ticket has its lock, which no one knows.
#[tokio::test]
async fn a_refused_repetition_releases_the_ticket_that_was_made() {
    let server = Server::start();
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    let locker = connect_ample(&stub_nodes.url_of(0)).await;
    let guard = locker.lock("k").expire(LONG).acquire().await.unwrap();
    let transfer = Cue::of(["EVAL"]).about(KEY);
    let refusal = Answer::error("OOM command not allowed when used memory > 'maxmemory'.");
    breaks(&stub_nodes, &transfer, refusal);
    let failed = guard.into_ticket(LONG).await.unwrap_err();
    assert!(failed.error().to_string().contains("OOM"), "{failed}");
    assert_eq!(stub_nodes.count(0, &transfer), 2);
    assert!(failed.into_guard().is_none());
    freed(&server).await;
}

/// A stub node that loses the first reply with its connection, and has this answer to the second request.
fn breaking(second: Answer) -> (Server, StubNodes) {
    let server = Server::start();
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    breaks(&stub_nodes, &set(), second);
    (server, stub_nodes)
}

fn breaks(stub_nodes: &StubNodes, cue: &Cue, second: Answer) {
    stub_nodes.answer(0, cue.clone().times(1), second);
    // The latest counts first.
    stub_nodes.answer(0, cue.clone().times(1), Answer::BreakAfter);
}

fn set() -> Cue {
    Cue::of(["SET"]).about(KEY)
}
