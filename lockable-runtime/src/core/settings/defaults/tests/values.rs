use std::time::Duration;

use super::own;
use crate::core::locker::Locker;
use crate::core::settings::defaults::Values;
use crate::core::types::error::LockErrorKind;

fn split(url: &str) -> (Values, String) {
    own(url).unwrap()
}

fn refusal(query: &str) -> String {
    let url = format!("redis://user:secret@host?{query}");
    let error = own(&url).unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidUrl, "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    error.to_string()
}

#[test]
fn a_url_sets_a_namespace() {
    let (defaults, url) = split("redis://host/0?namespace=shop%3Alockable&protocol=resp3");
    assert_eq!(defaults.namespace, Some("shop:lockable".to_owned()));
    assert_eq!((defaults.prefix, url), (None, "redis://host/0?protocol=resp3".to_owned()));
}

#[test]
fn a_url_sets_replicas() {
    let replicas = |url: &str| split(url).0.replicas;
    assert_eq!(replicas("redis://host/0?replicas=2"), Some(2));
    assert_eq!(replicas("redis://host/0?replicas=0"), Some(0));
    for query in ["replicas=", "replicas=-1", "replicas=256", "replicas=secret"] {
        assert!(refusal(query).contains("`replicas` is no number from 0 to 255"), "{query}");
    }
    let error = Locker::builder().url("memory://").replicas(1).connect_lazy().unwrap_err();
    assert_eq!(error.kind(), LockErrorKind::InvalidOption, "{error}");
    assert!(error.to_string().contains("leave that setting out"), "{error}");
}

#[test]
fn a_url_sets_prefix_and_expire() {
    let defaults = |url: &str| {
        let (Values { prefix, expire, .. }, url) = split(url);
        (prefix, expire.map(|expire| expire.as_millis()), url)
    };
    let shop = || Some("shop:".to_owned());
    let cases = [
        ("redis://host/0?prefix=shop:&expire=30s", shop(), Some(30_000), "redis://host/0"),
        ("rediss://host?expire=1m30s#insecure", None, Some(90_000), "rediss://host#insecure"),
        ("redis+unix:///s?db=1&prefix=shop%3a", shop(), None, "redis+unix:///s?db=1"),
        ("memory://a?expire=30&prefix=shop:\n", shop(), Some(30_000), "memory://a"),
        ("memory://a?expire=60000s", None, Some(60_000_000), "memory://a"),
        ("memory://a?expire=6001", None, Some(6_001_000), "memory://a"),
        ("memory://?prefix=", Some(String::new()), None, "memory://"),
    ];
    for (url, prefix, expire, rest) in cases {
        assert_eq!(defaults(url), (prefix, expire, rest.to_owned()), "{url}");
    }
}

#[test]
fn a_prefix_is_percent_decoded() {
    let prefix = |query: &str| split(&format!("memory://?prefix={query}")).0.prefix.unwrap();
    assert_eq!(prefix("%7Bshop%7D%3A%c3%A9"), "{shop}:é");
    assert_eq!(prefix("{shop}:a+b=c%3Fd"), "{shop}:a+b=c?d");
}

#[test]
fn a_wrong_default_is_named_and_not_shown() {
    for query in ["expire=secret", "expire=", "expire=1.5s", "expire=-1", "expire=99d99999d"] {
        assert!(refusal(query).starts_with("in the URL, `expire` is no duration"), "{query}");
    }
    for query in ["expire=60000", "expire=1000", "expire=0007000"] {
        assert!(refusal(query).contains("looks like milliseconds; write it with its unit"));
    }
    assert!(refusal("expire=9ms").contains("`expire` must be at least 10ms"));
    assert!(refusal("prefix=secret%7B").contains("`prefix` cannot begin a key"));
    for query in ["prefix=secret%", "prefix=%4", "prefix=%+f", "prefix=%é", "prefix=%ff"] {
        assert!(refusal(query).contains("`prefix` is not percent-encoded UTF-8"), "{query}");
    }
    assert!(refusal("prefix=secret&prefix=b").contains("`prefix` occurs twice"));
    assert!(refusal("prefix").contains("`prefix` has no value"));
    for query in ["namespace=", "namespace=%7Bsecret%7D", "namespace=secret%20a"] {
        assert!(refusal(query).starts_with("in the URL, `namespace` "), "{query}");
    }
    assert!(refusal("namespace=a&namespace=b").contains("`namespace` occurs twice"));
    assert!(refusal("protocol=resp3&protocol=resp2").contains("`protocol` occurs twice"));
}

#[test]
fn builder_settings_precede_those_of_the_url() {
    let builder = |url: &str| Locker::builder().url(url);
    let shown = |builder: crate::LockerBuilder| format!("{:?}", builder.connect_lazy().unwrap());
    let expected = |prefix: &str, namespace: &str, expire: u64| {
        let backend = "backend: \"memory://\"";
        format!(
            "Locker {{ {backend}, prefix: {prefix:?}, namespace: {namespace:?}, expire: {expire}s }}"
        )
    };
    let url = "memory://?prefix=shop:&expire=30s&namespace=shop:lockable";
    assert_eq!(shown(builder("memory://")), expected("disLock:", "lockable", 10));
    assert_eq!(shown(builder(url)), expected("shop:", "shop:lockable", 30));
    let both = Locker::builder()
        .prefix("jobs:")
        .namespace("jobs")
        .expire(Duration::from_secs(60))
        .url(url);
    assert_eq!(shown(both), expected("jobs:", "jobs", 60));
}

#[tokio::test]
async fn lockers_of_one_store_may_have_different_prefixes() {
    let locker = |query: &str| Locker::builder().url(format!("memory://one-store{query}"));
    let [plain, shop] = ["", "?prefix=shop:"].map(|query| locker(query).connect_lazy().unwrap());
    let _guard = shop.lock("order:7").acquire().await.unwrap();
    assert!(plain.inspect("order:7").await.unwrap().is_none());
    let same = locker("?prefix=").connect_lazy().unwrap();
    assert!(same.inspect("shop:order:7").await.unwrap().is_some());
}
