use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal: $advice:literal,)*) => {
        /// The kind of a finding; the text of each is stable, for scripts and dashboards.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`:")] $(#[$doc])* $name,)*
        }

        impl Code {
            /// Returns the stable text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub(super) fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

codes! {
    /// there is no connection, or no reply in time.
    Unreachable = "unreachable": "check the address, and firewalls on the way",
    /// the server does not let this user in, or one side does not accept the other's certificate.
    Refused = "refused": "put the right user and password into the URL",
    /// a [secret](crate::Secret) of the locker is missing: its file cannot be read, its function failed, or what they
    /// gave is not valid.
    Credentials = "credentials": "mend the file, or the function and the service that it calls",
    /// a certificate that the locker was given ends within 14 days, or has ended.
    CertificateEnds =
        "certificate-ends": "replace it before: where it is in a file, the next connection has the new one",
    /// the user may not do what locks need; the subject is the ACL rule.
    MissingRight = "missing-right": "grant it with `ACL SETUSER`",
    /// the server is older than Redis 7.0.
    TooOld = "too-old": "replace it by Redis 7.0 or later, or Valkey",
    /// the server is a replica, and refuses writes.
    Replica = "replica": "put the address of its primary into the URL",
    /// the server is a Sentinel, and has no locks.
    Sentinel = "sentinel": "write a `redis-sentinel://` URL, with the name of the primary",
    /// the server at the address of a Sentinel is none.
    NotASentinel = "not-a-sentinel": "name the Sentinels in the URL, by default at port 26379",
    /// a Sentinel does not reply; an error if none names the primary.
    SentinelSilent = "sentinel-silent": "start it again, or put another one into the URL",
    /// a Sentinel watches no primary of the URL's name; an error if none does.
    UnknownPrimary = "unknown-primary": "put the name that the Sentinels have for the primary into the URL",
    /// the Sentinels name different primaries.
    SentinelsDisagree = "sentinels-disagree":
        "check again if a failover is under way; if not, let all of them write addresses in the same way \
         (`resolve-hostnames`, `announce-hostnames`), and `SENTINEL RESET` those that are wrong",
    /// the URL is for one server, but that is a node of a cluster; an error if another node has slots.
    Cluster = "cluster": "write a `redis-cluster://` URL",
    /// the server at the address of a cluster's node is none.
    NotACluster = "not-a-cluster": "write a `redis://` URL",
    /// a node of the URL does not reply; an error if none does.
    SeedSilent = "seed-silent": "start it again, or put another node into the URL",
    /// the nodes of the URL are in different clusters.
    SeedsDisagree = "seeds-disagree": "name nodes of one cluster in the URL",
    /// the URL names one node of a cluster that has more.
    OneAddress = "one-address": "list several nodes in the URL, or a host name that resolves to all of them",
    /// slots have no primary.
    SlotsUncovered =
        "slots-uncovered": "see `redis-cli --cluster check`, and repair the cluster with `--cluster fix`",
    /// the cluster announces an address of a node that is unreachable; an error if that node is a primary.
    AddressesUnreachable = "addresses-unreachable":
        "start the node again; if it runs, let the cluster announce an address that is reachable from here: see \
         `cluster-announce-ip`, `cluster-announce-hostname` and `cluster-preferred-endpoint-type`",
    /// a node has no shard channels, so that waiting calls poll.
    NoShardChannel =
        "no-shard-channel": "use servers, and proxies, that have `SSUBSCRIBE` and `SPUBLISH`",
    /// the clocks of a cluster's primaries differ from each other.
    ClocksDifferBetween = "clocks-differ-between":
        "synchronize the clocks: where a slot gets another primary, leases end earlier or later, and fencing \
         tokens can repeat",
    /// the server sends no notification of changed locks, so that a holder notices a deletion only when its lease
    /// is renewed.
    Untracked = "untracked":
        "nothing; to have deletions noticed at once, use a server, and a proxy, that has `CLIENT TRACKING`",
    /// the server refuses a command with the keys of several locks, so that each renewal and each release of a lock
    /// is a command of its own.
    CrossSlotRefused =
        "cross-slot-refused": "nothing; thousands of locks renew faster with a prefix such as `{disLock}:`",
    /// an operation of locks failed on a lock of the check's own; the subject is the operation.
    OperationFailed = "operation-failed": "see what the server's log says",
    /// a published wake-up did not arrive.
    GrantNotReceived =
        "grant-not-received": "let a proxy forward subscriptions to the same server as commands",
    /// a proxy seems to be between, which may hide a failover; an error if two connections led to two servers, or
    /// if the keys of one lock are on several. All but the last is checked only with the rights to `HELLO`,
    /// `CLIENT INFO` and `INFO`.
    Proxy =
        "proxy": "connect to the primary itself, unless failovers break the connections of clients",
    /// the URL has a setting for other programs; the subject is its name.
    SettingIgnored = "setting-ignored": "nothing if another program reads it",
    /// no key can begin with the locker's prefix.
    InvalidPrefix = "invalid-prefix": "give the locker another `prefix`",
    /// the server may evict locks, or would if its memory had a limit.
    Eviction = "eviction": "set `maxmemory-policy noeviction`",
    /// a full server refuses new locks.
    MemoryLimit = "memory-limit": "watch its memory, or move locks to a server of their own",
    /// a restart forgets the locks since the last snapshot, if there is one.
    NotPersistent = "not-persistent": "set `appendonly yes`, or check fencing tokens",
    /// a crash loses the newest locks.
    UnsyncedAppends = "unsynced-appends": "set `appendfsync always`, or check fencing tokens",
    /// a failover loses locks without a limit, or those that a replica has not confirmed.
    UnconfirmedReplication =
        "unconfirmed-replication": "set `min-replicas-to-write 1`, and check fencing tokens",
    /// there is no server that could become the primary.
    NoReplica = "no-replica": "add two replicas, and set `min-replicas-to-write 1`",
    /// with one replica less, as after a failover, the server refuses all writes; or fewer are connected than
    /// `replicas` waits for.
    FewReplicas = "few-replicas": "add a replica, or lower `min-replicas-to-write`",
    /// the server's clock differs from this machine's.
    ClockDiffers =
        "clock-differs": "synchronize the clocks for the sake of the logs; locks do not need it",
    /// the user may not read something that the check needs; the subject is the ACL rule that would allow it.
    CheckIncomplete =
        "check-incomplete": "check this yourself, or grant the right, which locks do not need",
    /// the locks exist in this process alone.
    OneProcess = "one-process": "use the URL of a Redis server where more than one process runs",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
