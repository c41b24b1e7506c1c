//! TLS in a program whose other crates have aws-lc-rs: alone, with `tls-no-provider`, and beside ring, with `tls`.
//!
//! One test, because the provider of a process is chosen once.

mod server;

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::{LockErrorKind, Locker, LockerBuilder, Pem};
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use crate::server::Server;

#[tokio::test]
async fn tls_takes_no_provider_from_other_crates() {
    let server = Server::start();
    let builder = Locker::builder()
        .url(server.url())
        .connect_deadline(PATIENCE)
        .command_deadline(PATIENCE)
        .root_certificate(Pem::new(server.authority.clone()));
    before_one_is_chosen(&builder).await;
    // What is given counts, and is no choice for the process.
    let given = Arc::new(aws_lc_rs::default_provider());
    locks(builder.clone().crypto_provider(given)).await;
    assert!(CryptoProvider::get_default().is_none());
    assert_eq!(others_work(), cfg!(not(feature = "ring")), "a feature of ours decides for others");
    // Where the others have just found the only one, it is chosen by now.
    drop(aws_lc_rs::default_provider().install_default());
    assert!(others_work());
    locks(builder).await;
}

async fn before_one_is_chosen(builder: &LockerBuilder) {
    if cfg!(feature = "ring") {
        return locks(builder.clone()).await;
    }
    let error = builder.clone().connect().await.unwrap_err();
    assert_eq!(error.kind(), LockErrorKind::InvalidOption);
    for words in ["crypto_provider", "install_default", "`tls`"] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

async fn locks(builder: LockerBuilder) {
    let locker = builder.connect().await.unwrap();
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
}

/// Whether a crate that names no provider can use rustls.
fn others_work() -> bool {
    catch_unwind(|| drop(rustls::ClientConfig::builder())).is_ok()
}

/// No test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);
