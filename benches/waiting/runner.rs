//! The contenders with their processes, and whose turn it is.

use std::time::Duration;

use lockable_benches::{Cores, Observer, Team};

use crate::arguments::Pace;
use crate::contender::Contender;
use crate::figures::{Figures, Yardstick};
use crate::launcher::Launcher;
use crate::round::{self, Round};
use crate::scenario::Scenario;

/// Everything that runs beside the server.
pub(crate) struct Runner {
    url: String,
    cores: Cores,
    observer: Observer,
    yardsticks: [Team; 2],
    entrants: Vec<Entrant>,
}

struct Entrant {
    contender: Contender,
    /// Its processes, or why it has none.
    team: Result<Team, String>,
}

/// The results of a contender in a scenario: a round a turn, or a note in place of them.
pub(crate) struct Row {
    pub(crate) contender: Contender,
    pub(crate) outcome: Result<Vec<Figures>, String>,
}

impl Runner {
    pub(crate) fn new(url: String, cores: Cores, which: &str) -> Self {
        let yardsticks = [Contender::Bare, Contender::Ping];
        let yardsticks =
            yardsticks.map(|contender| team(contender, &url, cores).expect("this bench"));
        let rows = Contender::ROWS.into_iter().filter(|one| one.name().contains(which));
        let entrants = rows.map(|contender| {
            eprintln!("starting {}", contender.name());
            Entrant { contender, team: team(contender, &url, cores) }
        });
        let entrants = entrants.collect();
        let observer = Observer::new(&url);
        Self { url, cores, observer, yardsticks, entrants }
    }

    /// Every contender runs a round a turn, and another one is the first each time.
    pub(crate) fn rows(&mut self, scenario: &Scenario, pace: &Pace) -> Vec<Row> {
        eprintln!("{} ({} waiters)", scenario.name, scenario.waiters * scenario.processes);
        let mut rows: Vec<Row> = self.entrants.iter().map(Entrant::row).collect();
        for turn in 0..pace.turns {
            self.turn(turn, scenario, pace, &mut rows);
        }
        rows
    }

    /// The yardsticks are measured before each round, and their median is the turn's.
    fn turn(&mut self, turn: usize, scenario: &Scenario, pace: &Pace, rows: &mut [Row]) {
        let (mut yardsticks, mut rounds) = (Vec::new(), Vec::new());
        for place in 0..rows.len() {
            let which = (turn + place) % rows.len();
            if rows[which].outcome.is_ok() {
                yardsticks.push(self.measure_yardstick());
                rounds.push((which, self.round(which, scenario, pace)));
            }
        }
        for (which, round) in rounds {
            let yardstick = Yardstick::median(&yardsticks);
            rows[which].add(round.map(|round| Figures::of(&round, scenario, yardstick)));
        }
    }

    /// Says who does not take part, and why.
    pub(crate) fn print_notes(&self) {
        for entrant in &self.entrants {
            if let Err(why) = &entrant.team {
                println!("\nnote: {} is left out: {why}", entrant.contender.name());
            }
        }
    }

    fn round(&mut self, which: usize, scenario: &Scenario, pace: &Pace) -> Result<Round, String> {
        let Entrant { contender, team } = &mut self.entrants[which];
        let workers = team.as_mut().map_err(|why| why.clone())?;
        let scenario = contender.version_of(scenario);
        let workers = workers.first(scenario.processes);
        let round = round::play(workers, *contender, &scenario, pace, &mut self.observer);
        if let Err(why) = &round {
            // The processes of a round that went wrong are ended, and it starts again with others.
            eprintln!("{}: {why}", contender.name());
            *team = self::team(*contender, &self.url, self.cores);
        }
        round
    }

    fn measure_yardstick(&mut self) -> Yardstick {
        let mut measure = || {
            let [bare, ping] = [(0, Contender::Bare), (1, Contender::Ping)];
            Yardstick::new(&self.yardstick(bare), &self.yardstick(ping))
        };
        (0..TRIES).find_map(|_| measure()).expect("a machine that has some time for us")
    }

    fn yardstick(&mut self, (which, contender): (usize, Contender)) -> Round {
        let workers = self.yardsticks[which].first(1);
        let (alone, observer) = (Scenario::alone(), &mut self.observer);
        round::play(workers, contender, &alone, &SHORT, observer).expect("this bench")
    }
}

impl Entrant {
    fn row(&self) -> Row {
        let missing = self.team.as_ref().err().cloned();
        Row { contender: self.contender, outcome: missing.map_or(Ok(Vec::new()), Err) }
    }
}

impl Row {
    /// A turn; one that went wrong replaces all the others.
    fn add(&mut self, turn: Result<Figures, String>) {
        match (&mut self.outcome, turn) {
            (Ok(turns), Ok(turn)) => turns.push(turn),
            (_, Err(why)) => self.outcome = Err(why),
            (Err(_), Ok(_)) => {}
        }
    }
}

impl Contender {
    fn version_of(self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if self.has_one_process() {
            scenario.waiters *= scenario.processes;
            scenario.processes = 1;
        }
        scenario
    }
}

fn team(contender: Contender, url: &str, cores: Cores) -> Result<Team, String> {
    let size = if contender.has_one_process() { 1 } else { MOST_PROCESSES };
    let launcher = Launcher::prepare(contender)?;
    Team::start(size, || launcher.command(url, cores))
}

/// What a scenario may ask for.
const MOST_PROCESSES: usize = 4;

/// How often a yardstick is measured when nothing comes of it.
const TRIES: usize = 20;

/// For a yardstick, which has one waiter.
const SHORT: Pace = Pace {
    turns: 1,
    lead: Duration::from_millis(5),
    warm_up: Duration::from_millis(15),
    window: Duration::from_millis(70),
};
