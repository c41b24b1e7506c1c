//! A few locks among very many other keys.

use lockable_tests::long_form;

use super::all;
use super::servers::locks;
use crate::support::start;

/// Goal: no other client waits for a listing. Method: its commands are counted; each goes through 250 keys.
#[tokio::test]
async fn two_thousand_locks_are_listed_among_foreign_keys() {
    let (_server, locker, admin) = start().await;
    let foreign = long_form(20_000, 1_000_000);
    let make = "for i = 1, ARGV[1] do redis.call('SET', 'cache:' .. i, 'x') end";
    admin.command::<()>(&["EVAL", make, "0", &foreign.to_string()]);
    locks(&admin, 2_000);
    admin.reset_statistics();
    assert_eq!(locker.admin().count().await.unwrap(), foreign as u64 + 2_000);
    let found = all(locker.admin().locks().matching("order:*")).await;
    assert_eq!(found.len(), 2_000);
    assert!((1..=2_000).all(|number| found.contains_key(&format!("order:{number}"))));
    let calls = |name| usize::try_from(admin.command_calls(name)).unwrap();
    // Each goes through a few more than it was asked for.
    let pages = (foreign + 2_000) / 250;
    assert!(calls("scan") > pages / 2 && calls("scan") <= pages + 1);
    assert!((2_000..2_200).contains(&calls("llen")));
    assert!(calls("pttl") <= calls("llen") + 1);
    assert_eq!([calls("getrange"), calls("keys")], [calls("llen"), 0]);
}
