//! What ours has to reach.

use lockable_benches::{Bound, median};

use crate::contender::Contender;
use crate::figures::Column;
use crate::runner::Row;
use crate::scenario::{BURST, FOUR, FOUR_MS, ONE_32, ONE_32_MS, ONE_256_MS};

struct Goal {
    scenario: &'static str,
    contender: Contender,
    of: Of,
    what: &'static str,
    bound: Bound,
}

enum Of {
    Column(Column),
    /// How many times as much the same is with `rslock`.
    UnderRslock(Column),
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
        format!("{}: {} {}", self.contender.name(), self.what, self.bound)
    }

    fn verdict(&self, rows: &[Row]) -> String {
        match self.result(rows) {
            Ok(number) => self.bound.verdict(number),
            Err(why) => why,
        }
    }

    fn result(&self, rows: &[Row]) -> Result<f64, String> {
        match self.of {
            Of::Column(column) => middle(rows, self.contender, column),
            Of::UnderRslock(column) => {
                let ours = middle(rows, self.contender, column)?;
                Ok(middle(rows, Contender::Rslock, column)? / ours)
            }
        }
    }
}

fn middle(rows: &[Row], contender: Contender, column: Column) -> Result<f64, String> {
    let row = rows.iter().find(|row| row.contender == contender).ok_or("no row")?;
    let turns = row.outcome.as_ref().map_err(String::clone)?;
    let numbers: Vec<f64> = turns.iter().filter_map(|turn| turn.get(column)).collect();
    if numbers.is_empty() { Err("not measured".to_owned()) } else { Ok(median(numbers)) }
}

fn all() -> Vec<Goal> {
    let (ours, fair) = (Contender::Ours, Contender::OursFair);
    let mut goals = Vec::new();
    goals.extend(one_process(ours, (8.0, 0.15, 8.0)));
    goals.extend(one_process(fair, (0.8, 1.2, 2.0)));
    goals.extend(four_processes());
    for (contender, times) in [(ours, 80.0), (fair, 25.0)] {
        goals.extend(burst(contender, times));
        goals.extend([ONE_32_MS, ONE_256_MS, FOUR_MS].map(|name| work(contender, name)));
    }
    goals
}

fn one_process(contender: Contender, (rate, commands, wait): (f64, f64, f64)) -> [Goal; 3] {
    let goal = |of, what, bound| Goal { scenario: ONE_32, contender, of, what, bound };
    [
        goal(Of::Column(Column::OverBare), OVER_BARE, Bound::AtLeast(rate)),
        goal(Of::Column(Column::Commands), COMMANDS, Bound::AtMost(commands)),
        goal(Of::Column(Column::WaitRatio), "longest over median wait", Bound::AtMost(wait)),
    ]
}

fn four_processes() -> [Goal; 8] {
    let goal = |contender, column, what, bound| Goal {
        scenario: FOUR,
        contender,
        of: Of::Column(column),
        what,
        bound,
    };
    let (ours, fair) = (Contender::Ours, Contender::OursFair);
    [
        goal(ours, Column::OverBare, OVER_BARE, Bound::AtLeast(4.0)),
        goal(ours, Column::Commands, COMMANDS, Bound::AtMost(0.2)),
        goal(ours, Column::LeastProcess, "% of the process with least", Bound::AtLeast(20.0)),
        goal(ours, Column::MostProcess, "% of the process with most", Bound::AtMost(30.0)),
        goal(fair, Column::OverBare, OVER_BARE, Bound::AtLeast(0.5)),
        goal(fair, Column::Commands, COMMANDS, Bound::AtMost(2.2)),
        goal(fair, Column::PingsP50, "hand-off p50 in PINGs", Bound::AtMost(4.0)),
        goal(fair, Column::PingsP99, "hand-off p99 in PINGs", Bound::AtMost(10.0)),
    ]
}

fn burst(contender: Contender, times: f64) -> [Goal; 2] {
    let goal = |of, what, bound| Goal { scenario: BURST, contender, of, what, bound };
    let overhead = "rslock's overhead a section over its own";
    [
        goal(Of::UnderRslock(Column::Overhead), overhead, Bound::AtLeast(times)),
        goal(Of::Column(Column::OverShare), "longest wait over fair share", Bound::AtMost(1.3)),
    ]
}

fn work(contender: Contender, scenario: &'static str) -> Goal {
    let (of, bound) = (Of::Column(Column::Inside), Bound::AtLeast(94.0));
    Goal { scenario, contender, of, what: "% of the time inside", bound }
}

const OVER_BARE: &str = "sections over bare pairs";
const COMMANDS: &str = "commands a section";
