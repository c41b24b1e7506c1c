//! Fencing tokens rise, also over servers that come back without the latest grants.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Admin, Proxy, Server, wait};
use rstest::rstest;

use super::{assert_fenced, stored, texts, write};
use crate::support::{FENCE, KEY, LIMIT, connect_ample, second_request_held, server_and_proxy};

/// Also from a fence counter that has not counted the latest grants, as the server has stored it before them.
#[rstest]
#[case::without_data(false)]
#[case::with_older_data(true)]
#[tokio::test]
async fn tokens_rise_over_a_restart(#[case] saves: bool) {
    let server = Server::start();
    let locker = connect_ample(&server.url()).await;
    grants(&locker, 1).await;
    if saves {
        server.admin().command::<()>(&["SAVE"]);
    }
    let mut latest = grants(&locker, 50).await;
    for _ in 0..3 {
        server.restart();
        assert_eq!(server.admin().get(FENCE).is_some(), saves);
        for locker in [&locker, &connect_ample(&server.url()).await] {
            latest = rises(locker, latest).await;
        }
    }
}

/// Goal: tokens that come from the server's clock, whatever a client takes it for.
/// Method: one locker's link is slow while it connects, or slow when it asks; the data are lost
/// between its grant and another's, in both orders.
#[tokio::test]
async fn tokens_rise_over_a_data_loss_on_slow_links() {
    const SLOW: Duration = Duration::from_millis(60);
    const FAST: Duration = Duration::ZERO;
    let (server, proxy) = server_and_proxy();
    let near = connect_ample(&server.url()).await;
    for (connecting, asking) in [(SLOW, FAST), (FAST, SLOW), (SLOW, SLOW)] {
        proxy.delay(connecting);
        let far = connect_ample(&proxy.url()).await;
        proxy.delay(asking);
        let mut latest = 0;
        for locker in [&far, &near, &near, &far, &near] {
            latest = rises(locker, latest).await;
            server.admin().flush();
        }
    }
}

/// Goal: the time that counts is that at which the server runs a request, not that of its sending.
/// Method: a request is held back while another locker's grant comes and goes, and its fence counter with it.
#[tokio::test]
async fn tokens_rise_over_a_data_loss_during_a_request() {
    let (server, proxy) = server_and_proxy();
    let (near, far) = (connect_ample(&server.url()).await, connect_ample(&proxy.url()).await);
    proxy.hold_requests();
    let meanwhile = async {
        proxy.wait_held(LIMIT).await;
        let latest = grants(&near, 1).await;
        server.admin().flush();
        proxy.release_requests();
        latest
    };
    let (late, latest) = tokio::join!(far.lock("k").acquire(), meanwhile);
    let late = token(&late.unwrap());
    assert!(late > latest, "{late} after {latest}");
}

/// Also where the replica has never heard of the key.
#[rstest]
#[case::of_a_known_key(10)]
#[case::of_a_new_key(0)]
#[tokio::test]
async fn tokens_rise_over_a_failover_that_loses_the_grant(#[case] received: usize) {
    let pair = Pair::start();
    let locker = connect_ample(&pair.url()).await;
    grants(&locker, received).await;
    let mut latest = pair.lose(async || grants(&locker, 10).await).await;
    assert_eq!(pair.replica.admin().get(FENCE).is_some(), received > 0);
    for locker in [&locker, &connect_ample(&pair.url()).await] {
        latest = rises(locker, latest).await;
    }
}

/// Goal: tokens rise also where a proxy keeps the connection open over a failover.
/// Method: the server itself forgets the latest counts, as a replica does that did not receive them.
#[tokio::test]
async fn tokens_rise_over_a_failover_that_breaks_no_connection() {
    let (server, proxy) = server_and_proxy();
    let (locker, admin) = (connect_ample(&proxy.url()).await, server.admin());
    for missed in [1, 10] {
        grants(&locker, 1).await;
        let received = admin.get(FENCE).unwrap();
        let old = grants(&locker, missed).await;
        admin.command::<()>(&["SET", FENCE, &received, "KEEPTTL"]);
        rises(&locker, old).await;
    }
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn two_holders_after_a_failover_cannot_overwrite_each_other() {
    let pair = Pair::start();
    let locker = connect_ample(&pair.url()).await;
    grants(&locker, 10).await;
    let old = pair.lose(async || locker.lock("k").acquire().await.unwrap()).await;
    let new = connect_ample(&pair.url()).await.lock("k").try_acquire().await.unwrap();
    assert!(old.lease().is_held() && new.lease().is_held(), "this is what fencing is for");
    let admin = Admin::connect(&pair.url());
    write(&admin, token(&new), "newer").unwrap();
    assert_fenced(write(&admin, token(&old), "late"), token(&old), token(&new));
    assert_eq!(stored(&admin), texts("newer", token(&new)));
}

/// Goal: a holder that seeds the fence counter after it has lost its lease does not lower it.
/// Method: it finds its fence counter gone, and its second request is held back while others are granted.
#[tokio::test]
async fn a_fence_counter_seeded_too_late_does_not_sink() {
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&server.url()).await;
    grants(&locker, 1).await;
    let loser = connect_ample(&proxy.url()).await;
    grants(&loser, 1).await;
    server.admin().del(FENCE);
    proxy.hold_replies();
    let meanwhile = async {
        second_request_held(&proxy).await;
        server.admin().del(KEY);
        // Above the time, so that a fence counter that is seeded with the time again would show.
        let ahead = grants(&connect_ample(&server.url()).await, 3).await + 3_600_000_000;
        server.admin().command::<()>(&["SET", FENCE, &ahead.to_string(), "KEEPTTL"]);
        proxy.release_requests();
        ahead
    };
    let (late, newest) = tokio::join!(loser.lock("k").try_acquire(), meanwhile);
    assert!(late.unwrap_err().is_busy(), "it has lost the lock");
    rises(&locker, newest).await;
}

/// Goal: a holder whose lock was lost before its token was counted has no newer one than the next.
/// Method: it finds its fence counter gone, and while its second request is held back the data are lost again.
#[tokio::test]
async fn a_token_counted_after_the_loss_is_no_holders() {
    let (server, proxy) = server_and_proxy();
    let (near, far) = (connect_ample(&server.url()).await, connect_ample(&proxy.url()).await);
    grants(&far, 1).await;
    server.admin().flush();
    proxy.hold_replies();
    let meanwhile = async {
        second_request_held(&proxy).await;
        server.admin().flush();
        let guard = near.lock("k").try_acquire().await.unwrap();
        proxy.release_requests();
        guard
    };
    let (old, new) = tokio::join!(far.lock("k").try_acquire(), meanwhile);
    assert!(old.unwrap_err().is_busy());
    new.release().await.unwrap();
}

/// The token of the last one of `count` grants, of which none is held any more.
async fn grants(locker: &Locker, count: usize) -> u64 {
    let mut latest = 0;
    for _ in 0..count {
        let guard = locker.lock("k").acquire().await.unwrap();
        assert!(token(&guard) > latest, "{} after {latest}", token(&guard));
        latest = token(&guard);
        guard.release().await.unwrap();
    }
    latest
}

/// The token of one more grant, which is newer.
async fn rises(locker: &Locker, latest: u64) -> u64 {
    let next = grants(locker, 1).await;
    assert!(next > latest, "{next} after {latest}");
    next
}

fn token(guard: &LockGuard) -> u64 {
    guard.lease().fencing_token().into()
}

/// Two servers, of which the second replicates the first, behind one address.
struct Pair {
    primary: Server,
    replica: Server,
    /// What clients connect to.
    stub_node: Proxy,
    /// What the replica hears the primary through.
    link: Proxy,
}

impl Pair {
    fn start() -> Self {
        let (primary, replica) = (Server::start(), Server::start());
        let (stub_node, link) = (Proxy::start(&primary), Proxy::start(&primary));
        replica.admin().follow(link.addr());
        Self { primary, replica, stub_node, link }
    }

    fn url(&self) -> String {
        self.stub_node.url()
    }

    /// Makes the replica the server of all clients, without what `grant` did.
    async fn lose<T>(&self, grant: impl AsyncFnOnce() -> T) -> T {
        let (primary, replica) = (self.primary.admin(), self.replica.admin());
        let state = |admin: &Admin| (admin.get(KEY), admin.get(FENCE));
        wait::until_async(LIMIT, async || state(&primary) == state(&replica)).await;
        self.link.refuse();
        self.link.cut();
        let lost = grant().await;
        assert_ne!(state(&primary), state(&replica), "the grant is not on the replica");
        replica.promote();
        self.stub_node.redirect(&self.replica);
        self.stub_node.cut();
        lost
    }
}
