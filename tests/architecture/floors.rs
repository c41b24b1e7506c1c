//! The floor plan of `lockable-runtime/src`.

/// The order of each folder, top first: a file or a room imports from those below it only.
///
/// `mod` is the folder's own `mod.rs`. The test of this list, `lib.rs` and CONTRIBUTING.md follow it.
pub(crate) const FLOORS: &[(&str, &str)] = &[
    ("", "guide simulation testing open operators redis findings core"),
    (
        "simulation",
        "mod summary trial campaign worker user order faults in_parts client subscription process connection ticket_rules \
         world news server rules tickets held call life history mix slot_owners keys dice panics nodes",
    ),
    ("operators", "mod locker serde admin redis memory contract check selection"),
    ("findings", "mod code grant"),
    (
        "core",
        "mod attribute locker acquire hold waiters lease releaser local_permits worker telemetry memory backend \
         settings background holder serde naming types text labels process fencing request_id",
    ),
    ("core/settings", "mod defaults url_settings environment parameters"),
    ("core/naming", "mod namespace client_name"),
    ("core/text", "mod hole escape percent duration"),
    ("core/labels", "mod label metric_keys no_metric_keys grow_only"),
    ("core/process", "mod seeded together mutex utc clock generation"),
    ("core/attribute", "mod answers values returned"),
    ("testing", "mod locks staged internals"),
    (
        "core/locker",
        "global scope blocking connect builder drain mod lead request_all redeem request",
    ),
    (
        "core/acquire",
        "set mod done redeem permit patient in_line call acquirer warners busy gate inspect",
    ),
    ("operators/admin", "revoke pause mod locks held changes waiter process"),
    ("core/hold", "mod run pause set ticket grant guard reentry"),
    ("core/lease", "renewal display revoking errors mod state loss schedule early"),
    ("core/lease/renewal", "mod task plan age"),
    ("core/waiters", "mod turn entry lines table line"),
    ("core/waiters/line", "mod parts"),
    ("core/releaser", "shutdown mod backlog pending_release"),
    ("core/worker", "mod agenda"),
    ("core/telemetry", "mod acquiring leading holding releasing counters no_counters span"),
    ("core/backend", "context events mod grant attempt min_hold epochs fault"),
    ("core/memory", "slow outside permits mod change state"),
    ("redis", "verbs mod route topology batch pubsub wire connect fences fault"),
    ("redis/route", "confirmations renewals in_parts mod hops"),
    (
        "redis/topology",
        "mod slot_owners refreshes slots watch sentinels elections map_requests pace table maps votes \
         server connections latest_releases",
    ),
    ("operators/redis", "revoking mod sweep queue look changes clients call check"),
    ("redis/batch", "mod acquire releases renewals confirmations requests"),
    (
        "operators/redis/check",
        "mod group sentinel cluster examination dry_run subscription rights proxy clock seeds session",
    ),
    ("redis/pubsub", "mod revocations wake_ups channel_set kept push_subscription subscription"),
    (
        "redis/wire",
        "mod connection outbox meaning handshake probe session settings slots silence tracking permits script source sent delete \
         flaw server command",
    ),
    (
        "redis/connect",
        "mod opener precedence reports login node demotion finder role address shards endpoint hosts driven client \
         certificates no_certificates secrets expiry first_reply tcp stage",
    ),
    ("redis/fault", "cluster sentinel mod tls no_tls opening rights words"),
    ("core/background", "mod exit"),
    ("operators/check", "mod"),
    (
        "core/types",
        "mod pause options line_key credentials pem secret reporting ticket tag permit slot key token owner id random written error remedy reason redact",
    ),
    ("core/request_id", "tower mod"),
];
