//! Who locks.

/// A way to lock, in processes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    Ours,
    OursFair,
    /// Two scripts a section, and hand-offs that cost nothing.
    Limit,
    /// A mutex of the process, and no server at all: what waking the next task costs.
    Mutex,
    /// The same, and one `PING` a section: what a lock costs at least that asks a server each time.
    MutexAndPing,
    Rslock,
    DistributedLock,
    RedisPy,
    Redlock,
    /// `SET NX PX` and a release script, on a key that no other waiter wants: the yardstick.
    Bare,
    /// A `PING` in place of an acquisition: the other yardstick.
    Ping,
}

impl Contender {
    /// Those that have a row, in its order.
    pub(crate) const ROWS: [Self; 9] = [
        Self::Ours,
        Self::OursFair,
        Self::Limit,
        Self::MutexAndPing,
        Self::Mutex,
        Self::Rslock,
        Self::DistributedLock,
        Self::RedisPy,
        Self::Redlock,
    ];

    /// What it is called in the tables, and to its process.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "lockable",
            Self::OursFair => "lockable fair",
            Self::Limit => "limit",
            Self::Mutex => "mutex",
            Self::MutexAndPing => "mutex and PING",
            Self::Rslock => "rslock",
            Self::DistributedLock => "distributed-lock",
            Self::RedisPy => "redis-py",
            Self::Redlock => "node redlock",
            Self::Bare => "bare",
            Self::Ping => "ping",
        }
    }

    /// Whether all of its waiters are in one process, where a hand-off costs nothing.
    pub(crate) fn has_one_process(self) -> bool {
        matches!(self, Self::Limit | Self::Mutex | Self::MutexAndPing | Self::Bare | Self::Ping)
    }

    /// Whether it keeps other processes out, so that it is a lock to compare with.
    pub(crate) fn is_lock(self) -> bool {
        !matches!(self, Self::Mutex | Self::MutexAndPing)
    }

    /// The commands that its processes send. The server counts what scripts call in the same way,
    /// so none of these may be called by its scripts too.
    pub(crate) fn sends(self) -> &'static [&'static str] {
        match self {
            // A try sends SET and INCR. The scripts call SET too, so INCR is counted for both. The
            // first of a connection and slot, which seeds a counter by a script, counts one too few
            // or too many.
            Self::Ours | Self::OursFair => {
                &["incr", "incr", "evalsha", "eval", "subscribe", "unsubscribe"]
            }
            Self::Limit => &["evalsha"],
            Self::Redlock => &["evalsha", "eval"],
            Self::Rslock | Self::DistributedLock | Self::RedisPy => &["set", "evalsha", "eval"],
            Self::Bare => &["set", "evalsha"],
            Self::Ping | Self::MutexAndPing => &["ping"],
            Self::Mutex => &[],
        }
    }
}
