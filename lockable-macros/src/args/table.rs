//! The grammar.

use syn::Result;
use syn::parse::ParseStream;

use crate::args::options::LockArgs;
use crate::args::wait::Wait;
use crate::args::{lease, permits, value, wait};
use crate::mistakes::Mistakes;

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) example: &'static str,
    /// Names elsewhere, in lower case and without underscores.
    pub(super) elsewhere: &'static [&'static str],
    pub(super) read: Read,
}

pub(super) enum Read {
    Word(fn(&mut LockArgs)),
    /// A name alone, or with `=` and a value.
    WordOrValue(fn(&mut LockArgs), fn(&mut LockArgs, ParseStream<'_>) -> Result<()>),
    /// A name, `=` and a value.
    Value(fn(&mut LockArgs, ParseStream<'_>, &mut Mistakes) -> Result<()>),
}

pub(super) const TABLE: [Row; 18] = [
    Row {
        name: "key",
        example: "key = \"order:{id}\"",
        elsewhere: &["name", "resource", "lockname", "lockkey", "value", "template"],
        read: Read::Value(|args, input, mistakes| {
            value::key(input, mistakes).map(|value| args.key = Some(value))
        }),
    },
    Row {
        name: "keys",
        example: "keys = [\"account:{from}\", \"account:{to}\"]",
        elsewhere: &["names", "resources", "multi", "multilock", "all", "lockkeys"],
        read: Read::Value(|args, input, mistakes| {
            value::keys(input, mistakes).map(|value| args.key = Some(value))
        }),
    },
    Row {
        name: "prefix",
        example: "prefix = \"shop:\"",
        elsewhere: &["keyprefix", "namespace"],
        read: Read::Value(|args, input, _| {
            value::text(input).map(|value| args.prefix = Some(value))
        }),
    },
    Row {
        name: "expire",
        example: "expire = 10",
        elsewhere: &[
            "leasetime",
            "lease",
            "lockatmostfor",
            "ttl",
            "timeout",
            "expiry",
            "expiration",
            "validity",
            "px",
            "ex",
            "duration",
        ],
        read: Read::Value(|args, input, _| {
            lease::expire(input).map(|value| args.lease.expire = Some(value))
        }),
    },
    Row {
        name: "wait",
        example: "wait = \"3s\"",
        elsewhere: &[
            "waittime",
            "waittimeout",
            "waitlimit",
            "waitfor",
            "waitatmost",
            "maxwait",
            "maxwaittime",
            "acquiretimeout",
            "acquiretime",
            "acquirewait",
            "lockwaittime",
            "lockwaittimeout",
            "locktimeout",
            "blockingtimeout",
            "trytimeout",
            "trylock",
            "tries",
            "retry",
            "retries",
            "retrycount",
            "maxretries",
            "attempts",
            "maxattempts",
            "retrydelay",
            "retryinterval",
        ],
        read: Read::WordOrValue(
            |args| args.wait.wait = Some(Wait::Forever),
            |args, input| wait::limit(input).map(|limit| args.wait.wait = Some(limit)),
        ),
    },
    Row {
        name: "fair",
        example: "wait, fair",
        elsewhere: &["fairlock", "fairness", "isfair", "fifo", "queue", "ordered"],
        read: Read::Word(|args| args.wait.fair = true),
    },
    Row {
        name: "blocking",
        example: "wait, blocking",
        elsewhere: &["block", "mayblock", "allowblocking", "spawnblocking", "blockinplace"],
        read: Read::Word(|args| args.wait.blocking = true),
    },
    Row {
        name: "permits",
        example: "permits = 3",
        elsewhere: &[
            "semaphore",
            "shared",
            "readlock",
            "readers",
            "limit",
            "concurrency",
            "maxconcurrency",
            "maxconcurrent",
            "maxholders",
            "slots",
            "capacity",
        ],
        read: Read::Value(|args, input, _| {
            permits::permits(input).map(|value| args.permits = Some(value))
        }),
    },
    Row {
        name: "renew",
        example: "renew",
        elsewhere: &[
            "renewal",
            "autorenew",
            "autorenewal",
            "autoextend",
            "extend",
            "keepalive",
            "refresh",
            "heartbeat",
            "watchdog",
        ],
        read: Read::Word(|args| args.lease.renew = true),
    },
    Row {
        name: "max_hold",
        example: "max_hold = \"5m\"",
        elsewhere: &[
            "maxholdtime",
            "maxduration",
            "maxlease",
            "maxlifetime",
            "holdatmost",
            "holdatmostfor",
        ],
        read: Read::Value(|args, input, _| {
            lease::max_hold(input).map(|value| args.lease.max_hold = Some(value))
        }),
    },
    Row {
        name: "min_hold",
        example: "min_hold = \"3s\"",
        elsewhere: &[
            "minholdtime",
            "minduration",
            "minlease",
            "lockatleastfor",
            "holdatleast",
            "holdatleastfor",
        ],
        read: Read::Value(|args, input, _| {
            lease::min_hold(input).map(|value| args.lease.min_hold = Some(value))
        }),
    },
    Row {
        name: "once",
        example: "once = \"20h\"",
        elsewhere: &["oncefor", "onceper", "runonce", "onlyonce", "keep", "keepfor", "dedupe"],
        read: Read::Value(|args, input, _| {
            lease::once(input).map(|value| args.lease.once = Some(value))
        }),
    },
    Row {
        name: "on_busy",
        example: "on_busy = skip",
        elsewhere: &["oncontended", "busy", "ifbusy", "fallback", "otherwise", "iflocked"],
        read: Read::Value(|args, input, _| {
            value::on_busy(input).map(|value| args.on_busy = Some(value))
        }),
    },
    Row {
        name: "on_error",
        example: "on_error = |err| Err(err.into())",
        elsewhere: &["error", "onfailure", "onfail", "maperr", "orelse"],
        read: Read::Value(|args, input, _| {
            value::on_error(input).map(|value| args.on_error = Some(value))
        }),
    },
    Row {
        name: "on_lost",
        example: "on_lost = finish",
        elsewhere: &["onloss", "onlockloss", "onlocklost", "onleaselost", "lost", "iflost"],
        read: Read::Value(|args, input, _| {
            lease::on_lost(input).map(|value| args.lease.on_lost = Some(value))
        }),
    },
    Row {
        name: "guard",
        example: "guard = lock",
        elsewhere: &["handle", "lock", "bind", "token", "as"],
        read: Read::Value(|args, input, _| {
            value::guard(input).map(|value| args.guard = Some(value))
        }),
    },
    Row {
        name: "locker",
        example: "locker = self.locks",
        elsewhere: &["manager", "lockmanager", "client", "redis", "provider", "backend"],
        read: Read::Value(|args, input, _| input.parse().map(|value| args.locker = Some(value))),
    },
    Row {
        name: "crate",
        example: "crate = ::lockable_runtime",
        elsewhere: &["krate", "path", "cratepath", "runtime"],
        read: Read::Value(|args, input, _| {
            value::path(input).map(|value| args.krate = Some(value))
        }),
    },
];
