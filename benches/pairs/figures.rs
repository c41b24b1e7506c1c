//! The numbers of a round.

use lockable_benches::Snapshot;

/// A column of the tables; README.md says what each of them means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    PerSecond,
    AcquireP50,
    AcquireP99,
    PairP50,
    PairP99,
    ClientCpu,
    ServerCpu,
    Commands,
}

/// Times are in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    per_second: f64,
    acquire: [f64; 2],
    pair: [f64; 2],
    client_cpu: f64,
    server_cpu: f64,
    commands: f64,
}

impl Figures {
    /// Of what a worker said, and what the server did meanwhile.
    pub(crate) fn of(answer: &str, before: &Snapshot, after: &Snapshot) -> Self {
        let numbers: Vec<f64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [pairs, wall, cpu, acquire_p50, acquire_p99, p50, p99] = *numbers.as_slice() else {
            panic!("a worker said {answer:?}");
        };
        let commands = u32::try_from(after.all_calls_since(before)).expect("few enough");
        Self {
            per_second: pairs / wall * 1e9,
            acquire: [acquire_p50 / 1e3, acquire_p99 / 1e3],
            pair: [p50 / 1e3, p99 / 1e3],
            client_cpu: cpu / pairs / 1e3,
            server_cpu: after.cpu_since(before) / pairs * 1e6,
            commands: f64::from(commands) / pairs,
        }
    }

    pub(crate) fn get(&self, column: Column) -> f64 {
        match column {
            Column::PerSecond => self.per_second,
            Column::AcquireP50 => self.acquire[0],
            Column::AcquireP99 => self.acquire[1],
            Column::PairP50 => self.pair[0],
            Column::PairP99 => self.pair[1],
            Column::ClientCpu => self.client_cpu,
            Column::ServerCpu => self.server_cpu,
            Column::Commands => self.commands,
        }
    }
}
