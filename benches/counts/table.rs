//! The table of counts, which a change has to touch.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::measure::Pairs;
use crate::opening::Openings;
use crate::place::Place;
use crate::waiting::Waiting;

/// A part for each server, in their order.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) servers: Vec<Part>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Part {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) pairs: Pairs,
    /// None where they were not counted yet.
    #[serde(default, skip_serializing_if = "Openings::is_empty")]
    pub(crate) openings: Openings,
    #[serde(default, skip_serializing_if = "Waiting::is_empty")]
    pub(crate) waiting: Waiting,
}

impl Table {
    pub(crate) fn read() -> Result<Self, String> {
        let text = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{PATH}: {error}"))
    }

    pub(crate) fn write(&self) -> Result<(), String> {
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        fs::write(PATH, format!("{HEAD}\n{text}")).map_err(|error| format!("{PATH}: {error}"))
    }

    /// In the place of what there is for that server in any of its releases.
    pub(crate) fn replace(&mut self, new: Part) {
        self.servers.retain(|part| part.place.series() != new.place.series());
        self.servers.push(new);
        self.servers.sort_by(|one, other| one.place.series().cmp(&other.place.series()));
    }

    /// Of this server, or the one before it, or else the first.
    pub(crate) fn nearest(&self, place: &Place) -> Option<&Part> {
        let series = place.series();
        let is_before = |part: &&Part| {
            let other = part.place.series();
            other.0 == series.0 && other <= series
        };
        self.servers.iter().rfind(is_before).or(self.servers.first())
    }
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.toml");

const HEAD: &str = "# `cargo xtask counts --write` writes this; README.md says what it means.";

#[cfg(test)]
mod tests {
    use super::{Part, Table};
    use crate::measure::Pairs;
    use crate::opening::Openings;
    use crate::place::Place;
    use crate::waiting::Waiting;

    fn on(server: &str) -> Place {
        Place { server: server.to_owned(), ..Place::default() }
    }

    #[test]
    fn a_server_has_one_part_and_an_unknown_one_the_part_before() {
        let mut table = Table::default();
        for server in ["Valkey 9.1.2", "Redis 10.0.1", "Redis 7.0.9", "Redis 7.0.15"] {
            let (pairs, openings, waiting) = (Pairs::new(), Openings::new(), Waiting::new());
            table.replace(Part { place: on(server), pairs, openings, waiting });
        }
        let nearest = |server| table.nearest(&on(server)).map(|part: &Part| &*part.place.server);
        assert_eq!(table.servers.len(), 3);
        assert_eq!(nearest("Redis 7.0.16"), Some("Redis 7.0.15"));
        assert_eq!(nearest("Redis 8.6.3"), Some("Redis 7.0.15"));
        assert_eq!(nearest("Redis 10.2.0"), Some("Redis 10.0.1"));
        assert_eq!(nearest("Valkey 8.0.1"), Some("Redis 7.0.15"));
    }
}
