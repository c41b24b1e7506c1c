//! Other processes answer, and end when they should.

use lockable_tests::Peer;

#[test]
fn a_peer_answers_line_by_line_and_ends_when_it_is_told() {
    let mut peer = Peer::start("cat", ["-u"]);
    assert_eq!(peer.ask("first"), "first");
    peer.say("second");
    peer.say("third");
    assert_eq!((peer.hear(), peer.hear()), ("second".to_owned(), "third".to_owned()));
    peer.finish();
}

#[test]
fn a_dropped_peer_ends_at_once() {
    let peer = Peer::start("sleep", ["600"]);
    drop(peer);
}

#[test]
#[should_panic(expected = "the process ended with exit status: 1")]
fn a_peer_that_fails_is_a_failed_test() {
    Peer::start("false", [""; 0]).finish();
}
