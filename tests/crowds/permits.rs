//! Permits under load. How long callers wait for them is in `tests/timings/shares.rs`.

use std::sync::Arc;

use lockable_tests::sections::is_clean;
use lockable_tests::{Sections, Server, long_form};
use tokio::task::JoinSet;

use crate::alone;
use crate::load::{LONG, connect};

/// Each stands for a process.
const LOCKERS: usize = 4;
const CALLERS: usize = 12;

/// Goal: no caller waits behind a long body while another permit is free.
/// Method: one of three permits is held until all callers have had theirs, again and again.
#[test]
fn a_long_body_under_a_permit_holds_no_caller_up() {
    alone(async {
        let server = Server::start();
        let holder = connect(&server.url()).await;
        let long = holder.lock("k").permits(3).expire(LONG).acquire().await.unwrap();
        let (sections, mut callers) = (Arc::<Sections>::default(), JoinSet::new());
        sections.enter(&long);
        let mut lockers = vec![holder];
        while lockers.len() < LOCKERS {
            lockers.push(connect(&server.url()).await);
        }
        for number in 0..CALLERS {
            let (locker, sections) = (lockers[number % LOCKERS].clone(), Arc::clone(&sections));
            callers.spawn(async move {
                for _ in 0..long_form(10, 500) {
                    let guard = locker.lock("k").permits(3).wait(LONG).acquire().await.unwrap();
                    sections.enter(&guard);
                    tokio::task::yield_now().await;
                    sections.leave(&guard);
                    guard.release().await.unwrap();
                }
            });
        }
        callers.join_all().await;
        assert!(long.lease().is_held());
        sections.leave(&long);
        long.release().await.unwrap();
        sections.assert_sound();
        is_clean(&server).await;
    });
}
