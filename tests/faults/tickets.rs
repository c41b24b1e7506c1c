//! Tickets whose requests or replies are lost, and that are delivered more than once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker, Ticket};
use lockable_tests::sections::is_clean;
use lockable_tests::{Proxy, Server, long_form, wait};
use tokio::task::JoinSet;
use tracing::Level;

use crate::events;
use crate::support::{KEY, LIMIT, LONG, connect_ample, elapse, freed, impatient};
use crate::waiting::support::{impatient_behind_proxy, random};

async fn redeem(locker: &Locker, ticket: &Ticket) -> Result<LockGuard, LockError> {
    locker.redeem(ticket.clone()).acquire().await
}

/// The server has made the ticket, and no one knows it.
#[tokio::test]
async fn a_ticket_whose_reply_is_swallowed_is_released() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").renew().try_acquire().await.unwrap();
    let lease = guard.lease().clone();
    proxy.hold_open_replies();
    let failed = wait::ends(guard.into_ticket(LONG)).await.unwrap_err();
    assert!(failed.error().is_unavailable(), "{failed}");
    assert!(failed.into_guard().is_none() && !lease.is_held() && !lease.is_lost());
    freed(&server).await;
    proxy.release_replies();
    is_clean(&server).await;
}

/// The first try of its release has no answer.
#[tokio::test]
async fn a_ticket_of_a_silent_server_is_released_later() {
    const LATE: &str = "disLock:ticket:late";
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let request = locker.lock("ticket:late").expire(LONG);
    let guard = request.try_acquire().await.unwrap();
    let unanswered = || events::count(LATE, Level::DEBUG, "outcome=\"unanswered\"");
    events::listen();
    proxy.hold_requests();
    let failed = wait::ends(guard.into_ticket(LONG)).await.unwrap_err();
    assert!(failed.into_guard().is_none());
    wait::until_async(LIMIT, async || unanswered() > 0).await;
    let admin = server.admin();
    assert!(admin.get(LATE).is_some());
    proxy.cut();
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.get(LATE).is_none()).await;
    is_clean(&server).await;
}

/// The request arrives when the lock was released, and when another holder has it.
#[tokio::test]
async fn a_ticket_whose_request_is_late_makes_no_ticket() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").try_acquire().await.unwrap();
    proxy.hold_open_requests();
    let failed = wait::ends(guard.into_ticket(LONG)).await.unwrap_err();
    assert!(failed.into_guard().is_none());
    freed(&server).await;
    let other = connect_ample(&server.url()).await;
    let next = other.lock("k").try_acquire().await.unwrap();
    let admin = server.admin();
    let scripts = || admin.command_calls("eval") + admin.command_calls("evalsha");
    let before = scripts();
    proxy.release_requests();
    wait::until_async(LIMIT, async || scripts() > before).await;
    assert!(next.lease().is_held());
    next.release().await.unwrap();
    assert_eq!(admin.get(KEY), None);
}

/// A guard is not lost to a server that cannot be reached, or that refuses.
#[tokio::test]
async fn a_guard_comes_back_where_the_server_refuses() {
    let (server, _proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").renew().try_acquire().await.unwrap();
    let admin = server.admin();
    admin.command::<()>(&["ACL", "SETUSER", "default", "-set"]);
    let failed = guard.into_ticket(LONG).await.unwrap_err();
    assert!(failed.error().is_unavailable(), "{failed}");
    admin.command::<()>(&["ACL", "SETUSER", "default", "+set"]);
    let guard = failed.into_guard().unwrap();
    assert!(guard.lease().is_held());
    let ticket = guard.into_ticket(LONG).await.unwrap();
    redeem(&locker, &ticket).await.unwrap().release().await.unwrap();
    assert_eq!(admin.get(KEY), None);
}

/// A ticket of this locker, and another one that the proxy lets through while it holds this one's connections.
async fn ticket_and_other(proxy: &Proxy, locker: &Locker, hold: fn(&Proxy)) -> (Ticket, Locker) {
    let guard = locker.lock("k").try_acquire().await.unwrap();
    let ticket = guard.into_ticket(LONG).await.unwrap();
    hold(proxy);
    (ticket, connect_ample(&proxy.url()).await)
}

/// The server has given the lock to a holder that no call knows.
#[tokio::test]
async fn a_redemption_whose_reply_is_swallowed_is_released() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let (ticket, other) = ticket_and_other(&proxy, &locker, Proxy::hold_open_replies).await;
    let error = wait::ends(redeem(&locker, &ticket)).await.unwrap_err();
    assert!(error.is_unavailable() && !error.is_lost(), "{error}");
    freed(&server).await;
    let error = redeem(&other, &ticket).await.unwrap_err();
    assert!(error.is_lost() && !error.is_taken(), "{error}");
    proxy.release_replies();
    is_clean(&server).await;
}

/// The ticket is valid until the request arrives, which finds another holder then.
#[tokio::test]
async fn a_redemption_whose_request_is_late_takes_nothing() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let (ticket, other) = ticket_and_other(&proxy, &locker, Proxy::hold_open_requests).await;
    let error = wait::ends(redeem(&locker, &ticket)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let guard = redeem(&other, &ticket).await.unwrap();
    let admin = server.admin();
    let scripts = || admin.command_calls("eval") + admin.command_calls("evalsha");
    let before = scripts();
    proxy.release_requests();
    wait::until_async(LIMIT, async || scripts() > before).await;
    assert!(redeem(&other, &ticket).await.unwrap_err().is_taken() && guard.lease().is_held());
    guard.release().await.unwrap();
    assert_eq!(admin.get(KEY), None);
}

/// Goal: two holders at once, of which one has redeemed a ticket.
/// Method: each ticket is delivered to two workers, mostly more than once, while connections are cut in the middle of
/// requests; others want the same lock without a ticket. Each holder says so in one place.
#[tokio::test]
async fn duplicates_under_faults_make_no_second_holder() {
    let rounds = long_form(20, 1_000);
    let server = Server::start();
    let proxy = Proxy::start(&server);
    proxy.delay(Duration::from_millis(1));
    let mut lockers = Vec::new();
    for _ in 0..3 {
        lockers.push(impatient(&proxy.url()).connect().await.unwrap());
    }
    let place = Arc::new(Place::default());
    let last = connect_ample(&proxy.url()).await;
    let mut rivals = rivals(&server, &place).await;
    let (mut made, mut redeemed, mut taken, mut unknown) = (0, 0, 0, 0);
    // On a busy machine a cut seldom hits a request.
    while made < rounds || (unknown == 0 && made < 50 * rounds) {
        let (begun, ()) = tokio::join!(begin(&lockers[0], &place), disturb(&proxy));
        let Some(ticket) = begun else { continue };
        made += 1;
        let mut deliveries = JoinSet::new();
        for delivery in 0..2 + random(3) {
            let locker = lockers[1 + usize::from(delivery % 2 == 1)].clone();
            deliveries.spawn(finish(locker, ticket.clone(), Arc::clone(&place)));
        }
        disturb(&proxy).await;
        let mut outcomes = deliveries.join_all().await;
        // Once more where no request has arrived, as a queue does.
        outcomes.push(finish(last.clone(), ticket, Arc::clone(&place)).await);
        let count = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert!(count <= 1, "a ticket was redeemed {count} times");
        redeemed += count;
        for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            taken += usize::from(error.is_taken());
            unknown += usize::from(error.is_unavailable());
        }
    }
    rivals.abort_all();
    while let Some(rival) = rivals.join_next().await {
        assert!(rival.unwrap_err().is_cancelled());
    }
    let (held, newest) = (place.held.load(Ordering::SeqCst), place.newest.load(Ordering::SeqCst));
    println!(
        "{made} tickets, {redeemed} redeemed; {taken} refused as taken, {unknown} without an answer"
    );
    println!("{held} holds, up to the token {newest}");
    assert!(2 * redeemed > made && taken > 0 && unknown > 0);
    freed(&server).await;
    is_clean(&server).await;
}

/// Breaks the connections in one of three ways, in the middle of requests, every other time.
async fn disturb(proxy: &Proxy) {
    elapse(Duration::from_micros(random(6_000))).await;
    match random(6) {
        0 => proxy.cut(),
        1 => proxy.hang_up(),
        2 => proxy.cut_off(),
        _ => {}
    }
}

/// What the lock protects.
#[derive(Default)]
struct Place {
    inside: AtomicUsize,
    /// The newest fencing token.
    newest: AtomicU64,
    held: AtomicUsize,
}

impl Place {
    async fn section(&self, guard: &LockGuard) {
        assert!(guard.lease().is_held());
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
        let token = u64::from(guard.lease().fencing_token());
        assert!(self.newest.fetch_max(token, Ordering::SeqCst) <= token, "an older token");
        elapse(Duration::from_micros(random(500))).await;
        self.held.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.inside.fetch_sub(1, Ordering::SeqCst), 1, "two holders");
    }
}

/// The web request: it begins, and passes the lock on.
async fn begin(locker: &Locker, place: &Place) -> Option<Ticket> {
    let guard = locker.lock("k").wait(LONG).acquire().await.ok()?;
    if !guard.lease().is_held() {
        return None;
    }
    place.section(&guard).await;
    guard.into_ticket(LONG).await.ok()
}

/// The worker: it finishes.
async fn finish(locker: Locker, ticket: Ticket, place: Arc<Place>) -> Result<(), LockError> {
    let guard = redeem(&locker, &ticket).await?;
    place.section(&guard).await;
    // Whether it was released is not always known.
    drop(guard.release().await);
    Ok(())
}

async fn rivals(server: &Server, place: &Arc<Place>) -> JoinSet<()> {
    let mut rivals = JoinSet::new();
    for _ in 0..2 {
        let (locker, place) = (connect_ample(&server.url()).await, Arc::clone(place));
        rivals.spawn(async move {
            loop {
                let guard = locker.lock("k").acquire().await.unwrap();
                place.section(&guard).await;
                guard.release().await.unwrap();
                elapse(Duration::from_micros(random(1_000))).await;
            }
        });
    }
    rivals
}
