//! One run: servers, a process that locks, and an event.

use std::thread::{scope, sleep};
use std::time::Duration;

use lockable_benches::{Team, Worker};

use crate::contender::Contender;
use crate::moments::{Moments, now};
use crate::outcome::Outcome;
use crate::scenario::{Pace, Scenario};
use crate::servers::Servers;
use crate::timeline::Timeline;

/// All processes end with this call, and with this process.
///
/// # Errors
/// What keeps the process that locks from its work.
pub(crate) fn run(scenario: Scenario, contender: Contender, pace: Pace) -> Result<Outcome, String> {
    let (program, servers) = (contender.program()?, Servers::start(scenario));
    let mut team = Team::start(1, || contender.command(&program, &servers))?;
    let worker = &mut team.first(1)[0];
    let (moments, mut timeline) = (Moments::default(), Timeline::default());
    worker.say("start")?;
    let end = scope(|scope| {
        let strike = scope.spawn(|| {
            sleep(WARM_UP);
            servers.strike(&moments);
        });
        let end = watch(worker, &mut timeline, &moments, scenario.event.watched(pace));
        strike.join().map_err(|_| "the servers were not well in time".to_owned())?;
        end
    })?;
    if !end.is_still {
        finish(worker, &mut timeline, &servers)?;
    }
    // By its id, where it stands still.
    drop(team);
    servers.settle();
    Ok(Outcome::of(&timeline, &moments, &end, &servers.held()))
}

/// How the load came to its end.
pub(crate) struct End {
    pub(crate) at: u64,
    /// No call succeeded although the servers were well.
    pub(crate) is_still: bool,
}

/// Takes what the worker writes, until it was watched for long enough or stands still.
fn watch(
    worker: &Worker,
    timeline: &mut Timeline,
    moments: &Moments,
    watched: Duration,
) -> Result<End, String> {
    let watched = millis(watched);
    loop {
        timeline.add(&worker.answer()?);
        let at = now();
        let is_still =
            moments.over().is_some_and(|over| at > timeline.last().max(over) + millis(STILL));
        let is_over = moments.event().is_some_and(|event| at >= event + watched);
        if is_still || is_over {
            return Ok(End { at, is_still });
        }
    }
}

/// The client is closed when the servers are well: ours releases in the background until then.
fn finish(worker: &mut Worker, timeline: &mut Timeline, servers: &Servers) -> Result<(), String> {
    worker.say("stop")?;
    read_until("stopped", worker, timeline)?;
    servers.settle();
    worker.say("end")?;
    read_until("over", worker, timeline)
}

/// The worker writes a line all the time, so its silence is an error, and so is a word that does not come.
fn read_until(word: &str, worker: &Worker, timeline: &mut Timeline) -> Result<(), String> {
    let by = now() + millis(PATIENCE);
    while now() < by {
        let line = worker.answer()?;
        if line == word {
            return Ok(());
        }
        timeline.add(&line);
    }
    Err(format!("its process has not said {word:?} within {PATIENCE:?}"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a short time")
}

/// Before the event.
const WARM_UP: Duration = Duration::from_secs(2);

/// Without a success for this long a client stands still. Longer than any of its pauses between two tries.
const STILL: Duration = Duration::from_secs(10);

/// More than a client takes for its end.
const PATIENCE: Duration = Duration::from_secs(30);
