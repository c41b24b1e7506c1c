use std::collections::BTreeMap;
use std::time::Duration;

use crate::core::naming::client_name::ClientName;
use crate::core::types::id::ProcessId;
use crate::operators::contract::LockerConnection;

/// A process that locks, as its connections name it.
///
/// It leaves the server's list with its last connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    name: ClientName,
    address: Option<String>,
    connected_for: Duration,
    connections: usize,
}

impl Process {
    /// Returns the id of the process, as [`Holder::process`](crate::Holder::process) and
    /// [`Waiter::process`](super::Waiter::process) return it.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.name.process
    }

    /// Returns the name of the service; see [`LockerBuilder::service_name`](crate::LockerBuilder::service_name).
    #[must_use]
    pub fn service(&self) -> &str {
        &self.name.service
    }

    /// Returns the name of its machine or container, as known there.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.name.host
    }

    /// Returns the process id on that machine.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.name.pid
    }

    /// Returns the address of its oldest connection, as the server saw it: behind a proxy, the proxy's. `None` in
    /// memory.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Returns how long the oldest of its connections has been open.
    #[must_use]
    pub fn connected_for(&self) -> Duration {
        self.connected_for
    }

    /// Returns how many connections carry its name, on all nodes of a cluster.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections
    }

    pub(super) fn all_of(clients: Vec<LockerConnection>) -> Vec<Self> {
        let mut processes = BTreeMap::<_, Self>::new();
        for LockerConnection { name, address, age } in clients {
            let key = (name.service.clone(), name.host.clone(), name.pid, name.process);
            let new =
                || Self { name, address: None, connected_for: Duration::ZERO, connections: 0 };
            let process = processes.entry(key).or_insert_with(new);
            if process.connections == 0 || process.connected_for < age {
                (process.address, process.connected_for) = (address, age);
            }
            process.connections += 1;
        }
        processes.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_as_old_as_its_oldest_connection() {
        let name = ClientName::current(Some("shop")).unwrap();
        let client = |(address, age)| LockerConnection {
            name: name.clone(),
            address: Some(format!("h:{address}")),
            age: Duration::from_secs(age),
        };
        for ages in [[(1, 3), (2, 7), (3, 5)], [(2, 7), (1, 3), (3, 5)], [(3, 5), (1, 3), (2, 7)]] {
            let processes = Process::all_of(ages.map(client).to_vec());
            let [process] = &processes[..] else { panic!("{processes:?}") };
            assert_eq!(process.address(), Some("h:2"));
            assert_eq!(process.connected_for(), Duration::from_secs(7));
            assert_eq!(process.connections(), 3);
        }
    }
}
