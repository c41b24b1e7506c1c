//! A simulation of the client.
mod client;
mod connection;
mod dice;
mod history;
mod life;
mod mix;
mod process;
mod rules;
mod subscription;
mod trial;
mod worker;
mod world;

use self::history::Record;
use std::collections::BTreeMap;
use std::time::Duration;

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().map_or(or, |v| v.parse().unwrap())
}

#[test]
fn every_seed_keeps_the_rules() {
    let (first, seeds, millis) =
        (number("SIM_SEED", 1), number("SIM_SEEDS", 100), number("SIM_MILLIS", 10_000));
    let mut counts = BTreeMap::<&str, u64>::new();
    let mut failed = Vec::new();
    let mut wait = [Duration::ZERO; 2];
    let start = tokio::time::Instant::now();
    for seed in first..first + seeds {
        let record = if seeds == 1 {
            Record::Trace
        } else if seed % 50 == 0 {
            Record::Hash
        } else {
            Record::Counts
        };
        let outcome = trial::run(seed, Duration::from_millis(millis), record);
        outcome.events.iter().for_each(|l| println!("{l}"));
        if record != Record::Counts {
            let again = trial::run(seed, Duration::from_millis(millis), Record::Hash);
            assert_eq!(again.hash, outcome.hash, "seed {seed} is not reproducible");
        }
        for (k, v) in outcome.counts {
            *counts.entry(k).or_default() += v;
        }
        let w = &mut wait[(seed % 2) as usize];
        *w = (*w).max(outcome.longest_wait);
        if !outcome.violations.is_empty() {
            println!("seed {seed}: {:?}", &outcome.violations[..outcome.violations.len().min(3)]);
            failed.push(seed);
        }
    }
    println!("{counts:#?} {wait:?} {:?}", start.elapsed());
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
}
