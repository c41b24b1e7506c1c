//! A contender with a process and a server of its own.

use lockable_benches::{Observer, Server, Team};

use crate::arguments::Pace;
use crate::case::{Case, Keys};
use crate::contender::{Contender, Launcher};
use crate::figures::Figures;

/// The server is its own, so that what one leaves behind costs no other anything.
pub(crate) struct Entrant {
    pub(crate) contender: Contender,
    launcher: Launcher,
    pace: Pace,
    server: Server,
    observer: Observer,
    team: Team,
    /// Rounds so far, so that their keys differ.
    rounds: usize,
}

impl Entrant {
    pub(crate) fn start(
        contender: Contender,
        launcher: Launcher,
        pace: Pace,
    ) -> Result<Self, String> {
        let server = Server::start();
        let observer = Observer::new(&server.url());
        let team = Team::start(1, || launcher.command(&server.url()))?;
        Ok(Self { contender, launcher, pace, server, observer, team, rounds: 0 })
    }

    /// Once before the rounds of a case.
    pub(crate) fn warm_up(&mut self, case: &Case) -> Result<(), String> {
        let (tasks, most) = match case.keys {
            Keys::Few => (case.tasks, 2_000),
            Keys::First => return Ok(()),
            Keys::NeverRepeating => (crate::case::MANY, self.pace.warm_up),
        };
        let case = Case { tasks, keys: case.keys };
        self.order(&case, most, 60_000)?;
        self.team.first(1)[0].answer().map(drop)
    }

    pub(crate) fn round(&mut self, case: &Case) -> Result<Figures, String> {
        let time = u64::try_from(self.pace.time.as_millis()).expect("a short time");
        let (most, time) = match case.keys {
            Keys::First => (self.pace.first, 60_000),
            Keys::Few | Keys::NeverRepeating => (usize::MAX, time),
        };
        if case.keys == Keys::First {
            self.restart()?;
        }
        let before = self.observer.look();
        self.order(case, most, time)?;
        let answer = self.team.first(1)[0].answer()?;
        Figures::of(&answer, &before, &self.observer.look())
    }

    /// A new process has a new connection; its server has no keys.
    fn restart(&mut self) -> Result<(), String> {
        self.observer.flush();
        self.team = Team::start(1, || self.launcher.command(&self.server.url()))?;
        Ok(())
    }

    /// At most `most` pairs of all tasks together, for `time` milliseconds.
    fn order(&mut self, case: &Case, most: usize, time: u64) -> Result<(), String> {
        self.rounds += 1;
        let number = if case.keys == Keys::Few { "" } else { ":#" };
        let (round, tasks, each) = (self.rounds, case.tasks, most.div_ceil(case.tasks));
        let order = format!("pairs order:{round}:*{number} {tasks} {each} {time}");
        self.team.first(1)[0].say(&order)
    }
}
