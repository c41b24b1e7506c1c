//! The ways to a server: TLS, a unix socket, a user, a password, a database.

use lockable_runtime::{LockError, Locker};
use lockable_tests::{Server, Tls};

use crate::support::{KEY, connect, everything, patient};

#[tokio::test]
async fn a_server_is_trusted_by_its_authority() {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    let locker = patient(&server.tls_url()).root_certificate(tls.ca_pem()).connect().await.unwrap();
    assert_locks(&locker, &server).await;
    assert!(format!("{locker:?}").contains("rediss://localhost"), "{locker:?}");
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().tls(&tls).start();
    let trusting = patient(&server.tls_url()).root_certificate(stranger.ca_pem());
    assert_certificate_is_named(&trusting.connect().await.unwrap_err(), &server);
}

#[tokio::test]
async fn a_privately_signed_server_needs_a_root_certificate() {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    let error = Locker::connect(&server.tls_url()).await.unwrap_err();
    assert_certificate_is_named(&error, &server);
}

#[tokio::test]
async fn an_invalid_root_certificate_trusts_no_server() {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    let trusting = patient(&server.tls_url()).root_certificate("no certificate");
    assert_certificate_is_named(&trusting.connect().await.unwrap_err(), &server);
}

#[tokio::test]
async fn a_plain_url_to_a_tls_port_is_unavailable() {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    let url = server.tls_url().replace("rediss://", "redis://");
    assert!(Locker::connect(&url).await.unwrap_err().is_unavailable());
}

#[tokio::test]
async fn a_tls_url_to_a_plain_port_is_unavailable() {
    let tls = Tls::generate();
    let server = Server::start();
    let url = server.url().replace("redis://", "rediss://");
    let error = patient(&url).root_certificate(tls.ca_pem()).connect().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(&url), "{error}");
}

#[tokio::test]
async fn a_unix_socket_is_a_way_to_a_server() {
    let server = Server::builder().unix_socket().start();
    for url in [server.unix_url(), server.unix_url().replace("unix://", "redis+unix://")] {
        assert_locks(&connect(&url).await, &server).await;
    }
}

#[tokio::test]
async fn a_unix_socket_takes_a_database() {
    let server = Server::builder().unix_socket().start();
    let locker = connect(&format!("{}?db=5", server.unix_url())).await;
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
        let locker = connect(&server.url_with(user, password, 3)).await;
        let guard = locker.lock("k").acquire().await.unwrap();
        assert!(in_database(&server, 3) && !in_database(&server, 0));
        guard.release().await.unwrap();
        assert!(!in_database(&server, 3));
    }
}

#[tokio::test]
async fn special_characters_in_passwords_are_percent_encoded() {
    let server = Server::builder().user("app", "on >p@ss:w/rd? ~* +@all").start();
    let locker = connect(&server.url_with("app", "p%40ss%3Aw%2Frd%3F", 0)).await;
    assert_locks(&locker, &server).await;
}

async fn assert_locks(locker: &Locker, server: &Server) {
    let guard = locker.lock("k").acquire().await.unwrap();
    assert!(server.admin().get(KEY).is_some());
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

fn assert_certificate_is_named(error: &LockError, server: &Server) {
    let text = error.to_string();
    assert!(error.is_unavailable(), "{text}");
    assert!(text.contains("certificate") && text.contains(&server.tls_url()), "{text}");
    assert!(std::error::Error::source(error).is_some(), "{}", everything(error));
}

fn in_database(server: &Server, database: u8) -> bool {
    let admin = server.admin();
    admin.command::<()>(&["SELECT", &database.to_string()]);
    admin.get(KEY).is_some()
}
