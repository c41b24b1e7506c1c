use proptest::prelude::*;

use super::*;
use crate::core::locker::{Locker, LockerBuilder};
use crate::core::types::credentials::Credentials;
use crate::core::types::error::LockErrorKind;
use crate::redis::Address;

fn own(url: &str) -> Result<(Values, String), LockError> {
    let (values, cut) = read(url, Readers::Lockers)?;
    assert_eq!(cut.ignored, [""; 0]);
    Ok((values, cut.url))
}

fn read(url: &str, readers: Readers) -> Result<(Values, Cut), LockError> {
    let mut values = Values::default();
    let cut = cut(url, readers, &mut values)?;
    Ok((values, cut))
}

fn refusals(url: &str) -> [String; 2] {
    [Readers::Lockers, Readers::Others].map(|readers| {
        let error = read(url, readers).map(|_| ()).unwrap_err();
        assert!(error.kind() == LockErrorKind::InvalidUrl, "{url}: {error}");
        error.to_string()
    })
}

#[test]
fn settings_of_the_client_library_stay() {
    for (url, rest) in [
        (
            "redis://u:p@host/0?prefix=shop:&protocol=resp3&expire=30s",
            "redis://u:p@host/0?protocol=resp3",
        ),
        ("rediss://host?prefix=#insecure", "rediss://host#insecure"),
        ("redis://host:6379?prefix=a@b", "redis://host:6379"),
        (
            "redis+unix:///run/a@b.sock?db=1&user=u&&pass=p\n",
            "redis+unix:///run/a@b.sock?db=1&user=u&pass=p\n",
        ),
        ("redis-cluster://a,b?protocol=%zz&replicas=1", "redis-cluster://a,b?protocol=%zz"),
        ("redis://host?&prefix=x&&", "redis://host"),
        ("memory://?prefix=shop:\n", "memory://"),
        ("redis://user:p%25w@host:6379/0", "redis://user:p%25w@host:6379/0"),
        ("memory://name", "memory://name"),
        ("no url", "no url"),
    ] {
        assert_eq!(own(url).unwrap().1, rest, "{url}");
    }
}

#[test]
fn sentinels_have_credentials_of_their_own() {
    let credentials = |query: &str| {
        let (mut values, url) = own(&format!("redis-sentinel://a/mm?{query}")).unwrap();
        assert_eq!(url.strip_prefix("redis-sentinel://a/mm").unwrap().find("sentinel"), None);
        values.sentinel_credentials().map_err(|error| error.to_string())
    };
    let both = credentials("sentinel_user=watch&sentinel_password=p%26w");
    assert_eq!(both, Ok(Some(Credentials::new("watch", "p&w"))));
    let password = credentials("protocol=resp3&sentinel_password=p@w");
    assert_eq!(password, Ok(Some(Credentials::password("p@w"))));
    assert_eq!(credentials("protocol=resp3"), Ok(None));
    let alone = credentials("sentinel_user=canary").unwrap_err();
    assert_eq!(alone, "in the URL, `sentinel_user` needs `sentinel_password` beside it");
}

const KINDS: [&str; 4] =
    ["memory://", "redis://host", "redis-sentinel://host/mm", "redis+unix:///s"];

fn all_read(url: &str) -> String {
    let (values, url) = own(url).unwrap();
    format!("{values:?} {:?}", Address::parse(&url))
}

#[test]
fn no_accepted_setting_is_ignored() {
    for url in KINDS {
        for Setting { name, .. } in UrlKind::of(url).settings() {
            assert_ne!(all_read(url), all_read(&format!("{url}?{name}=1")), "{url}: {name}");
        }
    }
}

#[test]
fn white_space_around_a_name_is_refused_everywhere() {
    let settings = |url| UrlKind::of(url).settings().map(move |setting| (url, setting.name));
    for (url, name) in KINDS.into_iter().flat_map(settings) {
        let meant = format!("write `{name}=`");
        for blank in [" ", "\t", "\n", "\u{a0}", "\u{2003}"] {
            for written in [format!("{name}{blank}"), format!("{blank}{name}")] {
                for error in refusals(&format!("{url}?{written}=1")) {
                    assert!(error.contains(&meant), "{url} {written:?}: {error}");
                }
            }
        }
    }
    let shared = read("redis://host?timeout =5", Readers::Others).unwrap();
    assert_eq!(shared.1.ignored, ["timeout"]);
}

#[test]
fn a_setting_that_is_nearly_ours_is_refused() {
    for (written, meant) in [
        ("redis://host?prefx=shop:", "prefix"),
        ("redis://host?Prefix=shop:", "prefix"),
        ("redis://host?Expire=5s", "expire"),
        ("redis://host?protocol=resp3&name_space=x", "namespace"),
        ("redis://host?%70refix=x", "prefix"),
        ("memory://?expiry=5s", "expire"),
        ("redis+unix:///s?DB=1", "db"),
        ("redis-cluster://a,b?replica=1", "replicas"),
        ("redis-sentinel://a/mm?sentinel-user=x", "sentinel_user"),
    ] {
        for error in refusals(written) {
            assert!(error.contains(&format!("did you mean `{meant}`?")), "{written}: {error}");
        }
    }
}

#[test]
fn what_belongs_elsewhere_in_a_url_is_refused_everywhere() {
    for (url, advice) in [
        ("redis://host?db=3", "`redis://host:6379/3`"),
        ("redis://host?password=canary", "in front of the host"),
        ("redis://host?sentinel_password=canary", "`redis-sentinel://` alone"),
        ("redis-cluster://host?sentinel_user=canary", "`redis-sentinel://` alone"),
        ("rediss://host?ssl_cert_reqs=none", "cannot be turned off"),
        ("redis://host?insecure=true", "`rediss://`"),
        ("redis://host?skipVerify=1", "`rediss://`"),
        ("redis://host??prefix=canary", "`&` between two settings"),
        ("redis://host?prefix=canary?expire=5s", "`&` between two settings"),
        ("redis://host/0?", "nothing is behind the `?`"),
        ("redis://host/0#prefix=canary", "nothing behind a `#`"),
        ("redis://host/0#insecure", "nothing behind a `#`"),
        ("memory://name#a", "nothing behind a `#`"),
        ("memory://?replicas=1", "has no replicas"),
        ("memory://user:canary@x", "`memory://name`"),
    ] {
        for error in refusals(url) {
            assert!(error.contains(advice) && !error.contains("canary"), "{url}: {error}");
        }
    }
}

#[test]
fn settings_of_other_programs_are_refused_where_no_other_program_reads() {
    let error = own("redis://host?timeout=5&x=1").unwrap_err().to_string();
    assert!(error.contains("`timeout` is no setting; the settings of this URL are"), "{error}");
    let shared = read("redis://host/0?timeout=5&prefix=shop:&x#insecure", Readers::Others);
    assert!(shared.is_err());
    let shared = read("rediss://host/0?timeout=5&prefix=shop:&x#insecure", Readers::Others);
    let (values, Cut { url, ignored }) = shared.unwrap();
    assert_eq!((&*url, ignored), ("rediss://host/0#insecure", vec!["timeout".into(), "x".into()]));
    assert_eq!(values.prefix.as_deref(), Some("shop:"));
}

#[test]
fn no_part_of_a_password_is_shown() {
    for url in [
        "redis://u:canary?canary@host",
        "redis://u:1?canary=canary@host",
        "redis://u:1?canary=2&x=3@host",
        "redis://u:1?canary?x@host",
        "redis://u:1#canary@host",
        "redis://u:canary@canary#2@host",
        "redis://u:?prefix=canary@",
        "unix://u:/?prefix=canary@",
        "memory://u:?prefix=canary@host",
        "redis-sentinel://u:,b/name?prefix=canary@host",
        "redis-sentinel://a/mm?sentinel_password=canary%",
        "redis-sentinel://a/mm?sentinel_password=canary?canary@host",
        "redis-sentinel://a/mm?sentinel_password=canary&sentinel_password=canary",
        "redis-sentinel://a/mm?sentinel_password=canary&canary",
        "redis+unix:///s?pass=canary&canary",
        "redis://host?canary%00=1",
    ] {
        for error in refusals(url) {
            assert!(!error.contains("canary"), "{url}: {error}");
        }
    }
}

#[test]
fn the_rest_of_a_password_is_not_shown_as_a_setting() {
    let error = own("redis-sentinel://a/mm?sentinel_password=x&canary=1").unwrap_err().to_string();
    assert!(error.contains("write an `&` of a password as `%26`"), "{error}");
    assert!(!error.contains("canary"), "{error}");
    let url = "redis-sentinel://a/mm?sentinel_password=x&timeout=5";
    assert_eq!(read(url, Readers::Others).unwrap().1.ignored, ["timeout"]);
}

#[test]
fn a_password_is_not_shown_as_a_scheme() {
    for url in ["user:canary://x@host", "user:://canary@host", "canary@://host"] {
        let error = Locker::builder().url(url).connect_lazy().unwrap_err().to_string();
        assert!(error.starts_with("the URL has no scheme; write one of"), "{url}: {error}");
    }
}

fn part() -> impl Strategy<Value = String> {
    let parts = [
        "://",
        "@",
        ":",
        "/",
        "?",
        "#",
        "&",
        "=",
        "%",
        "%4",
        "%2F",
        "%00",
        ",",
        "[",
        "]",
        "[::1]",
        "host",
        "6379",
        "99999",
        "mm",
        "0",
        "-1",
        "prefix",
        "namespace",
        "expire",
        "30s",
        "60000",
        "{",
        "db",
        "protocol",
        "resp3",
        "user",
        "sentinel_password",
        "insecure",
        "timeout",
        " ",
        "\n",
    ];
    prop_oneof![prop::sample::select(parts.to_vec()).prop_map(str::to_owned), "\\PC{0,5}|.{0,3}"]
}

fn parts() -> impl Strategy<Value = String> {
    proptest::collection::vec(part(), 0..8).prop_map(|parts| parts.concat())
}

fn scheme() -> impl Strategy<Value = String> {
    let base = "redis|rediss|valkey|valkeys|memory|unix|redis\\+unix|http|";
    (base, "|[-+](sentinel|cluster)").prop_map(|(base, ending)| base + &ending)
}

fn shown(builder: LockerBuilder) -> String {
    match builder.connect_lazy() {
        Ok(locker) => format!("{locker:?} {}", locker.context().backend.name()),
        Err(error) => {
            assert_eq!(error.kind(), LockErrorKind::InvalidUrl, "{error}");
            format!("{error} {error:?}")
        }
    }
}

proptest! {
    #[test]
    fn no_url_shows_its_password(
        scheme in scheme(), user in "u?", before in parts(), after in parts(), rest in parts(),
    ) {
        // Behind what is a port, it may be what is meant.
        let behind_port = before.trim_start_matches(|digit: char| digit.is_ascii_digit());
        if behind_port != before && behind_port.starts_with(['/', '?', ',']) {
            return Ok(());
        }
        let url = format!("{scheme}://{user}:{before}canary{after}@{rest}");
        for builder in [Locker::builder().url(&*url), Locker::builder().shared_url(&*url)] {
            let shown = shown(builder);
            prop_assert!(!shown.contains("canary"), "{}: {}", url, shown);
        }
    }

    #[test]
    fn any_text_is_a_url_or_refused(scheme in scheme(), rest in parts(), text in ".{0,60}") {
        for url in [format!("{scheme}://{rest}"), format!("{scheme}:{rest}"), text] {
            shown(Locker::builder().url(&*url));
            shown(Locker::builder().shared_url(&*url));
        }
    }
}

mod values;
