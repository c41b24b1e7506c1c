//! Whether locks can work on a server, and what endangers them: for a pipeline that is to stop before
//! a deployment, and for a look at a server.
//!
//! Run it with `LOCKABLE_URL=redis://user:password@host:6379 cargo run --example check`, or with the URL of
//! Sentinels, each of which is examined too: `redis-sentinel://s1,s2,s3/NAME`, or that of a cluster, each of
//! whose primaries is: `redis-cluster://n1,n2,n3`. Without the variable it looks at the locks in memory. It
//! ends with 1 where there is an error. With `LOCKABLE_PREFIX` it looks for locks that begin with another
//! prefix than `disLock:`. With `-- --json` it prints one line of JSON in place of the text.

use std::env;
use std::error::Error;
use std::process::ExitCode;

use lockable_runtime::Locker;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let url = env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let mut builder = Locker::builder().url(url);
    if let Ok(prefix) = env::var("LOCKABLE_PREFIX") {
        builder = builder.prefix(prefix);
    }
    // Not connected, so that a server that cannot be reached is in the report too.
    let report = builder.connect_lazy()?.check().await;
    if env::args().any(|argument| argument == "--json") {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report}");
    }
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
