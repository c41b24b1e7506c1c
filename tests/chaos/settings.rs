//! What `cargo xtask chaos` asks for, in variables.

use std::env;
use std::time::Duration;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) topology: Topology,
    pub(crate) seed: u64,
    pub(crate) length: Duration,
}

/// What the locks are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server that forgets.
    One,
    /// One server that writes everything to a file.
    Aof,
    Sentinel,
    Cluster,
}

impl Topology {
    pub(crate) const ALL: [Self; 4] = [Self::One, Self::Aof, Self::Sentinel, Self::Cluster];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Aof => "aof",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }
}

impl Settings {
    /// Until each process has used every node, in a run in which it is judged what it uses at the end.
    pub(crate) fn warm_up(&self) -> Duration {
        Duration::from_secs(1).max(self.length / 30).min(Duration::from_secs(10))
    }
}

/// The runs that were asked for; none where nothing was.
pub(crate) fn all() -> Vec<Settings> {
    let Ok(minutes) = env::var("LOCKABLE_CHAOS_MINUTES") else { return Vec::new() };
    let seconds = minutes.parse::<f64>().expect("a number of minutes") * 60.0;
    let length = Duration::from_secs_f64(seconds);
    let seed = env::var("LOCKABLE_CHAOS_SEED").expect("a seed").parse().expect("a number");
    let only = env::var("LOCKABLE_CHAOS_ONLY").unwrap_or_default();
    let is_wanted = |topology: &Topology| only.is_empty() || only == topology.name();
    let wanted = Topology::ALL.into_iter().filter(is_wanted);
    wanted.map(|topology| Settings { topology, seed, length }).collect()
}
