//! Is there enough time left to commit, how do I ask for more, and what became of my lock?
//!
//! In this folder, run it with `cargo run --example inspect_and_extend`; set `LOCKABLE_URL=redis://127.0.0.1:6379`
//! for the lock without an expiry too, which only another program can make. Watch for the three ways in which a
//! release ends.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{Holder, LockError, LockGuard, Locker};
use tokio::time::sleep;

/// Longer than a commit ever takes.
const ENOUGH: Duration = Duration::from_secs(5);

/// Commits only while enough of the lease is left to end the commit in.
async fn commit(lock: &LockGuard) -> Result<(), LockError> {
    println!("commit:   {:.1?} left", lock.lease().remaining());
    if lock.lease().remaining() < ENOUGH {
        // Only the holder can extend: when the lock was lost, this is an error.
        lock.lease().extend(Duration::from_secs(20)).await?;
        println!("commit:   {:.1?} left after extending", lock.lease().remaining());
    }
    assert!(lock.lease().remaining() > ENOUGH);
    // … the transaction, with `lock.fencing_token()` in it …
    Ok(())
}

/// What the backend reports about a lock to any caller.
fn described(holder: Option<Holder>) -> String {
    match holder.map(|holder| holder.remaining()) {
        None => "no such lock".to_owned(),
        Some(None) => "taken, without an expiry".to_owned(),
        Some(Some(rest)) => format!("taken, for {:.0} s", rest.as_secs_f32()),
    }
}

/// The three outcomes of a release; any other error says that the outcome is not known.
async fn release(lock: LockGuard) -> Result<&'static str, LockError> {
    match lock.release().await {
        Ok(()) => Ok("released"),
        Err(error) if error.is_taken() => Ok("too late: another holder has it"),
        Err(error) if error.is_lost() => Ok("too late: it had expired"),
        Err(error) => Err(error),
    }
}

/// A lock that ends before its holder is done.
async fn overslept(locks: &Locker) -> Result<LockGuard, LockError> {
    let lock = locks.lock("order:7").expire(Duration::from_millis(50)).acquire().await?;
    sleep(Duration::from_millis(100)).await;
    assert!(
        !lock.lease().is_held()
            && lock.lease().extend(ENOUGH).await.is_err_and(|error| error.is_lost())
    );
    Ok(lock)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let locks = Locker::connect(&url).await?;
    let inspected = async || locks.inspect("order:7").await.map(described);

    assert_eq!(inspected().await?, "no such lock");
    let lock = locks.lock("order:7").expire(Duration::from_secs(2)).acquire().await?;
    commit(&lock).await?;
    println!("inspect:  {}", inspected().await?);
    assert_eq!(release(lock).await?, "released");
    println!("release:  released");

    let late = overslept(&locks).await?;
    let outcome = release(late).await?;
    println!("release:  {outcome}");
    assert_eq!(outcome, "too late: it had expired");

    let late = overslept(&locks).await?;
    let next = locks.lock("order:7").acquire().await?;
    let outcome = release(late).await?;
    println!("release:  {outcome}");
    assert_eq!(outcome, "too late: another holder has it");
    assert_eq!(release(next).await?, "released");

    if !url.starts_with("memory://") {
        let mut redis = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let (key, value) = ("disLock:order:7", "a program that forgot the expiry");
        redis::cmd("SET").arg(key).arg(value).exec_async(&mut redis).await?;
        println!("inspect:  {}", inspected().await?);
        assert_eq!(inspected().await?, "taken, without an expiry");
        redis::cmd("DEL").arg(key).exec_async(&mut redis).await?;
    }
    println!("inspect:  {}", inspected().await?);
    assert_eq!(inspected().await?, "no such lock");
    Ok(())
}
