//! Locks that are passed on by tickets: acquired here, finished there.

use std::cell::{Cell, RefCell};
use std::mem;
use std::time::Duration;

use lockable_runtime::admin::{Forced, Revoked};
use lockable_runtime::{HolderKind, LockErrorKind, LockGuard, Locker, Ticket};
use lockable_tests::sections::renewed;
use lockable_tests::wait;

use crate::cancellation::at_every_poll;
use crate::fixture::{AMPLE, KEY, LIMIT, NAME, Store, assert_quiet, drained, hold, hold_renewed};

every_backend! { one_thread: [
    a_ticket_is_redeemed_once,
    a_redeemed_lock_carries_the_request_of_its_first_holder,
    a_forged_fencing_token_is_not_believed,
    of_duplicates_at_the_same_moment_exactly_one_wins,
    a_set_is_a_list_of_tickets,
    a_set_that_is_not_held_makes_no_ticket,
    another_store_or_prefix_is_refused_before_anything_is_sent,
    a_guard_comes_back_without_a_ticket,
    a_ticket_given_up_at_any_poll_leaves_nothing,
    a_redemption_given_up_at_any_poll_leaves_nothing,
    a_redeemed_body_runs_under_its_lock,
] and_sentinel: [
    a_ticket_leaves_nothing_in_its_process,
    a_redeemed_hold_has_the_terms_of_its_request,
    a_ticket_after_its_time_is_lost,
    a_message_has_its_work_done_once_on_each_way,
] and_operators: [
    a_permit_keeps_its_number,
    an_operator_sees_and_frees_a_ticket,
    those_who_wait_get_the_lock_after_a_redeemed_hold,
    a_lock_that_was_waited_for_is_passed_on,
] }

async fn ticket(guard: LockGuard) -> Ticket {
    let ticket = guard.into_ticket(AMPLE).await.unwrap();
    // As another process gets it.
    ticket.expose_secret().parse().unwrap()
}

async fn redeem(locker: &Locker, ticket: &Ticket) -> LockGuard {
    locker.redeem(ticket.clone()).acquire().await.unwrap()
}

/// The answer to one that no lock is found for.
async fn is_lost(locker: &Locker, ticket: &Ticket) -> bool {
    let error = locker.redeem(ticket.clone()).acquire().await.unwrap_err();
    assert!(error.is_lost() && error.key() == Some(ticket.key().as_str()), "{error}");
    assert!(error.to_string().contains("not redeemed"), "{error}");
    !error.is_taken()
}

async fn a_ticket_is_redeemed_once(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let token = guard.lease().fencing_token();
    let ticket = ticket(guard).await;
    assert_eq!((ticket.key().as_str(), ticket.fencing_token()), (NAME, token));
    for locker in [&locker, &other] {
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    }
    let guard = redeem(&other, &ticket).await;
    assert_eq!(guard.lease().fencing_token(), token);
    assert!(guard.lease().is_held() && guard.lease().key().as_str() == NAME);
    for locker in [&locker, &other] {
        assert!(!is_lost(locker, &ticket).await && guard.lease().is_held());
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    }
    guard.release().await.unwrap();
    assert_eq!(store.locks(), [""; 0]);
    assert!(is_lost(&locker, &ticket).await);
    let next = hold(&locker).await;
    assert!(next.lease().fencing_token() > token);
    assert!(!is_lost(&other, &ticket).await);
    next.release().await.unwrap();
}

async fn a_redeemed_lock_carries_the_request_of_its_first_holder(store: &Store) {
    use lockable_runtime::RequestId;
    let (locker, other) = (store.locker().await, store.locker().await);
    let of = async |key: &str| {
        let holder = other.inspect(key).await.unwrap().unwrap();
        holder.request_id().map(ToOwned::to_owned)
    };
    let acquire = async || ticket(hold(&locker).await).await;
    for (now, expected) in [(None, "web-7"), (Some("job-8"), "job-8")] {
        let ticket = RequestId::new("web-7").scope(acquire()).await;
        assert_eq!(of(KEY).await.as_deref(), Some("web-7"));
        let guard = match now {
            None => redeem(&other, &ticket).await,
            Some(id) => RequestId::new(id).scope(redeem(&other, &ticket)).await,
        };
        assert_eq!(of(KEY).await.as_deref(), Some(expected));
        guard.release().await.unwrap();
    }
}

/// Goal: who may read a ticket poisons what its fencing token protects: all later holders would be refused there.
async fn a_forged_fencing_token_is_not_believed(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    for forged in [u64::MAX, u64::MAX / 2] {
        let ticket = ticket(hold(&locker).await).await;
        let guard = redeem(&other, &with_token(&ticket, forged)).await;
        let token = guard.lease().fencing_token();
        assert!(token >= ticket.fencing_token() && u64::from(token) < forged, "{token}");
        guard.release().await.unwrap();
        let next = hold(&locker).await;
        assert!(next.lease().fencing_token() > token);
        next.release().await.unwrap();
    }
}

/// The same ticket with another fencing token, and the check sum of that.
fn with_token(ticket: &Ticket, token: u64) -> Ticket {
    let text = ticket.expose_secret();
    let [head, version, _sum, store, _token, rest] =
        text.splitn(6, ':').collect::<Vec<_>>().try_into().expect("these are its parts");
    let parts = format!("{store}:{token}:{rest}");
    // FNV-1a, which anyone can compute.
    let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    let sum = parts.bytes().fold(0xCBF2_9CE4_8422_2325, add);
    format!("{head}:{version}:{sum:016x}:{parts}").parse().unwrap()
}

async fn of_duplicates_at_the_same_moment_exactly_one_wins(store: &Store) {
    let lockers = [store.locker().await, store.locker().await];
    for _ in 0..20 {
        let ticket = ticket(hold(&lockers[0]).await).await;
        let deliver = |number: usize| {
            let (locker, ticket) = (lockers[number % 2].clone(), ticket.clone());
            tokio::spawn(async move { locker.redeem(ticket).acquire().await })
        };
        let (mut guards, mut refused) = (Vec::new(), 0);
        for redeemed in (0..8).map(deliver).collect::<Vec<_>>() {
            match redeemed.await.unwrap() {
                Ok(guard) => guards.push(guard),
                Err(error) => refused += u32::from(error.is_taken()),
            }
        }
        assert_eq!((guards.len(), refused), (1, 7));
        guards.pop().unwrap().release().await.unwrap();
    }
}

async fn a_permit_keeps_its_number(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let permit = |locker: &Locker| locker.lock("k").permits(2).try_acquire();
    let first = permit(&locker).await.unwrap();
    let second = ticket(permit(&locker).await.unwrap()).await;
    assert_eq!(second.key().as_str(), "disLock:{k}#2");
    for locker in [&locker, &other] {
        assert!(permit(locker).await.unwrap_err().is_busy());
    }
    let second = redeem(&other, &second).await;
    assert_eq!(second.lease().key().as_str(), "disLock:{k}#2");
    for locker in [&locker, &other] {
        assert!(permit(locker).await.unwrap_err().is_busy());
    }
    // The waiter is handed this very permit.
    let third = locker.lock("k").permits(2).wait(LIMIT);
    let (third, ()) = tokio::join!(third.acquire(), async {
        let admin = other.admin();
        wait::until_async(wait::HANG, async || !admin.queue("{k}#2").await.unwrap().is_empty())
            .await;
        second.release().await.unwrap();
    });
    let third = third.unwrap();
    assert_eq!(third.lease().key().as_str(), "disLock:{k}#2");
    first.release().await.unwrap();
    third.release().await.unwrap();
}

async fn a_set_is_a_list_of_tickets(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let set = locker.lock_all(["c", "a", "b", "a"]).acquire().await.unwrap();
    let tickets = set.into_tickets(AMPLE).await.unwrap();
    let keys: Vec<_> = tickets.iter().map(|ticket| ticket.key().as_str()).collect();
    assert_eq!(keys, ["disLock:c", "disLock:a", "disLock:b"]);
    assert!(other.lock_all(["a", "c"]).try_acquire().await.unwrap_err().is_busy());
    for ticket in &tickets {
        redeem(&other, ticket).await.release().await.unwrap();
    }
}

async fn a_set_that_is_not_held_makes_no_ticket(store: &Store) {
    let locker = store.locker().await;
    let set = locker.lock_all(["a", "b", "c"]).acquire().await.unwrap();
    store.delete("disLock:b");
    let error = set.into_tickets(AMPLE).await.unwrap_err();
    assert!(error.is_lost() && error.key() == Some("disLock:b"), "{error}");
    drained().await;
    assert_eq!(store.locks(), [""; 0]);
}

async fn another_store_or_prefix_is_refused_before_anything_is_sent(store: &Store) {
    let locker = store.locker().await;
    let mine = ticket(hold(&locker).await).await;
    let shop = store.builder().prefix("shop:").connect().await.unwrap();
    let elsewhere = Locker::connect("memory://").await.unwrap();
    let foreign = ticket(hold(&elsewhere).await).await;
    let before = store.requests();
    for (locker, ticket, why) in [(&shop, &mine, "prefix `shop:`"), (&locker, &foreign, "store")] {
        let error = locker.redeem(ticket.clone()).acquire().await.unwrap_err();
        assert_eq!(error.kind(), LockErrorKind::InvalidOption);
        assert!(error.to_string().contains(why), "{error}");
    }
    for request in [locker.redeem(mine.clone()).wait(LIMIT), locker.redeem(mine.clone()).fair()] {
        let error = request.acquire().await.unwrap_err();
        assert_eq!(error.kind(), LockErrorKind::InvalidOption);
        assert!(error.to_string().contains("a ticket has its lock already"), "{error}");
    }
    assert_eq!(store.requests(), before);
    // A locker without a prefix has all keys.
    let all = store.builder().prefix("").connect().await.unwrap();
    redeem(&all, &mine).await.release().await.unwrap();
    redeem(&elsewhere, &foreign).await.release().await.unwrap();
}

async fn a_guard_comes_back_without_a_ticket(store: &Store) {
    let locker = store.locker().await;
    let guard = hold_renewed(store, &locker).await;
    let failed = guard.into_ticket(Duration::from_millis(9)).await.unwrap_err();
    assert_eq!(failed.error().kind(), LockErrorKind::InvalidOption);
    assert!(failed.to_string().starts_with("no ticket was made: "), "{failed}");
    let guard = failed.into_guard().unwrap();
    renewed(&guard).await;
    store.delete(NAME);
    let failed = guard.into_ticket(AMPLE).await.unwrap_err();
    assert!(failed.error().is_lost() && !failed.error().is_taken());
    let guard = failed.into_guard().unwrap();
    assert!(guard.lease().is_lost() && guard.release().await.unwrap_err().is_lost());
    let guard = hold(&locker).await;
    store.put_foreign(NAME, AMPLE);
    let failed = guard.into_ticket(AMPLE).await.unwrap_err();
    assert!(failed.error().is_taken());
    drop(failed);
    drained().await;
    store.delete(NAME);
    let request = locker.lock(KEY).renew().max_hold(store.short());
    let guard = request.acquire().await.unwrap();
    assert!(guard.lease().lost().await.is_max_hold_reached());
    let failed = guard.into_ticket(AMPLE).await.unwrap_err();
    assert!(failed.error().is_max_hold_reached());
    failed.into_guard().unwrap().release().await.unwrap();
}

#[expect(clippy::async_yields_async, reason = "the call is polled step by step")]
async fn a_ticket_given_up_at_any_poll_leaves_nothing(store: &Store) {
    let locker = store.locker().await;
    let made = RefCell::new(None);
    let pass = async || {
        let guard = hold(&locker).await;
        let made = &made;
        async move { *made.borrow_mut() = Some(guard.into_ticket(AMPLE).await.unwrap()) }
    };
    let check = async |is_done| {
        let made = made.take();
        assert_eq!(made.is_some(), is_done);
        match made {
            Some(ticket) => redeem(&locker, &ticket).await.release().await.unwrap(),
            None => hold(&locker).await.release().await.unwrap(),
        }
        drained().await;
        assert_eq!(store.locks(), [""; 0]);
    };
    at_every_poll(pass, check).await;
}

/// The ticket is valid still, or its lock is released.
#[expect(clippy::async_yields_async, reason = "the call is polled step by step")]
async fn a_redemption_given_up_at_any_poll_leaves_nothing(store: &Store) {
    let locker = store.locker().await;
    let latest = RefCell::new(None);
    let start = async || {
        let ticket = ticket(hold(&locker).await).await;
        *latest.borrow_mut() = Some(ticket.clone());
        locker.redeem(ticket).acquire()
    };
    let check = async |_| {
        let ticket = latest.take().unwrap();
        match locker.redeem(ticket).acquire().await {
            Ok(guard) => guard.release().await.unwrap(),
            Err(error) => assert!(error.is_lost(), "{error}"),
        }
        drained().await;
        assert_eq!(store.locks(), [""; 0]);
    };
    at_every_poll(start, check).await;
}

async fn a_redeemed_body_runs_under_its_lock(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let ticket = ticket(hold(&locker).await).await;
    let body = async {
        assert!(store.has(NAME));
        assert!(other.lock(KEY).acquire().await.unwrap_err().is_held_by_caller());
        7
    };
    assert_eq!(other.redeem(ticket.clone()).run(body).await.unwrap(), 7);
    assert_eq!(store.locks(), [""; 0]);
    let never = async { unreachable!("the body runs without its lock") };
    assert!(other.redeem(ticket).run::<_>(never).await.unwrap_err().is_lost());
}

async fn a_ticket_leaves_nothing_in_its_process(store: &Store) {
    let locker = store.locker().await;
    let guard = hold_renewed(store, &locker).await;
    let lease = guard.lease().clone();
    let ticket = guard.into_ticket(AMPLE).await.unwrap();
    assert!(!lease.is_held() && !lease.is_lost());
    drained().await;
    assert!(store.has(NAME));
    assert_quiet(store).await;
    assert!(lease.extend(AMPLE).await.is_err() && !lease.is_lost());
    redeem(&locker, &ticket).await.release().await.unwrap();
}

async fn a_redeemed_hold_has_the_terms_of_its_request(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let first = ticket(hold(&locker).await).await;
    assert!(store.life(NAME).unwrap() > AMPLE / 2);
    let request = other.redeem(first).expire(store.lease()).renew();
    let guard = request.acquire().await.unwrap();
    assert!(store.life(NAME).unwrap() <= store.lease());
    renewed(&guard).await;
    let second = ticket(guard).await;
    let request = locker.redeem(second).renew().max_hold(store.short());
    let guard = request.acquire().await.unwrap();
    assert!(guard.lease().lost().await.is_max_hold_reached());
    guard.release().await.unwrap();
}

async fn a_ticket_after_its_time_is_lost(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let ticket = hold(&locker).await.into_ticket(store.short()).await.unwrap();
    store.pass(NAME).await;
    assert!(is_lost(&other, &ticket).await);
    let next = hold(&other).await;
    assert!(next.lease().fencing_token() > ticket.fencing_token());
    assert!(!is_lost(&locker, &ticket).await && next.lease().is_held());
    next.release().await.unwrap();
}

/// Goal: a message is acknowledged whose work was never done, or its work is done twice.
/// Method: workers as the documentation has them, which get the message until they say `Ok`.
async fn a_message_has_its_work_done_once_on_each_way(store: &Store) {
    let (web, worker) = (store.locker().await, store.locker().await);
    let send = async |ttl| hold(&web).await.into_ticket(ttl).await.unwrap();
    for way in ["in time", "late", "behind another call", "its worker dies", "not sent"] {
        let done = Cell::new(0);
        let ticket = send(if way == "late" { store.short() } else { AMPLE }).await;
        match way {
            "late" => store.pass(NAME).await,
            "behind another call" => {
                store.delete(NAME);
                deliver(store, &web, &send(AMPLE).await, &done).await;
            }
            "its worker dies" => {
                let request = worker.redeem(ticket.clone()).expire(store.short());
                // The reply may be later than such a short lease on a busy machine; the ticket is used up then, too.
                request
                    .acquire()
                    .await
                    .map_or_else(|error| assert!(error.is_unavailable()), mem::forget);
            }
            "not sent" => {
                let given_back = web.redeem(ticket.clone()).acquire().await.unwrap();
                given_back.release().await.unwrap();
                assert!(!store.has(NAME));
                deliver(store, &worker, &send(AMPLE).await, &done).await;
            }
            _ => {}
        }
        let twice = || deliver(store, &worker, &ticket, &done);
        tokio::join!(twice(), twice());
        assert_eq!(done.get(), 1, "{way}");
        drained().await;
        assert!(!store.has(NAME));
    }
}

/// Delivers a message until it is acknowledged. Its data are this count.
async fn deliver(store: &Store, locker: &Locker, ticket: &Ticket, done: &Cell<u32>) {
    let work = async || {
        if done.get() == 0 {
            tokio::task::yield_now().await;
            done.set(done.get() + 1);
        }
    };
    loop {
        let outcome = match locker.redeem(ticket.clone()).renew().run(work()).await {
            Err(error) if error.is_lost() && !error.is_taken() => {
                locker.lock(KEY).wait(Duration::ZERO).renew().run(work()).await
            }
            outcome => outcome,
        };
        let Err(error) = outcome else { return };
        assert!(error.is_taken() || error.is_busy(), "{error}");
        store.elapse(store.short() / 10).await;
    }
}

async fn an_operator_sees_and_frees_a_ticket(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let admin = other.admin();
    let first = ticket(hold_renewed(store, &locker).await).await;
    let seen = admin.holder(KEY).await.unwrap().unwrap();
    let holder = seen.holder();
    assert_eq!((holder.kind(), holder.process()), (HolderKind::Ticket, None));
    assert!(holder.held_since().is_some() && holder.remaining().unwrap() > AMPLE / 2);
    let inspected = locker.inspect(KEY).await.unwrap().unwrap();
    assert_eq!((inspected.kind(), inspected.id()), (HolderKind::Ticket, holder.id()));
    // The one who has redeemed it is left alone.
    let guard = redeem(&other, &first).await;
    assert_eq!(admin.revoke(&seen, "lost", LIMIT).await.unwrap(), Revoked::Changed);
    assert_eq!(admin.force_release(&seen, "lost").await.unwrap(), Forced::Changed);
    assert!(guard.lease().is_held());
    let second = ticket(guard).await;
    let seen = admin.holder(KEY).await.unwrap().unwrap();
    let released = admin.revoke(&seen, "lost", LIMIT).await.unwrap();
    assert!(matches!(released, Revoked::Released { .. }), "{released:?}");
    assert_eq!(store.locks(), [""; 0]);
    assert!(is_lost(&other, &second).await);
    // So is what was listed before the ticket was made.
    let guard = hold(&locker).await;
    let seen = admin.holder(KEY).await.unwrap().unwrap();
    let third = ticket(guard).await;
    assert_eq!(admin.force_release(&seen, "lost").await.unwrap(), Forced::Changed);
    let seen = admin.holder(KEY).await.unwrap().unwrap();
    assert_eq!(admin.force_release(&seen, "lost").await.unwrap(), Forced::Released);
    assert!(is_lost(&other, &third).await);
}

/// One waits in the process of the first holder, one in that of the second, and one in another.
async fn those_who_wait_get_the_lock_after_a_redeemed_hold(store: &Store) {
    let lockers = [store.locker().await, store.locker().await, store.locker().await];
    let guard = hold(&lockers[0]).await;
    let waiters = lockers.each_ref().map(|locker| {
        let request = locker.lock(KEY);
        tokio::spawn(async move { request.acquire().await.unwrap().release().await })
    });
    let admin = lockers[2].admin();
    wait::until_async(wait::HANG, async || admin.queue(KEY).await.unwrap().len() == 3).await;
    let ticket = ticket(guard).await;
    // Longer than until those who wait ask again.
    store.elapse(Duration::from_secs(1)).await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "it was free in between");
    let guard = redeem(&lockers[1], &ticket).await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()) && guard.lease().is_held());
    guard.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
}

/// A turn ends with its ticket: the calls that wait behind it are not passed the lock.
async fn a_lock_that_was_waited_for_is_passed_on(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&other).await;
    let (first, second) = (locker.lock(KEY).acquire(), locker.lock(KEY).acquire());
    let (first, second) = (tokio::spawn(first), tokio::spawn(second));
    let admin = other.admin();
    wait::until_async(wait::HANG, async || !admin.queue(KEY).await.unwrap().is_empty()).await;
    guard.release().await.unwrap();
    let guard = first.await.unwrap().unwrap();
    let ticket = guard.into_ticket(AMPLE).await.unwrap();
    store.elapse(Duration::from_secs(1)).await;
    assert!(!second.is_finished());
    let guard = redeem(&other, &ticket).await;
    assert!(!second.is_finished());
    guard.release().await.unwrap();
    second.await.unwrap().unwrap().release().await.unwrap();
}
