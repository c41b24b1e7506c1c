//! Sentinels that do not answer, or answer what is not true any more.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::sections::{is_clean, renewed};
use lockable_tests::{Answer, Cue, Proxy, Sentinels, Server, StubNodes, wait};

use crate::support::{KEY, LIMIT, LONG, ample, connect_ample, patient};

/// It could answer for half of the connect deadline, before which a test that hangs has failed.
#[tokio::test]
async fn a_frozen_sentinel_hardly_delays_a_connection() {
    let group = steady();
    for frozen in group.sentinels() {
        frozen.pause();
        hold(&wait::ends(connect_ample(&group.url())).await).await;
        frozen.resume();
    }
    // Without a majority, the others are waited for only a little longer.
    group.sentinels().iter().skip(1).for_each(Server::pause);
    hold(&wait::ends(connect_ample(&group.url())).await).await;
    group.sentinels().iter().skip(1).for_each(Server::resume);
    is_clean(group.primary()).await;
}

#[tokio::test]
async fn connections_outlive_all_sentinels() {
    let group = steady();
    let server = group.primary();
    let locker = connect_ample(&group.url()).await;
    let guard = locker.lock("renewed").expire(LEASE).renew().acquire().await.unwrap();
    renewed(&guard).await;
    group.sentinels().iter().for_each(Server::kill);
    for _ in 0..2 {
        renewed(&guard).await;
    }
    hold(&locker).await;
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    is_clean(server).await;
}

#[tokio::test]
async fn a_connection_error_says_what_each_sentinel_did() {
    let group = steady();
    let [dead, frozen, other] = group.sentinels() else { panic!("there are three") };
    dead.kill();
    frozen.pause();
    other.admin().command::<()>(&["SENTINEL", "REMOVE", Sentinels::NAME]);
    let starts = [
        format!("{0}: no TCP connection ({0}: Connection refused", dead.addr()),
        format!("{}: no answer within", frozen.addr()),
        "the others watch no primary of that name".to_owned(),
    ];
    let error = patient(&group.url()).connect_deadline(AWAITED).connect().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let text = error.message();
    let reasons = text.split_once("\"mm\": ").map_or("", |(_, reasons)| reasons);
    let reasons: Vec<_> = reasons.split("; ").collect();
    let are_these = || reasons.iter().zip(&starts).all(|(it, start)| it.starts_with(start));
    assert!(reasons.len() == starts.len() && are_these(), "{text}");
}

/// Goal: a failover is found without its announcement.
/// Method: nothing that the Sentinels publish arrives; but the connection breaks, and they are asked.
#[tokio::test]
async fn a_failover_is_found_without_its_announcement() {
    let group = Sentinels::start();
    let stub_nodes = group.stub_nodes();
    let locker = connect_ample(&group.url_through(&stub_nodes)).await;
    hold(&locker).await;
    stub_nodes.iter().for_each(Proxy::hold_messages);
    let mut switches = group.switches();
    let before = group.kill_primary();
    switches.next().await;
    group.set_down_after(LONG);
    let guard = wait::ends(locker.lock("k").acquire()).await.unwrap();
    let after = group.other_than(before);
    assert!(after.admin().get(KEY).is_some());
    guard.release().await.unwrap();
    is_clean(after).await;
}

/// Goal: one Sentinel of three is enough, where the known primary cannot be used.
/// Method: the others are out of reach, and nothing that it publishes arrives.
#[tokio::test]
async fn one_sentinel_leads_away_from_a_dead_primary() {
    let group = Sentinels::start();
    let stub_nodes = group.stub_nodes();
    let locker = connect_ample(&group.url_through(&stub_nodes)).await;
    hold(&locker).await;
    stub_nodes[0].hold_messages();
    for stub_node in &stub_nodes[1..] {
        stub_node.refuse();
        stub_node.cut();
    }
    let mut switches = group.switches();
    let before = group.kill_primary();
    switches.next().await;
    group.set_down_after(LONG);
    let after = group.other_than(before);
    let works = async || locker.lock("k").try_run(async {}).await.is_ok();
    wait::until_async(LIMIT, works).await;
    is_clean(after).await;
}

/// Goal: what Sentinels have answered before a failover was announced leads no one back.
/// Method: their answers are held back over two failovers: the primary that was left last is not believed for a while
/// in any case. The first one does not hear that it was left, and would grant the lock.
#[tokio::test]
async fn an_answer_from_before_a_failover_does_not_count() {
    let group = steady();
    let stub_nodes = group.stub_nodes();
    let locker = connect_ample(&group.url_through(&stub_nodes)).await;
    hold(&locker).await;
    let first = group.primary();
    for stub_node in &stub_nodes {
        stub_node.hold_answers_to("SENTINEL");
    }
    first.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let call = tokio::spawn(locker.lock("k").acquire());
    for stub_node in &stub_nodes {
        stub_node.wait_reply_held(LIMIT).await;
    }
    keep_primary(first);
    group.fail_over();
    let last = group.fail_over();
    // The locker connects there once it has heard of the last one.
    wait::until_async(LIMIT, async || last.admin().command_calls("hello") > 0).await;
    stub_nodes.iter().for_each(Proxy::release_answers);
    let guard = call.await.unwrap().unwrap();
    let grants = [first, last].map(|server| server.admin().get(KEY).is_some());
    assert_eq!(grants, [false, true]);
    guard.release().await.unwrap();
    is_clean(last).await;
}

/// Goal: a failover is found that was announced while no one listened, although the old primary still answers, and no
/// call asks.
/// Method: the locker is cut off from the Sentinels meanwhile. Once it is not, its lease is checked at the new primary.
#[tokio::test]
async fn a_failover_in_the_silence_of_a_watch_is_found() {
    let group = steady();
    let stub_nodes = group.stub_nodes();
    let locker = connect_ample(&group.url_through(&stub_nodes)).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let before = group.primary();
    keep_primary(before);
    for stub_node in &stub_nodes {
        stub_node.refuse();
        stub_node.cut();
    }
    let mut switches = group.switches();
    let after = group.fail_over().admin();
    // The Sentinel that led it names the new primary earlier than it announces it.
    for _ in group.sentinels() {
        switches.next().await;
    }
    assert_eq!(after.command_calls("hello"), 0);
    stub_nodes.iter().for_each(Proxy::accept);
    wait::until_async(LIMIT, async || after.command_calls("hello") > 0).await;
    drop(guard);
}

/// Goal: a failover is followed although the locker did not hear of the one before it.
/// Method: its Sentinel has named a third server, which works on. So the announcement leads from a server that the
/// locker does not know as the primary, and counts because the Sentinel repeats it.
#[tokio::test]
async fn an_announcement_that_its_sentinel_repeats_counts() {
    let (group, third) = (steady(), Server::start());
    let (stub_node, query) =
        (StubNodes::before(&group.sentinels()[0]), Cue::of(["SENTINEL GET-MASTER-ADDR-BY-NAME"]));
    stub_node.answer(0, query.clone(), Answer::Bytes(address(&third)));
    let url = format!("redis-sentinel://{}/{}", stub_node.addr(0), Sentinels::NAME);
    let locker = connect_ample(&url).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    assert!(third.admin().get(KEY).is_some());
    // It is asked once more when the subscription is open.
    wait::until_async(LIMIT, async || stub_node.count(0, &query) > 1).await;
    stub_node.take_back();
    let after = group.fail_over().admin();
    wait::until_async(LIMIT, async || after.command_calls("hello") > 0).await;
    drop(guard);
}

/// Goal: one Sentinel that has missed a failover leads no one astray.
/// Method: each in turn names a server that is no replica and accepts everything; so nothing but the votes of the
/// others keeps a locker away from it.
#[tokio::test]
async fn an_outdated_minority_of_sentinels_does_not_decide() {
    let (group, astray) = (steady(), Server::start());
    let established = connect_ample(&group.url()).await;
    let server = group.primary();
    for outdated in group.sentinels() {
        monitor(outdated, &astray);
        for _ in 0..5 {
            hold(&connect_ample(&group.url()).await).await;
            server.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
            let guard = established.lock("k").acquire().await.unwrap();
            assert!(server.admin().get(KEY).is_some());
            guard.release().await.unwrap();
        }
        monitor(outdated, server);
    }
    assert_eq!(astray.admin().keys("*"), [""; 0]);
    is_clean(server).await;
}

/// Which one of two is right depends on nothing that a locker could know.
#[tokio::test]
async fn a_tie_of_sentinels_names_no_primary() {
    let (group, astray) = (steady(), Server::start());
    let [one, two, _] = group.sentinels() else { panic!("there are three") };
    let server = group.primary();
    monitor(one, &astray);
    let url = format!("redis-sentinel://{},{}/{}", one.addr(), two.addr(), Sentinels::NAME);
    let error = ample(&url).connect().await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_unavailable() && text.contains("different primaries"), "{text}");
    for named in [server, &astray] {
        assert!(text.contains(&named.addr().to_string()), "{text}");
    }
    assert_eq!(astray.admin().keys("*"), [""; 0]);
}

/// A group whose primary no Sentinel takes for down, however slow the machine is.
fn steady() -> Sentinels {
    Sentinels::builder().down_after(LONG).start()
}

/// This primary does not hear that another one was elected: the Sentinels neither demote nor promote a server of which
/// they know nothing.
fn keep_primary(server: &Server) {
    server.admin().command::<()>(&["ACL", "SETUSER", "default", "-info", "-replicaof", "-slaveof"]);
}

/// What a Sentinel answers that names that server.
fn address(server: &Server) -> String {
    let (host, port) = (server.addr().ip().to_string(), server.addr().port().to_string());
    format!("*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n", host.len(), port.len())
}

/// From now on the Sentinel names that server.
fn monitor(sentinel: &Server, primary: &Server) {
    let (admin, port) = (sentinel.admin(), primary.addr().port().to_string());
    admin.command::<()>(&["SENTINEL", "REMOVE", Sentinels::NAME]);
    admin.command::<()>(&["SENTINEL", "MONITOR", Sentinels::NAME, "127.0.0.1", &port, "2"]);
}

async fn hold(locker: &Locker) {
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
}

/// It is renewed after a third of it: the rest is for a slow machine.
const LEASE: Duration = Duration::from_secs(9);

/// A Sentinel has half of it to answer: one takes all of that, and the others are in time.
const AWAITED: Duration = Duration::from_secs(8);
