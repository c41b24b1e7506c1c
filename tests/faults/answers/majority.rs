//! Which node has a slot: what most nodes say, and not one that is cut off from the others.

use lockable_tests::cluster::SLOTS;
use lockable_tests::{Answer, Cue, StubNodes};

use super::scene::{Nodes, fresh};
use crate::support::ample;

/// Goal: a node that is cut off from the others, and still claims their slots, gets none of their requests. It would
/// grant a lock that another process has.
/// Method: of three nodes it alone answers which node has which slot. A listing asks that at its end, and waits for
/// what comes of it.
#[tokio::test]
async fn the_map_of_a_node_that_is_cut_off_is_not_believed() {
    let nodes = Nodes::shared();
    let [cut_off, other] = nodes.servers();
    let stub_nodes = StubNodes::open([cut_off, other, other]);
    let (key, slot) = fresh("cut-off");
    stub_nodes.assign([slot], 1);
    let connect = async || ample(&stub_nodes.url()).prefix("").connect().await.unwrap();
    let (holder, locker) = (connect().await, connect().await);
    let guard = holder.lock(&key).acquire().await.unwrap();
    let query = Cue::of(["CLUSTER SLOTS"]);
    stub_nodes.answer(0, query.clone(), Answer::Bytes(map_of_one(&stub_nodes)));
    for silent in [1, 2] {
        stub_nodes.answer(silent, query.clone(), Answer::BreakBefore);
    }
    let asked = stub_nodes.count(0, &query);
    let listed = locker.admin().locks().matching("none").next().await;
    assert!(stub_nodes.count(0, &query) > asked);
    assert!(locker.lock(&key).try_acquire().await.unwrap_err().is_busy());
    assert_eq!(stub_nodes.count(0, &Cue::of(["SET"]).about(&key)), 0, "a request leads astray");
    let error = listed.expect("most nodes are away").unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    guard.release().await.unwrap();
}

/// What the first node answers if it claims all slots.
fn map_of_one(stub_nodes: &StubNodes) -> String {
    let (host, port) = (stub_nodes.addr(0).ip().to_string(), stub_nodes.addr(0).port());
    let node = format!("*3\r\n${}\r\n{host}\r\n:{port}\r\n$1\r\n0\r\n", host.len());
    format!("*1\r\n*3\r\n:0\r\n:{}\r\n{node}", SLOTS - 1)
}
