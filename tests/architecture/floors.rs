//! The floor plan of `lockable-runtime/src`.

/// The order of each folder, top first: a file or a room imports from those below it only.
///
/// `mod` is the folder's own `mod.rs`. The test of this list, `lib.rs` and CONTRIBUTING.md follow it.
pub(crate) const FLOORS: &[(&str, &str)] = &[
    (
        "",
        "guide simulation attribute testing locker admin holder hold waiters lease releaser worker \
         telemetry backend background serde check types fencing request_id",
    ),
    (
        "simulation",
        "mod summary trial worker order faults in_parts client subscription process connection world news \
         server rules held call life history mix slot_owners keys dice panics",
    ),
    ("attribute", "mod answers values returned"),
    ("testing", "mod locks staged internals"),
    (
        "locker",
        "global scope blocking connect environment builder url url_settings drain mod lead request_all redeem request \
         acquire inspect",
    ),
    (
        "locker/acquire",
        "set mod done redeem permit patient in_line call acquirer warners busy gate",
    ),
    ("admin", "revoke pause mod locks held changes waiter process"),
    ("hold", "mod run pause set ticket grant guard reentry"),
    ("lease", "renewal display revoking errors mod state loss schedule early"),
    ("lease/renewal", "mod task plan age"),
    ("waiters", "mod turn entry lines table line"),
    ("waiters/line", "mod parts"),
    ("releaser", "shutdown mod backlog pending_release"),
    ("worker", "mod agenda"),
    ("telemetry", "mod acquiring leading holding releasing counters no_counters span"),
    (
        "backend",
        "url context slow memory redis events mod administration revoking grant attempt min_hold epochs fault",
    ),
    ("backend/memory", "outside listing nodes revoking permits mod change state"),
    (
        "backend/redis",
        "admin verbs mod route check topology batch pubsub wire connect fences fault",
    ),
    ("backend/redis/route", "confirmations renewals in_parts mod hops"),
    (
        "backend/redis/topology",
        "mod slot_owners refreshes slots watch sentinels elections map_requests pace table maps votes \
         server connections latest_releases",
    ),
    ("backend/redis/admin", "revoking mod sweep queue look changes clients call"),
    ("backend/redis/batch", "mod acquire releases renewals confirmations requests"),
    (
        "backend/redis/check",
        "mod group sentinel cluster examination dry_run subscription rights proxy clock seeds session",
    ),
    (
        "backend/redis/pubsub",
        "mod revocations wake_ups channel_set kept push_subscription subscription",
    ),
    (
        "backend/redis/wire",
        "mod connection outbox meaning handshake probe session settings slots silence tracking permits script source sent delete \
         flaw server command",
    ),
    (
        "backend/redis/connect",
        "mod opener precedence reports login node demotion finder role address shards endpoint hosts driven client \
         certificates no_certificates secrets expiry first_reply tcp stage",
    ),
    ("backend/redis/fault", "cluster sentinel mod tls no_tls opening rights words"),
    ("background", "mod exit"),
    ("check", "mod code grant"),
    (
        "types",
        "mod pause options local_permits line_key credentials pem secret reporting selection ticket client_name namespace tag permit slot key \
         hole token owner id random url written error remedy reason percent redact escape label metric_keys no_metric_keys \
         grow_only mutex clock together duration utc process generation seeded",
    ),
    ("request_id", "tower mod"),
];
