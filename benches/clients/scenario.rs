//! What happens to which servers.

use std::time::Duration;

/// One table.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) place: Place,
    pub(crate) event: Event,
}

#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// Three masters with a replica each.
    Cluster,
    /// A primary, two replicas and three Sentinels.
    Sentinel,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Event {
    /// Nothing.
    Steady,
    /// A slot moves to another master, key by key.
    SlotMoves,
    /// The master stands still, with its connections open.
    Hangs,
    /// The master ends.
    Killed,
    /// An operator makes a replica the master.
    Planned,
}

/// How long the servers are watched.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// So long that a client which stands still is found out.
    Full,
    /// To see that everything works.
    Quick,
}

impl Scenario {
    pub(crate) const ALL: [Self; 9] = [
        Self { place: Place::Cluster, event: Event::Steady },
        Self { place: Place::Cluster, event: Event::SlotMoves },
        Self { place: Place::Cluster, event: Event::Hangs },
        Self { place: Place::Cluster, event: Event::Killed },
        Self { place: Place::Cluster, event: Event::Planned },
        Self { place: Place::Sentinel, event: Event::Steady },
        Self { place: Place::Sentinel, event: Event::Hangs },
        Self { place: Place::Sentinel, event: Event::Killed },
        Self { place: Place::Sentinel, event: Event::Planned },
    ];

    pub(crate) fn name(self) -> String {
        let (place, server) = match self.place {
            Place::Cluster => ("Cluster", "master"),
            Place::Sentinel => ("Sentinels", "primary"),
        };
        match self.event {
            Event::Steady => format!("{place}, steady load"),
            Event::SlotMoves => format!("{place}, a slot moves"),
            Event::Hangs => format!("{place}, hung {server}"),
            Event::Killed => format!("{place}, killed {server}"),
            Event::Planned => format!("{place}, planned failover"),
        }
    }
}

impl Event {
    /// From the event to the end of the load.
    pub(crate) fn watched(self, pace: Pace) -> Duration {
        let (full, quick) = match self {
            Self::Steady => (5, 2),
            Self::SlotMoves => (16, 6),
            Self::Hangs | Self::Killed => (20, 10),
            Self::Planned => (15, 4),
        };
        Duration::from_secs(match pace {
            Pace::Full => full,
            Pace::Quick => quick,
        })
    }
}
