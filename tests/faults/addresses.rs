//! The ways to a server: a unix socket, a user, a password, a database.

use lockable_runtime::Locker;
use lockable_tests::Server;

use crate::support::{KEY, connect_ample};

#[tokio::test]
async fn a_unix_socket_is_a_way_to_a_server() {
    let server = Server::builder().unix_socket().start();
    for url in [server.unix_url(), server.unix_url().replace("unix://", "redis+unix://")] {
        assert_locks(&connect_ample(&url).await, &server).await;
    }
}

#[tokio::test]
async fn a_unix_socket_takes_a_database() {
    let server = Server::builder().unix_socket().start();
    let locker = connect_ample(&format!("{}?db=5", server.unix_url())).await;
    let _guard = locker.lock("k").acquire().await.unwrap();
    assert!(in_database(&server, 5) && !in_database(&server, 0));
}

#[tokio::test]
async fn a_unix_socket_that_is_not_there_is_named() {
    let error = Locker::connect("unix:///no/such/redis.sock").await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("/no/such/redis.sock"), "{error}");
}

#[tokio::test]
async fn a_url_takes_user_password_and_database() {
    let server = Server::builder().password("word").user("app", "on >app-word ~* +@all").start();
    for (user, password) in [("", "word"), ("default", "word"), ("app", "app-word")] {
        let locker = connect_ample(&server.url_with(user, password, 3)).await;
        let guard = locker.lock("k").acquire().await.unwrap();
        assert!(in_database(&server, 3) && !in_database(&server, 0));
        guard.release().await.unwrap();
        assert!(!in_database(&server, 3));
    }
}

#[tokio::test]
async fn special_characters_in_passwords_are_percent_encoded() {
    let server = Server::builder().user("app", "on >p@ss:w/rd? ~* +@all").start();
    let locker = connect_ample(&server.url_with("app", "p%40ss%3Aw%2Frd%3F", 0)).await;
    assert_locks(&locker, &server).await;
}

async fn assert_locks(locker: &Locker, server: &Server) {
    let guard = locker.lock("k").acquire().await.unwrap();
    assert!(server.admin().get(KEY).is_some());
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

fn in_database(server: &Server, database: u8) -> bool {
    let admin = server.admin();
    admin.command::<()>(&["SELECT", &database.to_string()]);
    admin.get(KEY).is_some()
}
