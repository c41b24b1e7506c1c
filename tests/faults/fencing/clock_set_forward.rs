//! A server's clock that is set forward: leases end there before their holders know.

use lockable_tests::{Server, clock, wait};

use super::{assert_fenced, stored, texts, write};
use crate::support::{FENCE, KEY, LIMIT, LONG, connect_ample};

/// Goal: this is what fencing is for: the holder believes in its lease, another one has the lock, and only the token
/// tells the data which of them is too late.
/// Method: the clock is set forward by more than a lease, and then by more than the life of a fence counter.
#[tokio::test]
async fn a_clock_set_forward_lets_two_holders_in_with_rising_tokens() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let (admin, url) = (server.admin(), server.url());
    let (one, other) = (connect_ample(&url).await, connect_ample(&url).await);
    for (step, counter_stays) in [(2 * LONG, true), (60 * LONG, false)] {
        let old = one.lock("k").acquire().await.unwrap();
        server.set_clock_forward(step);
        // Valkey reads its clock at most once in a millisecond.
        wait::until(LIMIT, || admin.get(KEY).is_none());
        assert_eq!(admin.get(FENCE).is_some(), counter_stays);
        let new = other.lock("k").try_acquire().await.expect("its lease is over");
        assert!(old.lease().is_held() && new.lease().is_held());
        let [late, newer] = [&old, &new].map(|guard| u64::from(guard.lease().fencing_token()));
        write(&admin, newer, "newer").unwrap();
        assert_fenced(write(&admin, late, "late"), late, newer);
        assert_eq!(stored(&admin), texts("newer", newer));
        assert!(old.release().await.is_err_and(|error| error.is_lost()));
        assert!(new.lease().is_held());
        new.release().await.unwrap();
    }
}
