//! What a call with `once` waits for.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Server, wait};

use crate::{Figure, block_on, now};

/// From the end of a run that others wait for to the last of their answers, each in a process of its own.
pub(crate) fn once() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let connect = async || Locker::connect(&server.url()).await.expect("a server");
        let holder = connect().await;
        let guard = holder.lock("k").once().acquire().await.expect("it is free");
        let mut waiting = Vec::new();
        for _ in 0..9 {
            waiting.push(tokio::spawn(connect().await.lock("k").once().acquire()));
        }
        let admin = holder.admin();
        let all_wait = async || admin.queue("k").await.expect("an answer").len() == waiting.len();
        wait::until_async(wait::HANG, all_wait).await;
        let start = now();
        guard.keep(Duration::from_secs(60)).await.expect("it is held");
        for call in waiting {
            let outcome = call.await.expect("no panic");
            assert!(outcome.is_err_and(|error| error.is_done()));
        }
        let bound = Duration::from_millis(1_500);
        vec![Figure::new("nine calls hear that the run is done", start.elapsed(), bound)]
    })
}
