//! Proxies that spread keys over several servers.

use std::time::Duration;

use lockable_runtime::LockErrorKind;
use lockable_runtime::check::{Code, Finding, Report, Severity};
use lockable_tests::cluster::slot;
use lockable_tests::sections::renewed;
use lockable_tests::{Admin, Server, Spreader, wait};

use crate::support::{LIMIT, ample};

/// Goal: a lock and its fence counter are not at two servers, where commands count up one counter, and scripts
/// another one.
#[tokio::test]
async fn a_proxy_with_another_hash_is_refused_in_words() {
    for hash in [of_whole_keys, of_tags_by_another_sum] {
        let servers = [Server::start(), Server::start()];
        let proxy = Spreader::start(&servers, hash);
        let error = ample(&proxy.url()).connect().await.unwrap_err();
        assert!(error.kind() == LockErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("another hash than Redis Cluster"), "{error}");
        let report = ample(&proxy.url()).connect_lazy().unwrap().check().await;
        assert_eq!(errors(&report), [Code::Proxy], "{report}");
        assert!(report.to_string().contains("CRC16"), "{report}");
        // What a probe could not delete ends by itself: a counter that a script has made at the lock's server last.
        let admins = servers.each_ref().map(Server::admin);
        let end = |admin: &Admin| admin.keys("*").iter().all(|key| admin.pttl(key) != -1);
        assert!(admins.iter().all(end));
        let is_other = |key: &String| !key.contains(":fence:");
        let are_empty = async || !admins.iter().any(|admin| admin.keys("*").iter().any(is_other));
        wait::until_async(LIMIT, are_empty).await;
    }
}

#[tokio::test]
async fn a_proxy_with_the_hash_of_a_cluster_has_locks() {
    let servers = [Server::start(), Server::start()];
    let proxy = Spreader::start(&servers, of_slots);
    // The check waits so long for a grant, of which it hears nothing behind this proxy.
    let locker =
        ample(&proxy.url()).command_deadline(Duration::from_secs(5)).connect().await.unwrap();
    let keys: Vec<_> = (0..20).map(|number| format!("order:{number}")).collect();
    for key in &keys {
        let first = locker.lock(key).acquire().await.unwrap();
        let token = first.lease().fencing_token();
        assert!(locker.lock(key).try_acquire().await.unwrap_err().is_busy());
        first.release().await.unwrap();
        let second = locker.lock(key).acquire().await.unwrap();
        assert!(second.lease().fencing_token() > token);
        second.release().await.unwrap();
    }
    let report = locker.check().await;
    assert!(!errors(&report).contains(&Code::Proxy), "{report}");
    for (number, server) in servers.iter().enumerate() {
        let fences = server.admin().keys("lockable:fence:*");
        assert!(!fences.is_empty(), "each has a part");
        // No script has made one beside another, at the server of that one.
        assert!(fences.iter().all(|fence| of_slots(fence.as_bytes()) % 2 == number), "{fences:?}");
    }
}

/// Goal: many leases are not renewed by one command, which finds only those of its first key's server.
#[tokio::test]
async fn leases_behind_a_proxy_that_spreads_keys_are_renewed() {
    let servers = [Server::start(), Server::start()];
    let proxy = Spreader::start(&servers, of_slots);
    let locker = ample(&proxy.url()).expire(LEASE).connect().await.unwrap();
    let mut guards = Vec::new();
    for number in 0..8 {
        guards.push(locker.lock(format!("lease:{number}")).renew().acquire().await.unwrap());
    }
    for guard in &guards {
        renewed(guard).await;
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

fn errors(report: &Report) -> Vec<Code> {
    let errors = report.findings().filter(|finding| finding.severity() == Severity::Error);
    errors.map(Finding::code).collect()
}

fn of_whole_keys(key: &[u8]) -> usize {
    key.iter().fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()))
}

fn of_tags_by_another_sum(key: &[u8]) -> usize {
    let tag = key.split(|byte| b"{}".contains(byte)).nth(1);
    of_whole_keys(tag.unwrap_or(key))
}

fn of_slots(key: &[u8]) -> usize {
    slot(str::from_utf8(key).unwrap()).into()
}

/// They are renewed after a third of it: the rest is for a slow machine.
const LEASE: Duration = Duration::from_secs(9);
