//! One round of one contender: the orders it gets, and the lines that come back.

use std::time::Duration;

use lockable_benches::{Observer, Snapshot, Worker, monotonic};

use crate::arguments::Pace;
use crate::contender::Contender;
use crate::scenario::{Kind, Scenario};

/// Times are in nanoseconds since the common start.
pub(crate) struct Round {
    /// What is looked at: from the end of the warm-up to the last look at the server.
    pub(crate) window: (u64, u64),
    /// How many commands its processes sent in that time.
    pub(crate) commands: u64,
    /// How many commands the server ran in that time, for whomever and from scripts.
    pub(crate) server_commands: u64,
    pub(crate) processes: usize,
    /// In all processes.
    pub(crate) waiters: usize,
    /// By when they began.
    pub(crate) sections: Vec<Section>,
    /// Those that waited at the end, and since when.
    pub(crate) pending: Vec<u64>,
}

pub(crate) struct Section {
    pub(crate) process: usize,
    /// Counted through all processes.
    pub(crate) waiter: usize,
    pub(crate) asked: u64,
    pub(crate) entered: u64,
    pub(crate) left: u64,
}

/// Runs a round. The error is why there is none, and then its processes are of no use any more.
pub(crate) fn play(
    workers: &mut [Worker],
    contender: Contender,
    scenario: &Scenario,
    pace: &Pace,
    observer: &mut Observer,
) -> Result<Round, String> {
    let (before, at) = (observer.look(), monotonic() + u64_nanos(pace.lead));
    let order = order(at, contender, scenario);
    workers.iter_mut().try_for_each(|worker| worker.say(&order))?;
    let looks = match scenario.kind {
        Kind::Burst => whole(workers, observer, before)?,
        Kind::OneKey | Kind::OwnKeys => window(pace, observer),
    };
    workers.iter_mut().try_for_each(|worker| worker.say("end"))?;
    let mut round = Round {
        window: (looks.0.at.saturating_sub(at), looks.1.at - at),
        commands: looks.1.calls_since(&looks.0, contender.sends()),
        server_commands: looks.1.all_calls_since(&looks.0),
        processes: workers.len(),
        waiters: scenario.waiters * workers.len(),
        sections: Vec::new(),
        pending: Vec::new(),
    };
    for (process, worker) in workers.iter().enumerate() {
        for line in worker.rest()? {
            round.take(process, scenario.waiters, &line);
        }
    }
    round.sections.sort_by_key(|section| section.entered);
    Ok(round)
}

/// A key that no other round uses: a process that is stopped midway leaves one behind.
fn order(at: u64, contender: Contender, scenario: &Scenario) -> String {
    let name = contender.name().replace(' ', "-");
    let own = if scenario.kind == Kind::OwnKeys { ":*" } else { "" };
    let limit = u8::from(scenario.kind == Kind::Burst);
    let (waiters, section) = (scenario.waiters, scenario.section.as_micros());
    format!("start {at} bench:{name}:{at}{own} {waiters} {section} {limit}")
}

fn whole(
    workers: &[Worker],
    observer: &mut Observer,
    before: Snapshot,
) -> Result<(Snapshot, Snapshot), String> {
    workers.iter().try_for_each(|worker| worker.expect("done"))?;
    Ok((before, observer.look()))
}

fn window(pace: &Pace, observer: &mut Observer) -> (Snapshot, Snapshot) {
    std::thread::sleep(pace.lead + pace.warm_up);
    let first = observer.look();
    std::thread::sleep(pace.window);
    (first, observer.look())
}

impl Round {
    fn take(&mut self, process: usize, waiters: usize, line: &str) {
        let mut words = line.split(' ');
        let kind = words.next();
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        match (kind, numbers.as_slice()) {
            (Some("s"), &[waiter, asked, entered, left]) => {
                let waiter = process * waiters + usize::try_from(waiter).expect("a small number");
                self.sections.push(Section { process, waiter, asked, entered, left });
            }
            (Some("p"), &[_, asked]) => self.pending.push(asked),
            _ => panic!("a worker said {line:?}"),
        }
    }
}

fn u64_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a short time")
}
