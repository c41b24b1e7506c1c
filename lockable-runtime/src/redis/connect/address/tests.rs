use super::*;
use crate::core::types::error::LockErrorKind;

fn address(url: &str) -> Address {
    Address::parse(url).unwrap()
}

fn group(url: &str) -> SentinelGroup {
    match address(url).way {
        AddressKind::Elected(group) => group,
        AddressKind::Fixed | AddressKind::Sharded(_) => panic!("{url} names no Sentinels"),
    }
}

fn seeds(url: &str) -> Vec<ConnectionInfo> {
    match address(url).way {
        AddressKind::Sharded(nodes) => nodes,
        AddressKind::Fixed | AddressKind::Elected(_) => panic!("{url} names no cluster"),
    }
}

fn refusal(url: &str) -> String {
    let error = Address::parse(url).unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidUrl, "{url}: {error}");
    error.to_string()
}

#[test]
fn an_address_is_named_without_secrets() {
    let cases = [
        ("redis://user:pw@host", "redis://host:6379/0"),
        ("valkey://host:7000/5?protocol=resp3", "redis://host:7000/5"),
        ("redis://[::1]:7000/1", "redis://[::1]:7000/1"),
        ("redis+unix:///s?db=2", "redis+unix:///s?db=2"),
        ("redis-sentinel://u:p@a,b:1/mm", "redis-sentinel://a:26379,b:1/mm/0"),
        ("redis-sentinel://a,b:/mm\n", "redis-sentinel://a:26379,b:26379/mm/0"),
        ("valkey+sentinel://a/mm/3", "redis-sentinel://a:26379/mm/3"),
        ("redis+sentinel://[::1],[::2]:7/m%6d/", "redis-sentinel://[::1]:26379,[::2]:7/mm/0"),
        ("redis-cluster://u:p@a,b:1", "redis-cluster://a:6379,b:1"),
        ("valkey-cluster://a:,b/?prefix=x\n", "redis-cluster://a:6379,b:6379"),
        ("redis+cluster://[::1],[::2]:7/0", "redis-cluster://[::1]:6379,[::2]:7"),
    ];
    for (url, name) in cases {
        assert_eq!(address(url).name, name, "{url}");
    }
}

#[cfg(feature = "tls-no-provider")]
#[test]
fn tls_is_for_sentinels_too() {
    for scheme in ["rediss-sentinel", "rediss+sentinel", "valkeys-sentinel", "valkeys+sentinel"] {
        let url = format!("{scheme}://a,b/mm/1");
        assert_eq!(address(&url).name, "rediss-sentinel://a:26379,b:26379/mm/1");
        assert!(is_tls(&address(&url).server));
        assert!(group(&url).sentinels.iter().all(is_tls));
    }
}

#[cfg(feature = "tls-no-provider")]
#[test]
fn tls_is_for_clusters_too() {
    for scheme in ["rediss-cluster", "rediss+cluster", "valkeys-cluster", "valkeys+cluster"] {
        let url = format!("{scheme}://a,b/0");
        assert_eq!(address(&url).name, "rediss-cluster://a:6379,b:6379");
        assert!(is_tls(&address(&url).server) && seeds(&url).iter().all(is_tls));
    }
    for url in ["rediss-cluster://a,b#insecure", "rediss-sentinel://a,b/mm#insecure"] {
        let server = address(url).server;
        assert!(matches!(server.addr(), ConnectionAddr::TcpTls { insecure: true, .. }), "{url}");
    }
    assert!(refusal("rediss-cluster://a,b#canary").contains("#insecure"));
}

#[test]
fn user_and_password_are_the_servers() {
    let url = "redis-sentinel://app:p%40ss:w%2Frd@a,b:1/mm/2?protocol=resp3";
    let server = address(url).server;
    let settings = server.redis_settings();
    assert_eq!((settings.username(), settings.password()), (Some("app"), Some("p@ss:w/rd")));
    assert_eq!((settings.db(), settings.protocol().supports_resp3()), (2, true));
    for sentinel in group(url).sentinels {
        assert_eq!(sentinel.redis_settings().password(), None);
        assert_eq!(sentinel.redis_settings().db(), 0);
    }
}

#[test]
fn user_and_password_are_every_nodes() {
    let url = "redis-cluster://app:p%40ss:w%2Fr%2Cd@a,b:1/0?protocol=resp3";
    let server = address(url).server;
    let nodes = seeds(url);
    assert_eq!(nodes.iter().map(endpoint).collect::<Vec<_>>(), ["a:6379", "b:1"]);
    for settings in nodes.iter().chain([&server]).map(ConnectionInfo::redis_settings) {
        assert_eq!((settings.username(), settings.password()), (Some("app"), Some("p@ss:w/r,d")));
        assert_eq!((settings.db(), settings.protocol().supports_resp3()), (0, true));
    }
}

#[test]
fn the_order_of_sentinels_makes_no_other_store() {
    let store = |url: &str| address(url).store;
    assert_eq!(store("redis-sentinel://a,b/mm"), store("redis+sentinel://b,a:26379/mm/0"));
    assert_ne!(store("redis-sentinel://a,b/mm"), store("redis-sentinel://a,b/other"));
}

#[test]
fn the_order_of_nodes_makes_no_other_store() {
    let store = |url: &str| address(url).store;
    assert_eq!(store("redis-cluster://a,b"), store("redis+cluster://u:p@b,a:6379/0"));
    assert_ne!(store("redis-cluster://a"), store("redis://a"));
}

#[test]
fn a_flaw_in_a_url_is_named() {
    let name = "`redis-sentinel://user:password@host:26379,host:26379/NAME/0`";
    for url in [
        "redis-sentinel://a",
        "redis-sentinel://a,b/",
        "redis-sentinel://a//0",
        "redis-sentinel://a/a%20b",
    ] {
        assert!(refusal(url).contains(name), "{url}");
    }
    assert!(refusal("redis-sentinel://a,,b/mm").contains("a Sentinel has no host"));
    assert!(refusal("redis-sentinel:///mm").contains("a Sentinel has no host"));
    assert!(refusal("redis-sentinel://a,a:26379/mm").contains("named twice"));
    assert!(refusal("redis-sentinel://a/mm/x").contains("database"));
    assert!(refusal("redis://a,b/0").contains("redis-sentinel://"));
    assert!(refusal("redis://u:p/w@a").contains("`%2F`"));
    assert!(refusal("redis://u@a").contains("`user:password@`"));
    assert!(Address::parse("unix:///run/a@b").is_ok());
    assert!(
        refusal("redis-sentinel://u:p@a,u:p@b/mm").contains("once, in front of the first host")
    );
}

#[test]
fn a_flaw_in_a_cluster_url_is_named() {
    for url in ["redis-cluster://a,,b", "redis-cluster://", "redis-cluster://u:p@/0"] {
        assert!(refusal(url).contains("a node has no host; write `host:6379"), "{url}");
    }
    assert!(refusal("redis-cluster://a,a:6379").contains("a node is named twice"));
    for url in ["redis-cluster://a/1", "redis-cluster://a,b/15?prefix=x"] {
        assert!(refusal(url).contains("locks use database 0 alone"), "{url}");
    }
    for url in ["redis-cluster://a/mm", "redis-cluster://a/mm/0", "redis-cluster://a/0/"] {
        assert!(refusal(url).contains("a path is behind the hosts of a cluster"), "{url}");
    }
    assert!(refusal("redis://a,b/0").contains("`redis-cluster://host:6379,host:6379`"));
    assert!(refusal("redis-cluster://a:99999").contains("`redis-cluster://user:password@"));
    assert!(refusal("redis-cluster://u@a").contains("`user:password@`"));
    assert!(refusal("redis-cluster://u:p@a,u:p@b").contains("once, in front of the first host"));
    assert!(refusal("redis-cluster://u:p/w@a").contains("`%2F`"));
}

/// Each secret is where a wrong URL might show it.
#[test]
fn no_flaw_shows_a_secret() {
    let urls = [
        "redis-sentinel://canary",
        "redis-sentinel://u:canary@a",
        "redis-sentinel://u:123/canary@a",
        "redis-sentinel://canary@a/mm",
        "redis-sentinel://u:canary@a,u:canary@b/mm",
        "redis-sentinel://u:canary/w#canary@a/mm/0",
        "redis://canary@a",
        "unix://:@/canary@",
        "unix://:@/canary=@",
        "redis-sentinel://u:canary@a:99999/mm",
        "redis-sentinel://u:canary@a,,b/mm",
        "redis-sentinel://u:canary/canary@a/mm/x",
        "redis-sentinel://u:canary@a,a/mm",
        "redis-sentinel://u:canary@a/mm/canary",
        "redis-sentinel://u:canary%ff@a/mm/",
        "redis-cluster://u:canary",
        "redis-cluster://u:123/canary@a",
        "redis-cluster://canary@a",
        "redis-cluster://u:canary@a,u:canary@b",
        "redis-cluster://u:canary/w#canary@a/0",
        "redis-cluster://u:canary@a:99999",
        "redis-cluster://u:canary@a,,b",
        "redis-cluster://u:canary@a,a",
        "redis-cluster://u:canary@a/canary",
        "redis-cluster://u:canary@a/7",
        "redis-cluster://u:canary%ff@a",
        "redis://u:canary@a,b/0",
        "redis://u:canary@a:99999/0",
    ];
    for url in urls {
        let error = Address::parse(url).unwrap_err();
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains("canary"), "{url}: {shown}");
    }
}
