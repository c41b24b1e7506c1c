//! How soon a waiting call is served.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Server, wait};

use crate::{Figure, block_on, now};

/// From a release to the next holder's return, between two processes.
pub(crate) fn hand_off() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let (one, other) = (connect(&server).await, connect(&server).await);
        let admin = server.admin();
        let mut longest = Duration::ZERO;
        for _ in 0..100 {
            let holder = one.lock("k").acquire().await.expect("it is free");
            let next = tokio::spawn(other.lock("k").acquire());
            let is_queued = || admin.command::<usize>(&["LLEN", "lockable:queue:{disLock:k}"]) == 1;
            wait::until_async(wait::HANG, async || is_queued()).await;
            let start = now();
            let (released, next) = tokio::join!(holder.release(), next);
            longest = longest.max(start.elapsed());
            released.expect("it is held");
            next.expect("no panic").expect("it is handed off").release().await.expect("it is held");
        }
        vec![Figure::new("longest of 100 between processes", longest, Duration::from_millis(50))]
    })
}

async fn connect(server: &Server) -> Locker {
    Locker::connect(&server.url()).await.expect("a server")
}
