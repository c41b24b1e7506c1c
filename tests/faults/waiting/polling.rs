//! Calls that no wake-up reaches, because their way to the server does not let them subscribe.

use lockable_tests::{Proxy, Server, wait};
use tracing::Level;

use super::support::{connect, in_queue, is_served, is_served_last, rechecking, subscribers};
use crate::events;
use crate::support::{HELLO_3, LIMIT, server_and_proxy};

/// A server, and a proxy that speaks RESP2 alone.
fn server_and_old_proxy() -> (Server, Proxy) {
    let (server, proxy) = server_and_proxy();
    proxy.misspell(Some(HELLO_3));
    (server, proxy)
}

/// Goal: calls that poll although their user never learns why.
#[tokio::test]
async fn behind_a_proxy_without_resp3_calls_poll_and_that_is_logged() {
    events::listen();
    let (server, proxy) = server_and_old_proxy();
    let locker = rechecking(&proxy.url()).connect().await.unwrap();
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let waiter = in_queue(&server, &locker).await;
    assert_eq!(subscribers(&server.admin()), 0);
    let words = [proxy.addr().to_string(), "poll about once a second".to_owned()];
    let words = words.each_ref().map(String::as_str);
    assert_eq!(events::logged_with(Level::WARN, &words), 1);
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
    assert_eq!(events::logged_with(Level::WARN, &words), 1);
}

/// Goal: one of them is never served.
/// Method: the one that polls is the first in the queue. It is passed over, and has its turn once no one else waits.
#[tokio::test]
async fn a_call_that_polls_is_served_beside_one_that_listens() {
    let (server, proxy) = server_and_old_proxy();
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let polls = in_queue(&server, &rechecking(&proxy.url()).connect().await.unwrap()).await;
    let listens = in_queue(&server, &connect(&server.url()).await).await;
    guard.release().await.unwrap();
    let first = wait::ends(listens).await.unwrap();
    wait::until_async(LIMIT, async || server.admin().keys("lockable:queue:*").len() == 1).await;
    assert!(!polls.is_finished());
    first.release().await.unwrap();
    is_served(polls).await;
}
