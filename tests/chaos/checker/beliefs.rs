//! Whether holders count on locks for longer than their servers do.

use std::collections::BTreeMap;

use super::windows::Windows;
use super::{by_key, millis};
use crate::history::{Belief, History, Hold, Sample};

/// Each holder that does, with what the server had.
pub(super) fn unfounded(history: &History, windows: &Windows<'_>) -> Vec<String> {
    let samples = by_key(&history.samples, |sample| &sample.key);
    let beliefs = by_owner(&history.beliefs);
    let mut found = Vec::new();
    for (key, holds) in by_key(&history.holds, |hold| &hold.key) {
        let Some(samples) = samples.get(key) else { continue };
        for hold in holds {
            let Some(beliefs) = beliefs.get(&(hold.pid, hold.token, key)) else { continue };
            let sample = first_wrong(hold, beliefs, samples);
            let sample = sample.filter(|it| !windows.harm(hold.token, it.at, it.after));
            if let Some(sample) = sample {
                found.push(format!("a holder counts on a lock for too long: {hold:?}, {sample:?}"));
            }
        }
    }
    found
}

fn by_owner(beliefs: &[Belief]) -> BTreeMap<(u32, u64, &str), Vec<&Belief>> {
    let mut map: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for belief in beliefs {
        map.entry((belief.pid, belief.token, belief.key.as_str())).or_default().push(belief);
    }
    map
}

fn first_wrong<'a>(hold: &Hold, beliefs: &[&Belief], samples: &[&'a Sample]) -> Option<&'a Sample> {
    let start = samples.partition_point(|sample| sample.at < hold.begin);
    let samples = samples[start..].iter().take_while(|sample| sample.at <= hold.deadline);
    samples.copied().find(|sample| is_wrong(hold, beliefs, sample))
}

/// What the holder knew before the server was asked is true still: no end comes earlier later.
fn is_wrong(hold: &Hold, beliefs: &[&Belief], sample: &Sample) -> bool {
    let Some(owner) = beliefs.first().map(|belief| &belief.owner) else { return false };
    if sample.owner.as_ref() != Some(owner) {
        return sample.after <= hold.end;
    }
    let before = beliefs.iter().take_while(|belief| belief.at <= sample.at);
    let deadline = before.map(|belief| belief.deadline).max().unwrap_or_default();
    deadline > sample.after + millis(sample.ttl + ROUNDED)
}

/// A TTL is a number of whole milliseconds.
const ROUNDED: u64 = 2;
