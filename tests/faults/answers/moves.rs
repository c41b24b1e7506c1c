//! What a process knows of a slot and its locks, and what of it counts after the slot has moved.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use lockable_runtime::__internals::{Place as Found, fence_counter};
use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::cluster::SLOTS;
use lockable_tests::{Admin, Answer, Cue, Hold, Server, StubNodes, wait};
use tokio::task::JoinHandle;

use super::places::Place;
use super::scene::{Nodes, Scene, fresh};
use crate::by_hand::ByHand;
use crate::support::{COMMAND, LIMIT, LONG, ample, now};
use crate::waiting::support::renewed;

/// The wait limit of a call that is over soon.
const SHORT: Duration = Duration::from_millis(20);

/// Goal: a token of a fence counter that was left at a node when its slot moved on, and came back.
#[tokio::test]
async fn tokens_rise_when_a_slot_moves_there_and_back() {
    let mut scene = Scene::begin(LONG).await;
    for stub_node in [0, 1, 0, 1] {
        // The counters stay where they are.
        scene.stub_nodes.assign([scene.slot], stub_node);
        for _ in 0..2 {
            let before = scene.token;
            scene.hold_and_release().await;
            assert!(scene.token > before, "{} after {before}", scene.token);
        }
    }
}

/// A node that gives one slot away has others, and so do calls that wait for its answers.
#[tokio::test]
async fn a_slot_that_moves_breaks_no_connection() {
    const MOVES: usize = 24;
    let mut scene = Scene::begin(LONG).await;
    let handshakes = |scene: &Scene| {
        let handshake = Cue::of(["HELLO"]);
        scene.stub_nodes.count(0, &handshake) + scene.stub_nodes.count(1, &handshake)
    };
    let before = handshakes(&scene);
    for number in 0..MOVES {
        scene.stub_nodes.assign([scene.slot], (number + 1) % 2);
        scene.hold_and_release().await;
    }
    // Two for each runtime, to either node.
    let opened = handshakes(&scene) - before;
    assert!(opened < MOVES / 2, "{opened} connections");
}

/// Goal: a holder who hears of a failover only when its lease is due.
/// Method: the slot moves without its data; another call learns that. All connections are open by then, because a
/// new one makes all leases of its node be checked, too: that of the background by a release.
#[tokio::test]
async fn leases_are_checked_when_their_slot_moves() {
    let (stub_nodes, nodes) = stub_nodes();
    let (key, slot) = fresh("held");
    let locker = connect(&stub_nodes, LONG).await;
    open_background_to_second(&stub_nodes, &nodes, &locker).await;
    let guard = locker.lock(&key).expire(2 * LONG).renew().acquire().await.unwrap();
    // A renewed lock is looked at after a second, too.
    let looked = Cue::of(["EXISTS"]).about(guard.lease().key().as_str());
    wait::until_async(LIMIT, async || stub_nodes.count(0, &looked) > 0).await;
    // That look is over once the background has released a lock of the same node: it has one connection there.
    let (behind, _) = fresh("behind");
    let released = locker.lock(&behind).acquire().await.unwrap();
    let (name, first) = (released.lease().key().clone(), nodes.servers()[0].admin());
    assert!(first.get(name.as_str()).is_some());
    drop(released);
    wait::until_async(LIMIT, async || first.get(name.as_str()).is_none()).await;
    stub_nodes.assign([slot], 1);
    let other = locker.lock(format!("{{{key}}}:other")).acquire().await.unwrap();
    // It is not renewed before a test that hangs has failed.
    wait::ends(guard.lease().lost()).await;
    other.release().await.unwrap();
}

/// Goal: a check that is asked for while an earlier one is under way, which finds the lock at the node that was left.
/// Method: as above, and the background connects to the node of the lock for the look after a second, and checks it over
/// that connection; that check is held back until the slot has moved.
#[tokio::test]
async fn a_check_under_way_replaces_no_later_one() {
    let (stub_nodes, nodes) = stub_nodes();
    let (key, slot) = fresh("checked");
    let locker = connect(&stub_nodes, LONG).await;
    open_background_to_second(&stub_nodes, &nodes, &locker).await;
    let guard = locker.lock(&key).expire(2 * LONG).renew().acquire().await.unwrap();
    let check = Hold::default();
    let about = Cue::of(["EVALSHA"]).about(guard.lease().key().as_str()).times(1);
    stub_nodes.answer(0, about, Answer::Held(check.clone()));
    check.wait_held(LIMIT).await;
    stub_nodes.assign([slot], 1);
    let other = locker.lock(format!("{{{key}}}:other")).acquire().await.unwrap();
    check.end();
    wait::ends(guard.lease().lost()).await;
    other.release().await.unwrap();
}

/// By a release there, the background is connected to the second node.
async fn open_background_to_second(stub_nodes: &StubNodes, nodes: &Nodes, locker: &Locker) {
    let (released, slot) = fresh("released");
    stub_nodes.assign([slot], 1);
    drop(locker.lock(&released).acquire().await.unwrap());
    let admin = nodes.servers()[1].admin();
    wait::until_async(LIMIT, async || admin.get(&released).is_none()).await;
}

/// Goal: a lock that is lost while it is acquired by commands of one key each is not granted.
/// Method: its slot moves, and the last look at the lock, which is at the next node already, is held back until someone
/// has deleted it.
#[tokio::test]
async fn a_lock_lost_between_set_and_get_is_not_granted() {
    let mut scene = Scene::begin(LONG).await;
    Place::AskedSet.prepare(&mut scene).await;
    let (look, hold) = (Cue::of(["GET"]).about(&scene.key).times(1), Hold::default());
    scene.stub_nodes.answer(1, look, Answer::Held(hold.clone()));
    let lost = async {
        hold.wait_held(LIMIT).await;
        let admin = scene.admin(1);
        assert!(admin.get(&scene.key).is_some(), "the lock was set");
        admin.del(&scene.key);
        hold.end();
    };
    let (token, ()) = tokio::join!(scene.verbs.acquire(&scene.attempt), lost);
    assert_eq!(token.unwrap(), None);
    scene.is_clean().await;
}

/// Goal: a body starts with the turn of a node that was left before its call heard of it, while another process has the
/// lock at the next node.
/// Method: the call is polled by hand. Its turn comes with the answer to a query, and before the next poll the node
/// has no slots any more.
#[tokio::test]
async fn a_turn_of_a_server_that_was_left_is_not_used() {
    let (stub_nodes, nodes) = stub_nodes();
    let (key, _) = fresh("turn");
    let locker = connect_as("left-with-a-turn", &stub_nodes).await;
    let [from, to] = nodes.servers().each_ref().map(Server::admin);
    from.set(&key, "another");
    let query = Hold::default();
    stub_nodes.answer(0, Cue::of(["EVALSHA"]).about(&key).times(1), Answer::Held(query.clone()));
    let mut call = Box::pin(locker.lock(&key).wait(LONG).acquire());
    tokio::select! {
        _ = &mut call => panic!("another process has the lock"),
        () = query.wait_held(LIMIT) => {}
    }
    let by_hand = ByHand::default();
    assert!(by_hand.poll(call.as_mut()).is_pending());
    from.del(&key);
    query.end();
    by_hand.woken().await;
    let connections = || connections_of("left-with-a-turn", &from);
    let guard = taken_elsewhere(&stub_nodes, &locker, &key, || connections() == 0).await;
    assert!(by_hand.poll(call.as_mut()).is_pending(), "another process has the lock");
    let queue = ["LLEN", &format!("lockable:queue:{{{key}}}")];
    wait::until_async(LIMIT, async || to.command::<usize>(&queue) == 1).await;
    let token = guard.lease().fencing_token();
    guard.release().await.unwrap();
    let turn = wait::ends(call).await.unwrap();
    assert!(turn.lease().fencing_token() > token, "{} after {token}", turn.lease().fencing_token());
    turn.release().await.unwrap();
    from.del(&key);
}

/// The same of a call that does not wait.
#[tokio::test]
async fn a_try_of_a_server_that_was_left_is_repeated() {
    let (stub_nodes, nodes) = stub_nodes();
    let (key, _) = fresh("try");
    let locker = connect_as("left-with-a-try", &stub_nodes).await;
    let (set, from) = (Hold::default(), nodes.servers()[0].admin());
    // The background has a connection, too.
    drop(locker.lock(&key).try_acquire().await.unwrap());
    wait::until_async(LIMIT, async || from.get(&key).is_none()).await;
    stub_nodes.answer(0, Cue::of(["SET"]).about(&key).times(1), Answer::Held(set.clone()));
    let mut call = Box::pin(locker.lock(&key).try_acquire());
    tokio::select! {
        _ = &mut call => panic!("the answer is held back"),
        () = set.wait_held(LIMIT) => {}
    }
    let by_hand = ByHand::default();
    assert!(by_hand.poll(call.as_mut()).is_pending());
    set.end();
    by_hand.woken().await;
    let connections = || connections_of("left-with-a-try", &from);
    assert!(connections() > 1);
    // The call has its own until it is polled.
    let guard = taken_elsewhere(&stub_nodes, &locker, &key, || connections() == 1).await;
    assert!(by_hand.poll(call.as_mut()).is_pending(), "the next node is asked");
    assert!(wait::ends(call).await.unwrap_err().is_busy(), "another process has the lock");
    guard.release().await.unwrap();
    from.del(&key);
}

/// All slots move to the next node without their data. Another process has the lock there, and the locker has left the
/// first one.
async fn taken_elsewhere(
    stub_nodes: &StubNodes,
    locker: &Locker,
    key: &str,
    is_left: impl Fn() -> bool,
) -> LockGuard {
    stub_nodes.assign(0..SLOTS, 1);
    let guard = connect(stub_nodes, LONG).await.lock(key).try_acquire().await.unwrap();
    locker.lock(format!("{{{key}}}:other")).run(async {}).await.unwrap();
    wait::until_async(LIMIT, async || is_left()).await;
    guard
}

/// Goal: a request that waits for the answer of a node that has no slots any more.
#[tokio::test]
async fn what_a_left_node_was_asked_is_asked_elsewhere() {
    // Other nodes are asked after a quarter of it.
    const DEADLINE: Duration = Duration::from_secs(5);
    let mut scene = Scene::begin(DEADLINE).await;
    scene.verbs.inspect(&scene.key).await.unwrap();
    scene.stub_nodes.answer(0, Cue::of(["SET"]).about(&scene.key), Answer::Silence);
    let asked = scene.verbs.acquire(&scene.attempt);
    let moved = async {
        let asked = Cue::of(["SET"]).about(&scene.key);
        wait::until_async(LIMIT, async || scene.stub_nodes.count(0, &asked) > 0).await;
        scene.stub_nodes.assign(0..SLOTS, 1);
    };
    let both = async { tokio::join!(asked, moved) };
    let (token, ()) = wait::ends(both).await;
    scene.token = token.unwrap().expect("the other node has no such lock");
    assert!(scene.admin(1).get(&scene.key).is_some());
    scene.verbs.release(&scene.attempt, None, Duration::ZERO).await.unwrap();
}

/// A script that finds its keys at two nodes is followed by one for the lock alone, which does no less for it.
#[tokio::test]
async fn a_lock_is_released_without_its_queue_while_its_slot_moves() {
    let scene = Scene::begin(LONG).await;
    let attempt = scene.verbs.attempt_of_try(&scene.key, LONG, None).unwrap();
    let (admin, owner) = (scene.admin(0), attempt.owner().to_owned());
    for (keep, left) in [(Duration::ZERO, None), (LONG, Some(format!("~{owner}")))] {
        scene.verbs.acquire(&attempt).await.unwrap().expect("no one has the lock");
        // A waiter has marked it.
        admin.set(&scene.key, &format!("+{owner}"));
        let release = Cue::of(["EVALSHA", "EVAL"]).about(&scene.key).times(1);
        scene.stub_nodes.answer(0, release, Answer::error("TRYAGAIN the slot moves"));
        scene.verbs.release(&attempt, None, keep).await.unwrap();
        assert_eq!(admin.get(&scene.key), left);
        admin.del(&scene.key);
    }
}

/// An earlier request has kept the lock taken, and its answer was lost: that is no loss.
#[tokio::test]
async fn a_kept_release_that_is_repeated_while_its_slot_moves_is_one() {
    let scene = Scene::begin(LONG).await;
    let admin = scene.admin(0);
    scene.verbs.acquire(&scene.attempt).await.unwrap().expect("no one has the lock");
    for mark in ["~", "=", "="] {
        let release = Cue::of(["EVALSHA", "EVAL"]).about(&scene.key).times(1);
        scene.stub_nodes.answer(0, release, Answer::error("TRYAGAIN the slot moves"));
        let (found, _) = scene.verbs.release(&scene.attempt, None, LONG).await.unwrap();
        assert_eq!(format!("{found:?}"), "Released", "before {mark}");
        // What a waiter writes there.
        admin.set(&scene.key, &format!("{mark}{}", scene.attempt.owner()));
    }
    admin.del(&scene.key);
}

/// The place would be granted the lock a second time.
#[tokio::test]
async fn a_call_that_has_its_lock_while_the_slot_moves_leaves_the_queue() {
    let scene = Scene::begin(LONG).await;
    let (admin, queue) = (scene.admin(0), scene.queue());
    let places = || admin.command::<u64>(&["LLEN", &queue]);
    admin.set(&scene.key, "another");
    scene.verbs.enqueue(&scene.attempt).await.map(drop).unwrap();
    assert_eq!(places(), 1);
    admin.del(&scene.key);
    let enqueue = Cue::of(["EVALSHA", "EVAL"]).about(&scene.key).times(1);
    scene.stub_nodes.answer(0, enqueue, Answer::error("TRYAGAIN the slot moves"));
    scene.verbs.enqueue(&scene.attempt).await.map(drop).unwrap();
    assert_eq!((admin.get(&scene.key).as_deref(), places()), (Some(scene.attempt.owner()), 0));
    scene.verbs.release(&scene.attempt, None, Duration::ZERO).await.unwrap();
}

/// Goal: a lock that is lost while it is acquired by commands of one key each brings a fencing token above that of the next
/// holder.
/// Method: the request that counts it is held back until someone has deleted the lock, and another one has it.
#[tokio::test]
async fn a_token_counted_after_the_loss_of_a_turn_is_no_holders() {
    let scene = Scene::begin(LONG).await;
    let (admin, hold) = (scene.admin(0), Hold::default());
    let count = Cue::of(["EVALSHA", "EVAL"]).about(scene.fence()).times(1);
    scene.stub_nodes.answer(0, count, Answer::Held(hold.clone()));
    let enqueue = Cue::of(["EVALSHA", "EVAL"]).about(scene.queue());
    scene.stub_nodes.answer(0, enqueue, Answer::error("TRYAGAIN the slot moves"));
    let next = scene.verbs.attempt(&scene.key, LONG, None).unwrap();
    let lost = async {
        hold.wait_held(LIMIT).await;
        admin.del(&scene.key);
        let token = scene.other.acquire(&next).await.unwrap();
        hold.end();
        token.expect("no one has the lock")
    };
    let (found, token) = tokio::join!(scene.verbs.enqueue(&scene.attempt), lost);
    assert!(matches!(found.unwrap(), Found::Queued(_)), "another one has the lock, with {token}");
    scene.other.release(&next, None, Duration::ZERO).await.unwrap();
}

/// Goal: a call that hears of no grant until it asks, because it was queued by the release of another.
#[tokio::test]
async fn a_call_that_a_release_queues_joins_its_channel() {
    let mut scene = Scene::begin(LONG).await;
    scene.verbs.listen(channel().0);
    let next = scene.verbs.attempt(&scene.key, LONG, None).unwrap();
    let pattern = format!("lockable:grant:{}:*", &next.owner()[..16]);
    let admin = scene.admin(0);
    let joined = || admin.command::<Vec<String>>(&["PUBSUB", "SHARDCHANNELS", &pattern]).len();
    scene.verbs.acquire(&scene.attempt).await.unwrap().expect("no one has the lock");
    assert_eq!(joined(), 0);
    scene.verbs.release(&scene.attempt, Some(&next), Duration::ZERO).await.unwrap();
    wait::until_async(LIMIT, async || joined() == 1).await;
    scene.verbs.release(&next, None, Duration::ZERO).await.unwrap();
}

/// The request of a call that has a permit already is repeated while the slot moves.
#[tokio::test]
async fn a_repeated_request_for_a_permit_takes_no_other() {
    let scene = Scene::begin(LONG).await;
    let (admin, family) = (scene.admin(0), format!("{{{}}}", scene.key));
    let (first, second) = (format!("{family}#1"), format!("{family}#2"));
    let attempt = scene.verbs.attempt_for_permit(&family, 2, LONG).unwrap();
    admin.set(&first, "another");
    scene.verbs.acquire(&attempt).await.unwrap().expect("the second is free");
    admin.del(&first);
    let take = Cue::of(["EVALSHA", "EVAL"]).about(&first).times(1);
    scene.stub_nodes.answer(0, take, Answer::error("TRYAGAIN the slot moves"));
    scene.verbs.acquire(&attempt).await.unwrap().expect("the second is its own");
    assert_eq!((admin.get(&first), admin.get(&second).as_deref()), (None, Some(attempt.owner())));
    scene.verbs.release(&attempt, None, Duration::ZERO).await.unwrap();
}

/// Goal: a slot that has moved is hardly the only one, so the nodes are asked which others have.
/// Method: no call needs to know it.
#[tokio::test]
async fn a_slot_that_moved_has_the_nodes_asked_for_the_others() {
    let (stub_nodes, _nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let (key, slot) = fresh("moved");
    let run = async || locker.lock(&key).try_run(async {}).await.unwrap();
    run().await;
    let before = maps(&stub_nodes);
    stub_nodes.assign([slot], 1);
    run().await;
    wait::until_async(LIMIT, async || maps(&stub_nodes) > before).await;
}

/// Goal: the end of a subscription may be the first sign of a failover, so the nodes are asked who has which slots.
/// Method: the connection ends that subscribes, and no other.
#[tokio::test]
async fn a_subscription_that_breaks_has_the_nodes_asked() {
    let (stub_nodes, nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let (key, _) = fresh("unsubscribed");
    locker.lock(&key).try_run(async {}).await.unwrap();
    let admin = nodes.servers()[0].admin();
    admin.set(&key, "another");
    let before = maps(&stub_nodes);
    stub_nodes.answer(0, Cue::of(["SSUBSCRIBE"]).times(1), Answer::BreakBefore);
    let call = tokio::spawn(locker.lock(&key).wait(LONG).acquire());
    wait::until_async(LIMIT, async || maps(&stub_nodes) > before).await;
    is_dropped(call, &admin, &key).await;
}

/// Goal: a node at which no connection for channels can be opened is not connected to by each call that waits there.
/// Method: it refuses the version of the protocol that such a connection needs. Each call is too short to wait for
/// more than that.
#[tokio::test]
async fn a_node_without_channels_is_not_connected_to_by_each_call() {
    const CALLS: usize = 50;
    let (stub_nodes, nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let (key, _) = fresh("refused");
    let version = Cue::of(["HELLO"]).about("3");
    stub_nodes.answer(0, version.clone(), Answer::error("NOPROTO unsupported protocol version"));
    locker.lock(&key).try_run(async {}).await.unwrap();
    let admin = nodes.servers()[0].admin();
    admin.set(&key, "another");
    let (start, before) = (now(), stub_nodes.count(0, &version));
    for _ in 0..CALLS {
        assert!(locker.lock(&key).wait(SHORT).acquire().await.is_err());
    }
    let opened = stub_nodes.count(0, &version) - before;
    // The pauses between them grow to a second.
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap();
    assert!(opened <= 8 + seconds, "{opened} connections in {seconds} s");
    let queue = ["LLEN", &format!("lockable:queue:{{{key}}}")];
    wait::until_async(LIMIT, async || admin.command::<usize>(&queue) == 0).await;
    admin.del(&key);
}

/// Goal: a node that was cut off says that the cluster is down for ever, and who only renews hears nothing else.
#[tokio::test]
async fn a_renewal_leaves_a_node_that_was_cut_off() {
    let mut scene = Scene::begin(LONG).await;
    scene.token = scene.verbs.acquire(&scene.attempt).await.unwrap().unwrap();
    scene.move_slot();
    let about = Cue::of(["EVALSHA", "EVAL"]).about(&scene.key);
    scene.stub_nodes.answer(0, about, Answer::error("CLUSTERDOWN The cluster is down"));
    let renewed = async || {
        let renewed = scene.verbs.renew(&[(scene.attempt.clone(), Some(LONG))]).await;
        renewed.is_ok_and(|renewed| format!("{renewed:?}") == "[Held]")
    };
    wait::until_async(LIMIT, renewed).await;
    scene.verbs.release(&scene.attempt, None, Duration::ZERO).await.unwrap();
    scene.is_clean().await;
}

/// The lock was set, and its fencing token was not counted: the call has an error, and the lock no holder.
#[tokio::test]
async fn a_lock_without_a_token_is_released() {
    let (stub_nodes, nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let (key, _) = fresh("uncounted");
    let fence = fence_counter(&key).unwrap();
    let refused = Answer::error("NOREPLICAS Not enough good replicas to write.");
    stub_nodes.answer(0, Cue::of(["EVALSHA"]).about(fence).times(1), refused);
    let error = locker.lock(&key).try_acquire().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("NOREPLICAS"), "{error}");
    let admin = nodes.servers()[0].admin();
    wait::until_async(LIMIT, async || admin.get(&key).is_none()).await;
}

/// Goal: a connection that hangs keeps no call for longer than its deadline, and no later call.
#[tokio::test]
async fn a_silent_connection_is_replaced() {
    let (stub_nodes, _nodes) = stub_nodes();
    let locker = connect(&stub_nodes, COMMAND).await;
    let (key, _) = fresh("silent");
    let silent = Cue::of(["SET"]).about(&key).times(1);
    stub_nodes.answer(0, silent, Answer::Silence);
    let error = wait::ends(locker.lock(&key).try_acquire()).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let granted = async || locker.lock(&key).try_acquire().await.is_ok();
    wait::until_async(LIMIT, granted).await;
}

/// Goal: no place in a queue is left of a call that was dropped while its process subscribed: the lock would be handed to
/// no one.
/// Method: the subscription is held back until the call is dropped, and another one waits for it too. When that has left
/// its place, the queue is empty.
#[tokio::test]
async fn a_call_that_is_dropped_while_it_subscribes_is_not_queued() {
    let (stub_nodes, nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let (key, _) = fresh("dropped");
    let admin = nodes.servers()[0].admin();
    admin.set(&key, "another");
    let subscription = Hold::default();
    let subscribe = Cue::of(["SSUBSCRIBE"]).times(1);
    stub_nodes.answer(0, subscribe, Answer::Held(subscription.clone()));
    let call = || tokio::spawn(locker.lock(&key).wait(LONG).acquire());
    let dropped = call();
    subscription.wait_held(LIMIT).await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    let other = call();
    subscription.end();
    let queue = ["LLEN", &format!("lockable:queue:{{{key}}}")];
    let places = || admin.command::<usize>(&queue);
    wait::until_async(LIMIT, async || places() > 0).await;
    other.abort();
    wait::until_async(LIMIT, async || places() == 0).await;
    admin.del(&key);
}

/// Nothing else is sent there that would show a node which hangs.
#[tokio::test]
async fn a_silent_subscription_to_a_node_is_asked_whether_it_lives() {
    let (stub_nodes, nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let (key, _) = fresh("listened");
    let admin = nodes.servers()[0].admin();
    admin.set(&key, "another");
    let call = tokio::spawn(locker.lock(&key).wait(LONG).acquire());
    let ping = Cue::of(["PING"]);
    wait::until_async(LIMIT, async || stub_nodes.count(0, &ping) > 0).await;
    is_dropped(call, &admin, &key).await;
}

/// Goal: a lease whose slot moves to a node that hangs costs no other lease of its batch.
/// Method: both are due at the same time. The node that has them sends one on, to a node that is silent.
#[tokio::test]
async fn a_renewal_in_a_moving_slot_delays_no_other() {
    const LEASE: Duration = Duration::from_secs(4);
    let (stub_nodes, _nodes) = stub_nodes();
    let locker = connect(&stub_nodes, LONG).await;
    let ((moving, slot), (other, _)) = (fresh("moving"), fresh("other"));
    let hold = async |key| locker.lock(key).expire(LEASE).renew().acquire().await.unwrap();
    let guards = [hold(&*moving).await, hold(&*other).await];
    let script = Cue::of(["EVALSHA", "EVAL"]).about(&moving);
    stub_nodes.answer(
        0,
        script.clone(),
        Answer::error(format!("ASK {slot} {}", stub_nodes.addr(1))),
    );
    stub_nodes.answer(1, script, Answer::Silence);
    let [moving, other] = guards;
    assert!(wait::ends(moving.lease().lost()).await.is_lost());
    for _ in 0..2 {
        renewed(&other).await;
    }
    assert!(other.lease().is_held());
    stub_nodes.reset();
    other.release().await.unwrap();
}

/// Goal: no connection is left of a node that has no slots any more, however often that happens.
/// Method: all slots move from one node to the other, and back. At each the lock is renewed, and handed off.
#[tokio::test]
async fn slots_that_move_again_and_again_leave_no_connection() {
    const NAME: &str = "moves-again";
    let (stub_nodes, nodes) = stub_nodes();
    let locker = connect_as(NAME, &stub_nodes).await;
    let connections = || {
        let nodes = nodes.servers().iter();
        nodes.map(|node| connections_of(NAME, &node.admin())).sum::<usize>()
    };
    let mut first = usize::MAX;
    for round in 0..6 {
        stub_nodes.assign(0..SLOTS, round % 2);
        // A node that was left keeps what a late request has done there.
        let (key, _) = fresh("again");
        let guard = locker.lock(&key).expire(2 * LONG).renew().acquire().await.unwrap();
        guard.lease().extend(LONG).await.unwrap();
        let next = tokio::spawn(locker.lock(&key).wait(LONG).fair().acquire());
        let queue = ["LLEN", &format!("lockable:queue:{{{key}}}")];
        let admin = nodes.servers()[round % 2].admin();
        wait::until_async(LIMIT, async || admin.command::<usize>(&queue) == 1).await;
        guard.release().await.unwrap();
        next.await.unwrap().unwrap().release().await.unwrap();
        // The background ends what is left.
        wait::until_async(LIMIT, async || connections() <= first).await;
        first = first.min(connections());
    }
}

fn stub_nodes() -> (StubNodes, Arc<Nodes>) {
    let nodes = Nodes::shared();
    (StubNodes::open(nodes.servers()), nodes)
}

/// How often the nodes were asked who has which slots.
fn maps(stub_nodes: &StubNodes) -> usize {
    let query = Cue::of(["CLUSTER SLOTS"]);
    stub_nodes.count(0, &query) + stub_nodes.count(1, &query)
}

/// Ends a call that waits, and leaves nothing behind.
async fn is_dropped(call: JoinHandle<Result<LockGuard, LockError>>, admin: &Admin, key: &str) {
    call.abort();
    let queue = ["LLEN", &format!("lockable:queue:{{{key}}}")];
    wait::until_async(LIMIT, async || admin.command::<usize>(&queue) == 0).await;
    admin.del(key);
}

async fn connect(stub_nodes: &StubNodes, command: Duration) -> Locker {
    ample(&stub_nodes.url()).command_deadline(command).prefix("").connect().await.unwrap()
}

/// The servers list its connections by this name.
async fn connect_as(name: &str, stub_nodes: &StubNodes) -> Locker {
    ample(&stub_nodes.url()).service_name(name).prefix("").connect().await.unwrap()
}

/// How many connections of that name a node has.
fn connections_of(name: &str, node: &Admin) -> usize {
    node.command::<String>(&["CLIENT", "LIST"]).matches(name).count()
}
