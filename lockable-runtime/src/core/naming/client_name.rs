//! What a process calls itself at its server: `lockable:<6 hex digits>:<service>@<host>:<pid>`.
//!
//! See "How does `CLIENT LIST` show which process holds a lock?" in DESIGN.md.

use std::env;
use std::fmt::{self, Write};
use std::process;

#[cfg(any(feature = "redis", test))]
use crate::core::text::percent::unescaped;
use crate::core::types::error::LockError;
use crate::core::types::id::ProcessId;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientName {
    pub(crate) process: ProcessId,
    pub(crate) service: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
}

const START: &str = "lockable:";

impl ClientName {
    /// The name of this process. A service without a name is called as OpenTelemetry calls it, or else as its program.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn current(service: Option<&str>) -> Result<Self, LockError> {
        let service = service.map(ToOwned::to_owned).or_else(of_telemetry).or_else(of_program);
        Ok(Self {
            process: ProcessId::current()?,
            service: cut(service.unwrap_or_else(|| UNKNOWN.to_owned())),
            host: cut(host().unwrap_or_else(|| UNKNOWN.to_owned())),
            pid: process::id(),
        })
    }

    /// `None` for the name of a connection that is not ours.
    #[cfg(any(feature = "redis", test))]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (process, rest) = text.strip_prefix(START)?.split_once(':')?;
        let (service, rest) = rest.split_once('@')?;
        let (host, pid) = rest.rsplit_once(':')?;
        let service = unescaped(service)?;
        let host = unescaped(host)?;
        Some(Self { process: process.parse().ok()?, service, host, pid: pid.parse().ok()? })
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{START}{}:", self.process)?;
        encode(&self.service, f)?;
        f.write_char('@')?;
        encode(&self.host, f)?;
        write!(f, ":{}", self.pid)
    }
}

const UNKNOWN: &str = "unknown";

const MAX_BYTES: usize = 64;

fn cut(mut text: String) -> String {
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

fn of_telemetry() -> Option<String> {
    env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty())
}

fn of_program() -> Option<String> {
    let program = env::current_exe().ok()?;
    Some(program.file_name()?.to_string_lossy().into_owned())
}

#[cfg(all(feature = "redis", unix))]
fn host() -> Option<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(host).filter(|host| !host.is_empty())
}

#[cfg(not(all(feature = "redis", unix)))]
fn host() -> Option<String> {
    env::var("COMPUTERNAME").or_else(|_| env::var("HOSTNAME")).ok()
}

/// Servers take no blanks in a name; a separator would end a part of it.
fn encode(text: &str, out: &mut impl Write) -> fmt::Result {
    text.bytes().try_for_each(|byte| match byte {
        b':' | b'@' | b'%' => write!(out, "%{byte:02X}"),
        b'!'..=b'~' => out.write_char(char::from(byte)),
        _ => write!(out, "%{byte:02X}"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let process: ProcessId = "0a1b2c".parse().unwrap();
        for (service, host) in [("shop", "web-3"), ("a b:c@d%", "h\u{e9}"), ("", ""), ("\n", "::1")]
        {
            let (service, host) = (service.to_owned(), host.to_owned());
            let name = ClientName { process, service, host, pid: 7 };
            let text = name.to_string();
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(ClientName::parse(&text), Some(name), "{text}");
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        let names = [
            "",
            "lockable",
            "lockable:",
            "lockable:0a1b2c",
            "lockable:0a1b2c:shop@host",
            "lockable:0a1b2:shop@host:7",
            "lockable:0a1b2c:shop@host:x",
            "lockable:0a1b2c:%zz@host:7",
            "lockable:0a1b2c:%4@host:7",
            "sidekiq:0a1b2c:shop@host:7",
        ];
        for name in names {
            assert_eq!(ClientName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_without_a_name_is_called_as_its_program() {
        let name = ClientName::current(None).unwrap();
        assert!(!name.service.is_empty() && name.pid == process::id(), "{name}");
        let named = ClientName::current(Some("checkout")).unwrap();
        assert_eq!((named.process, named.service.as_str()), (name.process, "checkout"));
        let long = ClientName::current(Some(&"\u{e9}a".repeat(50_000))).unwrap();
        assert_eq!(long.service, "\u{e9}a".repeat(21));
    }
    proptest! {
        #[test]
        fn any_name_is_read_back_or_not_ours(
            service in ".{0,20}",
            host in ".{0,20}",
            other in "lockable:[0-9a-f]{0,7}:?.{0,9}@?.{0,9}:?[0-9]{0,11}|.{0,40}",
        ) {
            let process = "0a1b2c".parse().unwrap();
            let name = ClientName { process, service, host, pid: 7 };
            prop_assert_eq!(ClientName::parse(&name.to_string()), Some(name));
            if let Some(name) = ClientName::parse(&other) {
                prop_assert_eq!(ClientName::parse(&name.to_string()), Some(name));
            }
        }
    }
}
