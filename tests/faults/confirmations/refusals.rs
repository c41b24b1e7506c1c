//! Servers and users with whom no lock can be confirmed.

use lockable_runtime::LockErrorKind;
use lockable_runtime::check::{Code, Severity};
use lockable_tests::Server;

use super::Pair;
use crate::support::{acl_line, ample};

#[tokio::test]
async fn a_server_without_wait_is_refused() {
    let server = Server::builder().config("rename-command", "WAIT none").start();
    let error = ample(&server.url()).replicas(1).connect().await.unwrap_err();
    assert_eq!(error.kind(), LockErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("leave that setting out"), "{error}");
    ample(&server.url()).connect().await.unwrap();
    let locker = ample(&server.url()).replicas(1).connect_lazy().unwrap();
    assert_eq!(locker.lock("k").acquire().await.unwrap_err().kind(), LockErrorKind::Refused);
    let report = locker.check().await;
    let finding = report.findings().find(|finding| finding.severity() == Severity::Error);
    assert!(finding.unwrap().advice().contains("leave that setting out"), "{report}");
}

#[tokio::test]
async fn one_right_more_is_named_and_suffices() {
    let pair = Pair::start();
    let admin = pair.primary.admin();
    admin.command::<()>(&acl_line());
    let url = pair.primary.url_with(acl_line()[2], "secret", 0) + "?replicas=1";
    let error = ample(&url).connect().await.unwrap_err();
    assert_eq!(error.kind(), LockErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("grant `+wait`"), "{error}");
    let report = ample(&url).connect_lazy().unwrap().check().await;
    let missing = report.findings().find(|finding| finding.code() == Code::MissingRight);
    assert_eq!(missing.unwrap().subject(), Some("+wait"), "{report}");
    admin.command::<()>(&["ACL", "SETUSER", acl_line()[2], "+wait"]);
    let locker = super::confirmed(&url).connect().await.unwrap();
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    guard.lease().extend(2 * crate::support::LONG).await.unwrap();
    guard.release().await.unwrap();
    assert!(locker.check().await.findings().all(|finding| finding.subject() != Some("+wait")));
}
