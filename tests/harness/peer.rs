//! Other processes answer, and end when they should.

use lockable_tests::Peer;

#[test]
fn a_peer_answers_until_its_input_ends() {
    let mut peer = Peer::start("cat", ["-u"]);
    assert_eq!(peer.ask("first"), "first");
    peer.say("second");
    peer.say("third");
    assert_eq!((peer.hear(), peer.hear()), ("second".to_owned(), "third".to_owned()));
    peer.finish();
}

/// What the test sends to a paused process waits until it is resumed.
#[test]
fn a_paused_peer_does_nothing_until_resumed() {
    let mut peer = Peer::start("cat", ["-u"]);
    for n in 0..20 {
        peer.pause();
        peer.say(&n.to_string());
        peer.resume();
        assert_eq!(peer.hear(), n.to_string());
    }
    peer.finish();
}

#[test]
fn a_dropped_peer_ends_though_it_is_paused() {
    let peer = Peer::start("cat", ["-u"]);
    peer.pause();
    drop(peer);
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

#[test]
fn what_a_killed_peer_had_said_is_heard() {
    let mut peer = Peer::start("cat", ["-u"]);
    assert_eq!(peer.ask("first"), "first");
    assert_eq!(peer.kill(), [""; 0]);
}

#[test]
fn a_peer_is_heard_out_to_its_end() {
    let mut peer = Peer::start("cat", ["-u"]);
    peer.say("first");
    peer.say("second");
    assert_eq!(peer.hear_out(), ["first", "second"]);
}
