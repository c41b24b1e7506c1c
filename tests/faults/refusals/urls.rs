//! URLs that name no server, or no database of it.

use lockable_runtime::LockErrorKind;
use lockable_runtime::Locker;
use lockable_tests::Server;

use crate::support::{ample, connect_ample, everything};

#[tokio::test]
async fn a_wrong_url_part_shows_a_right_url() {
    let urls = [
        "redis://",
        "redis://[::1",
        "redis://user:s3cr3t@localhost:99999",
        "redis://user:s3cr3t@localhost/x",
        "redis://:s3cr3t@localhost:port/0",
        "redis://user:s3cr3t%zz@local host/0",
        "rediss://user:s3cr3t@localhost/x",
        "redis+unix://user:s3cr3t@/path?db=x",
        "unix:///path?pass=s3cr3t&db=x",
    ];
    for url in urls {
        let error = Locker::builder().url(url).connect_lazy().expect_err(url);
        assert!(error.kind() == LockErrorKind::InvalidUrl, "{url}: {error:?}");
        assert!(error.to_string().contains("redis://user:password@host:6379/0"), "{url}: {error}");
        assert!(!everything(&error).contains("s3cr3t"), "{url}: {}", everything(&error));
        let connected = Locker::connect(url).await.unwrap_err();
        assert_eq!(connected.to_string(), error.to_string());
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_refused() {
    let server = Server::builder().config("databases", "4").start();
    for database in ["4", "-1", "999999999"] {
        let url = format!("{}/{database}", server.url());
        let error = ample(&url).connect().await.unwrap_err();
        assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&url) && text.contains("out of range"), "{text}");
    }
    connect_ample(&format!("{}/3", server.url())).await;
}

#[tokio::test]
async fn a_nonexistent_host_is_unavailable_and_named() {
    let error = ample("redis://no-such-host.invalid").connect().await.unwrap_err();
    assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}
