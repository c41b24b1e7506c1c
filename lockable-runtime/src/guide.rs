#![doc = include_str!("../links.md")]
#![doc = include_str!("../guide/index.md")]

/// Makes an empty module of each text, behind the definitions of its links.
macro_rules! pages {
    ($($name:ident: $text:literal),* $(,)?) => {
        $(
            #[doc = include_str!("../links.md")]
            #[doc = include_str!($text)]
            pub mod $name {}
        )*
    };
}

pages! {
    getting_started: "../guide/getting_started.md",
    choosing: "../guide/choosing.md",
    leases: "../guide/leases.md",
    errors: "../guide/errors.md",
    waiting: "../guide/waiting.md",
    several_keys: "../guide/several_keys.md",
    permits: "../guide/permits.md",
    testing: "../guide/testing.md",
    which_redis: "../guide/which_redis.md",
    hosted: "../guide/hosted.md",
    failover: "../guide/failover.md",
    production: "../guide/production.md",
    operating: "../guide/operating.md",
    incident: "../guide/incident.md",
    maintenance: "../guide/maintenance.md",
    shell_script: "../guide/shell_script.md",
    limits: "../guide/limits.md",
    migrating: "../guide/migrating.md",
    versions: "../guide/versions.md",
    faq: "../guide/faq.md",
    changelog: "../CHANGELOG.md",
}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../DESIGN.md")]
pub mod design {
    pages! {
        words: "../design/words.md",
        safety: "../design/safety.md",
        leases: "../design/leases.md",
        acquiring: "../design/acquiring.md",
        waiting: "../design/waiting.md",
        fencing: "../design/fencing.md",
        keys: "../design/keys.md",
        operators: "../design/operators.md",
        processes: "../design/processes.md",
        connections: "../design/connections.md",
        sentinel: "../design/sentinel.md",
        cluster: "../design/cluster.md",
        check: "../design/check.md",
        functions: "../design/functions.md",
        observability: "../design/observability.md",
        development: "../design/development.md",
    }
}
