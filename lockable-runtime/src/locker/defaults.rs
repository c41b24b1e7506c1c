//! The defaults of a locker that its URL sets: `redis://host:6379/0?prefix=shop:&expire=30s`.

use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::Ttl;
use crate::types::parameters::{Parameter, invalid, take_from};
use crate::types::written::Written;

/// What a URL sets. The builder's own settings have priority.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Defaults {
    pub(super) prefix: Option<String>,
    pub(super) namespace: Option<Namespace>,
    pub(super) expire: Option<Ttl>,
    pub(super) replicas: Option<u8>,
}

impl Defaults {
    /// Takes the defaults out of a URL. The text is the URL of the backend, with all other parameters.
    ///
    /// # Errors
    /// When a default has a value that it cannot have. The message never shows a value: in a URL that is
    /// written wrongly, it may be a part of the password.
    pub(super) fn split_from(url: &str) -> Result<(Self, String), LockError> {
        let mut defaults = Self::default();
        let url = take_from(url, |parameter| defaults.take(parameter))?;
        Ok((defaults, url))
    }

    /// `false` when the parameter is for the backend.
    fn take(&mut self, parameter: &Parameter<'_>) -> Result<bool, LockError> {
        let value = || parameter.decoded();
        match parameter.name {
            "prefix" => parameter.set(&mut self.prefix, prefix(value()?)?)?,
            "namespace" => parameter.set(&mut self.namespace, namespace(&value()?)?)?,
            "expire" => parameter.set(&mut self.expire, expire(&value()?)?)?,
            "replicas" => parameter.set(&mut self.replicas, replicas(&value()?)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn prefix(text: String) -> Result<String, LockError> {
    if LockKey::prefixed(&text, "key").is_ok() {
        return Ok(text);
    }
    Err(invalid("`prefix` cannot begin a key: it is too long, or its braces are no hash tag"))
}

fn namespace(text: &str) -> Result<Namespace, LockError> {
    Namespace::new(text).map_err(|error| invalid(&error.to_string()))
}

fn expire(text: &str) -> Result<Ttl, LockError> {
    let flaw = "`expire` is no duration; write `30s`, `1500ms`, `1m30s` or a number of seconds";
    let Written { duration, doubtful } = Written::parse(text).map_err(|_| invalid(flaw))?;
    if doubtful.is_some() {
        return Err(invalid(
            "`expire` without a unit is a number of seconds, and this one looks like milliseconds; write \
             it with its unit, such as `60s`",
        ));
    }
    Ttl::new("expire", duration).map_err(|error| invalid(&error.to_string()))
}

fn replicas(text: &str) -> Result<u8, LockError> {
    text.parse().map_err(|_| invalid("`replicas` is no number from 0 to 255"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::locker::Locker;
    use crate::types::error::LockErrorKind;

    fn split(url: &str) -> (Defaults, String) {
        Defaults::split_from(url).unwrap()
    }

    fn refusal(query: &str) -> String {
        let url = format!("redis://user:secret@host?{query}");
        let error = Defaults::split_from(&url).unwrap_err();
        assert!(error.kind() == LockErrorKind::InvalidUrl, "{error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        error.to_string()
    }

    #[test]
    fn a_url_sets_a_namespace() {
        let (defaults, url) = split("redis://host/0?namespace=shop%3Alockable&x=1");
        assert_eq!(defaults.namespace, Some(Namespace::new("shop:lockable").unwrap()));
        assert_eq!((defaults.prefix, url), (None, "redis://host/0?x=1".to_owned()));
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
            let (Defaults { prefix, expire, .. }, url) = split(url);
            (prefix, expire.map(|ttl| ttl.duration().as_millis()), url)
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
    fn the_rest_of_a_url_stays_as_it_is() {
        let urls = [
            "redis://user:p%25w@host:6379/0",
            "redis://host?",
            "redis://host?protocol=resp3&&x=%zz#insecure",
            "memory://name#a?prefix=b",
            "memory://name?PREFIX=a&prefixes=b",
            "no url",
        ];
        for url in urls {
            assert_eq!(split(url), (Defaults::default(), url.to_owned()));
        }
    }

    #[test]
    fn a_prefix_is_percent_decoded() {
        let prefix = |query: &str| split(&format!("memory://?prefix={query}")).0.prefix.unwrap();
        assert_eq!(prefix("%7Bshop%7D%3A%c3%A9"), "{shop}:é");
        assert_eq!(prefix("{shop}:a+b=c?d"), "{shop}:a+b=c?d");
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
    }

    #[test]
    fn builder_settings_precede_those_of_the_url() {
        let builder = |url: &str| Locker::builder().url(url);
        let shown = |builder: crate::LockerBuilder| {
            let locker = builder.connect_lazy().unwrap();
            let namespace = locker.0.namespace.as_str().to_owned();
            (locker.prefix().to_owned(), namespace, locker.0.ttl.duration())
        };
        let expected = |prefix: &str, namespace: &str, expire| {
            (prefix.to_owned(), namespace.to_owned(), expire)
        };
        let [ten, thirty, sixty] = [10, 30, 60].map(Duration::from_secs);
        let url = "memory://?prefix=shop:&expire=30s&namespace=shop:lockable";
        assert_eq!(shown(builder("memory://")), expected("disLock:", "lockable", ten));
        assert_eq!(shown(builder(url)), expected("shop:", "shop:lockable", thirty));
        let both = Locker::builder().prefix("jobs:").namespace("jobs").expire(sixty).url(url);
        assert_eq!(shown(both), expected("jobs:", "jobs", sixty));
    }

    #[tokio::test]
    async fn lockers_of_one_store_may_have_different_prefixes() {
        let locker = |query: &str| Locker::builder().url(format!("memory://one-store{query}"));
        let [plain, shop] =
            ["", "?prefix=shop:"].map(|query| locker(query).connect_lazy().unwrap());
        let _guard = shop.lock("order:7").acquire().await.unwrap();
        assert!(plain.inspect("order:7").await.unwrap().is_none());
        let same = locker("?prefix=").connect_lazy().unwrap();
        assert!(same.inspect("shop:order:7").await.unwrap().is_some());
    }
}
