//! Proxies that spread keys over several servers.

use lockable_runtime::Locker;
use lockable_runtime::check::{Code, Severity};
use lockable_tests::{Server, Spreader, wait};

use crate::support::{LIMIT, connect, patient};

/// Goal: a lock and its fence counter are not at two servers, where commands count up one counter, and scripts
/// another one.
#[tokio::test]
async fn a_proxy_with_another_hash_is_refused_in_words() {
    for hash in [of_whole_keys, of_tags_by_crc32] {
        let servers = [Server::start(), Server::start()];
        let proxy = Spreader::start(&servers, hash);
        let error = Locker::connect(&proxy.url()).await.unwrap_err();
        assert!(error.is_refused(), "{error}");
        assert!(error.to_string().contains("another hash than Redis Cluster"), "{error}");
        let report = patient(&proxy.url()).connect_lazy().unwrap().check().await;
        let is_error = |code| (code, Severity::Error);
        let errors = report.findings().filter(|finding| finding.severity() == Severity::Error);
        let errors: Vec<_> = errors.map(|one| (one.code(), one.severity())).collect();
        assert_eq!(errors, [is_error(Code::Proxy)], "{report}");
        assert!(report.to_string().contains("CRC16"), "{report}");
        // What a trial could not delete ends by itself.
        let admins = servers.each_ref().map(Server::admin);
        let are_empty = async || admins.iter().all(|admin| admin.keys("*").is_empty());
        wait::until_async(LIMIT, are_empty).await;
    }
}

#[tokio::test]
async fn a_proxy_with_the_hash_of_a_cluster_has_locks() {
    let servers = [Server::start(), Server::start()];
    let proxy = Spreader::start(&servers, of_tags_by_crc16);
    let locker = connect(&proxy.url()).await;
    let keys: Vec<_> = (0..20).map(|number| format!("order:{number}")).collect();
    for key in &keys {
        let first = locker.lock(key).acquire().await.unwrap();
        let token = first.fencing_token();
        assert!(locker.lock(key).try_acquire().await.unwrap().is_none());
        first.release().await.unwrap();
        let second = locker.lock(key).acquire().await.unwrap();
        assert!(second.fencing_token() > token);
        second.release().await.unwrap();
    }
    let report = locker.check().await;
    let is_split = |code, severity| code == Code::Proxy && severity == Severity::Error;
    assert!(!report.findings().any(|one| is_split(one.code(), one.severity())), "{report}");
    for server in &servers {
        assert!(!server.admin().keys("lockable:fence:*").is_empty(), "each has a part");
    }
}

fn of_whole_keys(key: &[u8]) -> usize {
    crc32(key)
}

fn of_tags_by_crc32(key: &[u8]) -> usize {
    crc32(tag(key))
}

fn of_tags_by_crc16(key: &[u8]) -> usize {
    let bit = |crc: u16| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    let byte = |crc: u16, byte: &u8| (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| bit(crc));
    usize::from(tag(key).iter().fold(0, byte))
}

fn crc32(text: &[u8]) -> usize {
    let bit = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xEDB8_8320 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc));
    usize::try_from(!text.iter().fold(u32::MAX, byte)).unwrap()
}

/// The part of a key that Redis Cluster hashes.
fn tag(key: &[u8]) -> &[u8] {
    let position = |text: &[u8], wanted| text.iter().position(|byte| *byte == wanted);
    let start = position(key, b'{').map(|open| &key[open + 1..]);
    let tag = start.and_then(|rest| Some(&rest[..position(rest, b'}')?]));
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}
