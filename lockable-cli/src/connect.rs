//! The locker that the arguments and the environment name.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "tls")]
use lockable_runtime::Pem;
use lockable_runtime::{Credentials, Locker, LockerBuilder, Secret};

use crate::arguments::Connection;
use crate::environment::{path, refuse_forgotten, variable};
use crate::failure::Failure;
use crate::output::shell::quoted;

/// Makes the locker, which connects at its first use.
pub(crate) fn locker(connection: &Connection) -> Result<Locker, Failure> {
    Ok(builder(connection)?.connect_lazy()?)
}

/// Where the locks are, without users, passwords and settings.
pub(crate) fn place(connection: &Connection) -> Result<String, Failure> {
    let url = without_user(&url(connection)?.0);
    Ok(url.split('?').next().unwrap_or_default().to_owned())
}

/// A command of `lockable` about these words, for the same locks.
pub(crate) fn command(connection: &Connection, verb: &str, words: &[&str]) -> String {
    // What begins with a dash would be taken for an option.
    let dashes = words.iter().any(|word| word.starts_with('-')).then(|| "--".to_owned());
    let words = dashes.into_iter().chain(words.iter().map(|word| quoted(word)));
    let words = [verb.to_owned()].into_iter().chain(options(connection)).chain(words);
    words.fold("lockable".to_owned(), |line, word| line + " " + &word)
}

/// Those that say where the locks are.
fn options(connection: &Connection) -> impl Iterator<Item = String> {
    let Connection { url, prefix, namespace, .. } = connection;
    let Connection { password_file, sentinel_password_file, .. } = connection;
    let Connection { ca_file, cert_file, key_file, .. } = connection;
    let texts = [("--url", url), ("--prefix", prefix), ("--namespace", namespace)];
    let texts = texts.map(|(name, text)| (name, text.clone()));
    let files = [
        ("--password-file", password_file),
        ("--sentinel-password-file", sentinel_password_file),
        ("--ca-file", ca_file),
        ("--cert-file", cert_file),
        ("--key-file", key_file),
    ];
    let text = |file: &Option<PathBuf>| Some(file.as_ref()?.to_string_lossy().into_owned());
    let files = files.map(|(name, file)| (name, text(file)));
    let given = texts.into_iter().chain(files).filter_map(|(name, value)| Some((name, value?)));
    given.flat_map(|(name, value)| [name.to_owned(), quoted(&value)])
}

fn builder(connection: &Connection) -> Result<LockerBuilder, Failure> {
    if connection.timeout.0 < SHORTEST {
        return Err(Failure::usage("--timeout must be at least 10ms"));
    }
    let (url, is_shared) = url(connection)?;
    let builder = Locker::builder();
    let password_file = path(connection.password_file.as_ref(), "LOCKABLE_PASSWORD_FILE");
    let url_alone = if password_file.is_some() { without_user(&url) } else { url.clone() };
    let builder = if is_shared { builder.shared_url(url_alone) } else { builder.url(url_alone) };
    let mut builder = builder.command_deadline(connection.timeout.0);
    builder = builder.connect_deadline(connection.timeout.0);
    if let Some(prefix) = &connection.prefix {
        builder = builder.prefix(prefix);
    }
    if let Some(namespace) = &connection.namespace {
        builder = builder.namespace(namespace);
    }
    if let Some(file) = password_file {
        let user = user_info(&url).and_then(|info| info.split(':').next());
        builder = builder.credentials(password_in(file, user));
    }
    if let Some(file) =
        path(connection.sentinel_password_file.as_ref(), "LOCKABLE_SENTINEL_PASSWORD_FILE")
    {
        builder = builder.sentinel_credentials(password_in(file, setting(&url, "sentinel_user")));
    }
    with_certificates(builder, connection)
}

/// The URL, and whether it is one that other programs read too.
fn url(connection: &Connection) -> Result<(String, bool), Failure> {
    if connection.url.as_deref().is_some_and(has_password) {
        return Err(Failure::usage(PASSWORD_IN_ARGUMENT));
    }
    refuse_forgotten()?;
    let own =
        connection.url.clone().map_or_else(|| variable("LOCKABLE_URL"), |url| Ok(Some(url)))?;
    let shared = if own.is_none() { variable("REDIS_URL")? } else { None };
    let is_shared = shared.is_some();
    let url = own.or(shared).ok_or_else(|| Failure::usage(NO_URL))?;
    if url.starts_with("memory:") {
        return Err(Failure::usage(MEMORY));
    }
    if cfg!(not(feature = "tls")) && url.starts_with("rediss") {
        return Err(Failure::usage(NO_TLS));
    }
    Ok((url, is_shared))
}

/// Whether everyone on this machine could read a password in the list of processes.
fn has_password(url: &str) -> bool {
    let (start, query) = url.split_once('?').unwrap_or((url, ""));
    let user = user_info(start).is_some_and(|info| info.contains(':'));
    let mut names = query.split('&').filter_map(|setting| setting.split('=').next());
    user || names.any(|name| decoded(name).to_lowercase().contains("pass"))
}

/// What is before the last `@` of the part of a URL that names users and hosts.
fn user_info(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(info, _)| info)
}

/// A user in a URL has a password in it too, or is refused.
fn without_user(url: &str) -> String {
    let user = user_info(url).map(|user| format!("://{user}@"));
    user.map_or_else(|| url.to_owned(), |user| url.replacen(&user, "://", 1))
}

/// The file is read for each connection, so that a password may change.
fn password_in(file: PathBuf, user: Option<&str>) -> Secret<Credentials> {
    match user.filter(|user| !user.is_empty()) {
        Some(user) => Credentials::file(decoded(user), file),
        None => Credentials::password_file(file),
    }
}

/// The value of a setting of a URL, as it is written there. Behind it there may be a `#`, and the white space of the
/// file or the variable that the URL was read from.
fn setting<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    query
        .split('&')
        .filter_map(|setting| setting.split_once('='))
        .find(|it| it.0 == name)
        .map(|(_, value)| value.trim_end())
}

/// A user's name in a URL is percent-encoded.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.split_at_checked(2).filter(|(digits, _)| is_hex(digits));
        match digits.map(|(digits, rest)| (u8::from_str_radix(digits, 16), rest)) {
            Some((Ok(byte), rest)) => {
                bytes.push(byte);
                bytes.extend(rest.bytes());
            }
            _ => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A number may have a sign in front of it, and a percent-encoded byte has none.
fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn with_certificates(
    builder: LockerBuilder,
    connection: &Connection,
) -> Result<LockerBuilder, Failure> {
    let roots = path(connection.ca_file.as_ref(), "LOCKABLE_CA_FILE");
    let certificate = path(connection.cert_file.as_ref(), "LOCKABLE_CERT_FILE");
    let key = path(connection.key_file.as_ref(), "LOCKABLE_KEY_FILE");
    let own = match (certificate, key) {
        (Some(certificate), Some(key)) => Some([certificate, key]),
        (None, None) => None,
        _ => return Err(Failure::usage(HALF_A_CERTIFICATE)),
    };
    trusting(builder, roots, own)
}

#[cfg(feature = "tls")]
#[expect(clippy::unnecessary_wraps, reason = "as without TLS")]
fn trusting(
    mut builder: LockerBuilder,
    roots: Option<PathBuf>,
    own: Option<[PathBuf; 2]>,
) -> Result<LockerBuilder, Failure> {
    if let Some(file) = roots {
        builder = builder.root_certificate(Pem::file(file));
    }
    if let Some(files) = own {
        builder = builder.client_certificate(Pem::files(files));
    }
    Ok(builder)
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::needless_pass_by_value, reason = "it is called as the one with TLS")]
fn trusting(
    builder: LockerBuilder,
    roots: Option<PathBuf>,
    own: Option<[PathBuf; 2]>,
) -> Result<LockerBuilder, Failure> {
    if roots.is_some() || own.is_some() {
        return Err(Failure::usage(NO_TLS));
    }
    Ok(builder)
}

const PASSWORD_IN_ARGUMENT: &str = "a password in --url can be read by everyone in the list of \
    processes; put the URL into LOCKABLE_URL, or the password into a file for --password-file";

const NO_TLS: &str = "TLS is not in this build";

const HALF_A_CERTIFICATE: &str = "a certificate and its key are needed both: write --cert-file and --key-file, or set \
    LOCKABLE_CERT_FILE and LOCKABLE_KEY_FILE";

const NO_URL: &str = "no URL: set LOCKABLE_URL, or write --url redis://HOST:6379";

const MEMORY: &str = "locks in `memory://` live inside of one process, so no other program can see \
    them; write the URL of a Redis server";

/// No server answers sooner over a network.
const SHORTEST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::arguments::parse;

    #[test]
    fn a_password_in_a_url_is_found() {
        for url in [
            "redis://:secret@host",
            "rediss://app:se@cret@host:6379/0",
            "redis-sentinel://s1,s2/main?sentinel_password=x",
            "redis+unix:///run/redis.sock?db=0&%70ass=x",
        ] {
            assert!(has_password(url), "{url}");
        }
        for url in ["redis://host:6379", "redis://app@host:6379/0", "redis+unix:///run/a:b@c"] {
            assert!(!has_password(url), "{url}");
        }
    }

    #[test]
    fn a_user_is_read_as_the_url_encodes_it() {
        assert_eq!(user_info("redis://a%40b@host/"), Some("a%40b"));
        assert_eq!(without_user("redis://a%40b@h:1/0"), "redis://h:1/0");
        assert_eq!(without_user("redis://h:1/0"), "redis://h:1/0");
        assert_eq!(without_user("redis://app:se@cret@h:1"), "redis://h:1");
        assert_eq!(decoded("a%40b%zz%+5%4"), "a@b%zz%+5%4");
        let url = "redis-sentinel://s1,s2/main?prefix=x&sentinel_user=w%40b";
        assert_eq!(setting(url, "sentinel_user"), Some("w%40b"));
        assert_eq!(setting(url, "sentinel_password"), None);
        for behind in ["\n", "#insecure", " #insecure\n", "&prefix=x"] {
            let url = format!("rediss-sentinel://s1,s2/main?sentinel_user=w{behind}");
            assert_eq!(setting(&url, "sentinel_user"), Some("w"), "{url:?}");
        }
    }

    fn offered(typed: &str, key: &str) -> String {
        let typed = format!("lockable show {typed} job");
        let parsed = parse(typed.split_whitespace().map(OsString::from));
        let Ok(arguments) = parsed else { unreachable!() };
        command(&arguments.connection, "show", &[key])
    }

    #[test]
    fn a_key_like_an_option_is_behind_dashes() {
        assert_eq!(offered("", "order:7"), "lockable show order:7");
        assert_eq!(offered("--prefix p:", "-k"), "lockable show --prefix p: -- -k");
    }

    #[test]
    fn what_leads_to_the_server_is_offered_too() {
        let typed = "--namespace shop --sentinel-password-file p --ca-file ca.pem --cert-file a.pem --key-file b.pem";
        assert_eq!(offered(typed, "k"), format!("lockable show {typed} k"));
    }
}
