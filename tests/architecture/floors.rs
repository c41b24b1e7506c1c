//! The floor plan of `lockable-runtime/src`.

/// The order of each folder, top first: a file or a room imports from those below it only.
///
/// `mod` is the folder's own `mod.rs`. The test of this list, `lib.rs` and CONTRIBUTING.md follow it.
pub(crate) const FLOORS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "guide",
            "attribute",
            "testing",
            "locker",
            "hold",
            "lease",
            "waiters",
            "releaser",
            "worker",
            "telemetry",
            "backend",
            "background",
            "types",
            "check",
            "fencing",
            "request_id",
        ],
    ),
    ("attribute", &["mod", "answers", "values", "returned"]),
    ("testing", &["mod", "locks", "staged", "internals"]),
    ("locker", &["global", "scope", "blocking", "builder", "mod", "request", "acquire", "inspect"]),
    ("locker/acquire", &["mod", "in_line", "acquirer"]),
    ("hold", &["mod", "run", "guard", "reentry"]),
    ("lease", &["renewal", "errors", "mod", "state", "loss", "schedule"]),
    ("lease/renewal", &["mod", "task"]),
    ("waiters", &["mod", "asking", "turn", "line"]),
    ("releaser", &["shutdown", "mod", "backlog", "duty"]),
    ("worker", &["mod", "agenda"]),
    ("telemetry", &["mod", "acquiring", "holding", "releasing", "counters", "no_counters", "span"]),
    ("backend", &["url", "link", "memory", "redis", "mod", "attempt", "min_hold", "fault"]),
    ("backend/memory", &["outside", "mod", "change", "state"]),
    (
        "backend/redis",
        &["mod", "acquire", "check", "connections", "batch", "wait", "wire", "fence"],
    ),
    ("backend/redis/batch", &["mod", "releases", "renewals"]),
    (
        "backend/redis/check",
        &[
            "mod",
            "rehearsal",
            "subscription",
            "rights",
            "proxy",
            "settings",
            "clock",
            "session",
            "failures",
        ],
    ),
    ("backend/redis/wait", &["mod", "grants", "times"]),
    (
        "backend/redis/wire",
        &[
            "mod",
            "connection",
            "greeting",
            "trial",
            "script",
            "server",
            "pending",
            "driven",
            "command",
            "fault",
            "rights",
            "words",
        ],
    ),
    ("background", &["mod", "exit"]),
    (
        "types",
        &["mod", "options", "reporting", "key", "token", "error", "redact", "clock", "process"],
    ),
    ("request_id", &["tower", "mod"]),
];

/// The arrows that still point up: calls that wait are not yet decided apart from the requests for them.
pub(crate) const UP: &[[&str; 2]] =
    &[["waiters/asking", "waiters/mod"], ["waiters/turn", "waiters/mod"]];
