//! What ours has to reach.

use lockable_benches::Bound::{self, AtLeast, AtMost};
use lockable_benches::median;

use crate::contender::Contender;
use crate::figures::Column;
use crate::runner::Row;
use crate::scenario::{BURST, FOUR, ONE_32};

struct Goal {
    scenario: &'static str,
    contender: Contender,
    column: Column,
    /// Whose result in the same run it is divided by.
    over: Option<Contender>,
    what: &'static str,
    bound: Bound,
}

/// The goals of a scenario, each with its result.
pub(crate) fn print(scenario: &str, rows: &[Row]) {
    let goals: Vec<Goal> = all().into_iter().filter(|goal| goal.scenario == scenario).collect();
    if !goals.is_empty() {
        println!("\nGoals:\n");
    }
    for goal in goals {
        println!("- {}: {}", goal.says(), goal.verdict(rows));
    }
}

impl Goal {
    fn says(&self) -> String {
        let over = self.over.map(|other| format!(" over that of {}", other.name()));
        let (name, over) = (self.contender.name(), over.unwrap_or_default());
        format!("{name}: {}{over} {}", self.what, self.bound)
    }

    fn verdict(&self, rows: &[Row]) -> String {
        match self.result(rows) {
            Ok(number) => self.bound.verdict(number),
            Err(why) => why,
        }
    }

    /// A median of turns, and of ratios within a turn.
    fn result(&self, rows: &[Row]) -> Result<f64, String> {
        let mut numbers = column(rows, self.contender, self.column)?;
        if let Some(other) = self.over {
            let others = column(rows, other, self.column)?;
            numbers = numbers.iter().zip(others).map(|(ours, theirs)| ours / theirs).collect();
        }
        if numbers.is_empty() { Err("not measured".to_owned()) } else { Ok(median(numbers)) }
    }
}

fn column(rows: &[Row], contender: Contender, column: Column) -> Result<Vec<f64>, String> {
    let row = rows.iter().find(|row| row.contender == contender).ok_or("no row")?;
    let turns = row.outcome.as_ref().map_err(String::clone)?;
    Ok(turns.iter().filter_map(|turn| turn.get(column)).collect())
}

fn all() -> Vec<Goal> {
    let (ours, fair) = (Contender::Ours, Contender::OursFair);
    let mut goals = vec![
        rate(ONE_32),
        rate(FOUR),
        goal(ONE_32, ours, (Column::WaitRatio, "longest over median wait"), AtMost(8.0)),
        goal(ONE_32, fair, (Column::WaitRatio, "longest over median wait"), AtMost(2.0)),
        goal(FOUR, fair, (Column::PingsP50, "hand-off p50 in PINGs"), AtMost(7.0)),
        goal(FOUR, fair, (Column::PingsP99, "hand-off p99 in PINGs"), AtMost(14.0)),
    ];
    goals.extend(burst(ours, 1.5, (Contender::MutexAndPing, 0.7)));
    goals.extend(burst(fair, 12.0, (Contender::Limit, 1.05)));
    goals
}

/// Beside a peer that polls.
fn rate(scenario: &'static str) -> Goal {
    let rate = (Column::PerSecond, "sections/s");
    let goal = goal(scenario, Contender::Ours, rate, AtLeast(20.0));
    Goal { over: Some(Contender::Rslock), ..goal }
}

/// `commands` is of the server, and the overhead is beside another one's in the same run.
fn burst(contender: Contender, commands: f64, (other, times): (Contender, f64)) -> [Goal; 3] {
    let overhead = (Column::Overhead, "overhead a section");
    let goal = |what, bound| goal(BURST, contender, what, bound);
    [
        goal((Column::ServerCommands, "server commands a section"), AtMost(commands)),
        Goal { over: Some(other), ..goal(overhead, AtMost(times)) },
        goal((Column::OverShare, "longest wait over fair share"), AtMost(1.3)),
    ]
}

fn goal(
    scenario: &'static str,
    contender: Contender,
    (column, what): (Column, &'static str),
    bound: Bound,
) -> Goal {
    Goal { scenario, contender, column, over: None, what, bound }
}
