//! A contender with a process and a server of its own.

use lockable_benches::{Cores, Observer, Server, Team};

use crate::arguments::Pace;
use crate::case::{Case, Keys, MANY};
use crate::contender::Launcher;
use crate::figures::Figures;

/// For one case. The server is its own, so that what one leaves behind costs no other anything.
pub(crate) struct Entrant<'a> {
    case: Case,
    launcher: &'a Launcher,
    pace: Pace,
    cores: Cores,
    server: Server,
    observer: Observer,
    team: Team,
    /// Rounds so far, so that the keys of each differ, where none repeats.
    rounds: usize,
}

impl<'a> Entrant<'a> {
    pub(crate) fn start(case: Case, launcher: &'a Launcher, pace: Pace, cores: Cores) -> Self {
        let server = cores.server();
        let observer = Observer::new(&server.url());
        let team = team(&case, launcher, cores, &server);
        let mut entrant = Self { case, launcher, pace, cores, server, observer, team, rounds: 0 };
        entrant.warm_up();
        entrant
    }

    pub(crate) fn round(&mut self) -> Figures {
        let time = u64::try_from(self.pace.time.as_millis()).expect("a short time");
        let (most, time) = match self.case.keys {
            Keys::First => (self.pace.first, LONG),
            Keys::Few | Keys::NeverRepeating => (usize::MAX, time),
        };
        if self.case.keys == Keys::First {
            self.restart();
        }
        let before = self.observer.look();
        let answer = self.pairs(self.case.tasks, most, time);
        Figures::of(&answer, &before, &self.observer.look())
    }

    /// Pairs of many tasks, which are the fastest way to use many keys.
    fn warm_up(&mut self) {
        match self.case.keys {
            Keys::First => {}
            Keys::Few => drop(self.pairs(self.case.tasks, self.pace.first / 10, LONG)),
            Keys::NeverRepeating => drop(self.pairs(MANY, self.pace.warm_up, LONG)),
        }
    }

    /// A new process has a new connection; its server has no keys.
    fn restart(&mut self) {
        self.observer.flush();
        self.team = team(&self.case, self.launcher, self.cores, &self.server);
    }

    /// At most `most` pairs of all tasks together, for `time` milliseconds.
    fn pairs(&mut self, tasks: usize, most: usize, time: u64) -> String {
        self.rounds += 1;
        let keys = match self.case.keys {
            Keys::Few => "order:*".to_owned(),
            Keys::First | Keys::NeverRepeating => format!("order:{}:*:#", self.rounds),
        };
        let order = format!("pairs {keys} {tasks} {} {time}", most.div_ceil(tasks));
        let worker = &mut self.team.first(1)[0];
        let answer = worker.say(&order).and_then(|()| worker.answer());
        answer.unwrap_or_else(|why| panic!("{}: {why}", self.launcher.contender.name()))
    }
}

fn team(case: &Case, launcher: &Launcher, cores: Cores, server: &Server) -> Team {
    let command = || launcher.command(case.flavour, cores, &server.url());
    let team = Team::start(1, command);
    team.unwrap_or_else(|why| panic!("{}: {why}", launcher.contender.name()))
}

/// Milliseconds of no bound, in effect.
const LONG: u64 = 60_000;
