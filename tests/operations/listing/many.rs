//! A few locks among very many other keys.

use lockable_runtime::Locker;
use lockable_tests::{Server, long_form};

use super::all;
use super::servers::locks;
use crate::support::LONG;

/// Goal: no other client waits for a listing. Method: its commands are counted; each goes through 250 keys.
#[tokio::test]
async fn two_thousand_locks_are_listed_among_foreign_keys() {
    let server = Server::start();
    let admin = server.admin();
    let foreign = long_form(100_000, 1_000_000);
    let make = "for i = 1, ARGV[1] do redis.call('SET', 'cache:' .. i, 'x') end";
    admin.command::<()>(&["EVAL", make, "0", &foreign.to_string()]);
    locks(&admin, 2_000);
    admin.command::<()>(&["CONFIG", "RESETSTAT"]);
    let locker = Locker::builder().url(server.url()).expire(LONG).connect().await.unwrap();
    assert_eq!(locker.admin().count().await.unwrap(), foreign as u64 + 2_000);
    let found = all(locker.admin().locks().matching("order:*")).await;
    assert_eq!(found.len(), 2_000);
    assert!((1..=2_000).all(|number| found.contains_key(&format!("order:{number}"))));
    let stats: String = admin.command(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        line.map_or(0, |line| {
            let calls = line.split_once("calls=").unwrap().1.split_once(',').unwrap().0;
            calls.parse::<usize>().unwrap()
        })
    };
    // Each goes through a few more than it was asked for.
    let pages = (foreign + 2_000) / 250;
    assert!(calls("scan") > pages / 2 && calls("scan") <= pages + 1, "{stats}");
    assert!((2_000..2_200).contains(&calls("llen")), "{stats}");
    assert!(calls("pttl") <= calls("llen") + 1, "{stats}");
    assert_eq!([calls("getrange"), calls("keys")], [calls("llen"), 0], "{stats}");
}
