//! `cargo xtask test`: everything that a fresh machine needs, the checks, and every test.
//!
//! See "Why do the test binaries run side by side, compiled by `clippy-driver`?" in DESIGN.md.

pub(crate) mod build;
mod patience;
mod pool;
pub(crate) mod report;
pub(crate) mod suite;

use std::sync::Arc;

use crate::check::{Check, Needs};
use crate::lint::CHECKS;
use crate::{python, redis};

use build::Build;
use pool::Job;
use report::Report;
use suite::{Suite, Surroundings};

pub(crate) const USAGE: &str = "test [--full] [NAME]";

/// Without a name the checks run too.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let Request { is_full, name } = Request::parse(arguments)?;
    redis::prepare()?;
    let around = Surroundings::new(python::prepare()?, is_full)?;
    let Some(name) = name else { return run_everything(&around) };
    let wanted = named(&name, suites(&build::everything()?, &around)?);
    if wanted.is_empty() {
        return Err(format!("no test has `{name}` in its name"));
    }
    let report = Arc::new(Report::new());
    run_side_by_side(wanted, &report);
    Ok(report.close())
}

/// The suite of that name, or else all tests that have it in theirs.
fn named(name: &str, mut suites: Vec<Suite>) -> Vec<Suite> {
    match suites.iter().position(|suite| suite.is(name)) {
        Some(place) => vec![suites.swap_remove(place)],
        None => suites.into_iter().filter_map(|suite| suite.only(name)).collect(),
    }
}

fn run_everything(around: &Surroundings) -> Result<bool, String> {
    let report = Arc::new(Report::new());
    let of = |needs| CHECKS.iter().filter(move |check| check.needs == needs);
    let run = |check: &Check| report.check(check.name, &(check.run)());
    of(Needs::Toolchain).for_each(run);
    let build = build::everything()?;
    report.check("clippy", &build.outcome());
    run_side_by_side(suites(&build, around)?, &report);
    of(Needs::Pages).for_each(run);
    Ok(report.close())
}

fn suites(build: &Build, around: &Surroundings) -> Result<Vec<Suite>, String> {
    let suites = build.binaries.iter().map(|binary| Suite::of(binary, around));
    let mut suites = suites.collect::<Result<Vec<_>, _>>()?;
    suites.retain(Suite::has_tests);
    suites.push(Suite::of_documentation()?);
    Ok(suites)
}

/// Those that take long start first, so that none is left alone at the end.
fn run_side_by_side(mut suites: Vec<Suite>, report: &Arc<Report>) {
    suites.sort_by_key(Suite::rank);
    report.expect(suites.iter().map(Suite::count).sum());
    let jobs: Vec<_> = suites.into_iter().map(|suite| job(suite, report)).collect();
    pool::run(jobs, pool::budget());
}

fn job(suite: Suite, report: &Arc<Report>) -> Job {
    let report = Arc::clone(report);
    Job { weight: suite.weight(), run: Box::new(move || suite.run(&report)) }
}

/// What the command line asks for.
#[derive(Default)]
struct Request {
    is_full: bool,
    name: Option<String>,
}

impl Request {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut request = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--full" => request.is_full = true,
                _ if request.name.is_none() && !argument.starts_with('-') => {
                    request.name = Some(argument);
                }
                _ => return Err(format!("usage: cargo xtask {USAGE}")),
            }
        }
        Ok(request)
    }
}
