//! A program with an installed locker whose secrets are in a folder: `faults/rotation.rs` replaces them.
//!
//! `worker secrets files URL FOLDER` has the locker read the files, `worker secrets functions URL FOLDER` gives it
//! functions that do. What is in the folder is given: `password` of the user `app`, `sentinel` of `watcher`, `ca.crt`,
//! and `client.crt` with `client.key`. For each line of its input it makes one call, and prints `ok` or the error.

use std::fs;
use std::future::ready;
use std::io;
use std::path::Path;
use std::time::Duration;

use lockable_runtime::{
    Credentials, LockError, Locker, LockerBuilder, Pem, Secret, distributed_lock, install,
};
use tokio::runtime::Builder;

pub(crate) fn main(arguments: &[String]) {
    let [how, url, folder] = arguments else { panic!("{arguments:?}") };
    let given = if how == "files" { in_files } else { by_functions };
    let builder = Locker::builder().url(url).connect_deadline(PATIENCE).command_deadline(PATIENCE);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let locker = given(builder, Path::new(folder)).connect();
    install(runtime.block_on(locker).unwrap()).unwrap();
    while io::stdin().read_line(&mut String::new()).unwrap() > 0 {
        match runtime.block_on(call()) {
            Ok(()) => println!("ok"),
            Err(error) => println!("{:?}: {error}", error.kind()),
        }
    }
}

#[distributed_lock(key = "call")]
async fn call() -> Result<(), LockError> {
    Ok(())
}

fn in_files(mut builder: LockerBuilder, folder: &Path) -> LockerBuilder {
    let [password, sentinel, roots, certificate, key] = FILES.map(|name| folder.join(name));
    if password.exists() {
        builder = builder.credentials(Credentials::file("app", password));
    }
    if sentinel.exists() {
        builder = builder.sentinel_credentials(Credentials::file("watcher", sentinel));
    }
    if roots.exists() {
        builder = builder.root_certificate(Pem::file(roots));
        builder = builder.client_certificate(Pem::files([certificate, key]));
    }
    builder
}

fn by_functions(mut builder: LockerBuilder, folder: &Path) -> LockerBuilder {
    let [password, sentinel, roots, certificate, key] = FILES.map(|name| folder.join(name));
    if password.exists() {
        let read =
            move || Ok::<_, io::Error>(Credentials::new("app", fs::read_to_string(&password)?));
        builder = builder.credentials(Secret::from_fn(move || ready(read())));
    }
    if sentinel.exists() {
        let read =
            move || Ok::<_, io::Error>(Credentials::new("watcher", fs::read_to_string(&sentinel)?));
        builder = builder.sentinel_credentials(Secret::from_fn(move || ready(read())));
    }
    if roots.exists() {
        let read = move || Ok::<_, io::Error>(Pem::new(fs::read(&roots)?));
        builder = builder.root_certificate(Secret::from_fn(move || ready(read())));
        let read = move || {
            let own = Pem::new([fs::read(&certificate)?, fs::read(&key)?].concat());
            Ok::<_, io::Error>(own)
        };
        builder = builder.client_certificate(Secret::from_fn(move || ready(read())));
    }
    builder
}

const FILES: [&str; 5] = ["password", "sentinel", "ca.crt", "client.crt", "client.key"];

/// No test reaches it.
const PATIENCE: Duration = Duration::from_secs(300);
