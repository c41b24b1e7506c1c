//! What is promised of a lock whose slot moves key by key.
//!
//! - A holder keeps its lock until it releases the lock, or the lock ends; so there are never two holders.
//! - An attempt that is granted a lock has it.
//! - Fencing tokens rise.
//! - No verb fails, and nothing is at both nodes or anywhere else.

use super::super::KEYS;
use super::super::side::{Asked, Side};
use super::super::state::{Place, State};
use super::super::step::What;

/// Those that are broken by this step.
pub(super) fn broken(
    redis: &mut Side,
    what: &What,
    answer: &str,
    before: &State,
    after: &State,
) -> Vec<String> {
    let mut broken = Vec::new();
    let asker = match what {
        What::ReleaseTo { next, .. } | What::Transfer { next, .. } => {
            Some(next.number(&redis.asked))
        }
        _ => what.asks(&redis.asked),
    };
    let mut woken = 0;
    for key in 0..KEYS {
        let [was, is] = [before, after].map(|state| owner(&state.places[key]));
        let may_change = was.is_none_or(|who| {
            ends(what, who) || is_reserved(&before.places[key]) || deletes(what, key)
        });
        if was != is && !may_change {
            broken.push(format!("lock {key} was {was:?}'s and is {is:?}'s"));
        }
        let changed = is.filter(|_| was != is).and_then(|who| who.parse::<usize>().ok());
        woken += usize::from(changed.is_some_and(|who| Some(who) != asker));
    }
    for who in redis.woken(woken) {
        if !has(&redis.asked, after, who) {
            broken.push(format!("{who} was woken for a lock that is not kept for it"));
        }
    }
    let is_granted = answer == "Ok(true)" || answer == "true" || answer.contains("Granted");
    if let Some(asker) = asker
        && is_granted
        && !has(&redis.asked, after, asker)
    {
        broken.push(format!("{asker} was granted what it does not have"));
    }
    if answer.contains("://") {
        broken.push("the verb failed".to_owned());
    }
    if !redis.tokens.rise {
        broken.push("the tokens do not rise".to_owned());
    }
    if !after.others.is_empty() {
        broken.push(format!("there are {:?}", after.others));
    }
    broken
}

fn owner(place: &Place) -> Option<&str> {
    place.lock.as_ref().map(|(who, _)| who.trim_start_matches(['~', '=']))
}

fn has(asked: &[Asked], state: &State, who: usize) -> bool {
    owner(&state.places[asked[who].key]) == Some(who.to_string().as_str())
}

/// In the last second of a lock that is reserved for its waiters, the first of them has it.
fn is_reserved(place: &Place) -> bool {
    let lock = place.lock.as_ref();
    lock.is_some_and(|(who, life)| {
        who.starts_with('=') && life.millis().is_some_and(|life| life <= 1_000)
    })
}

/// Whether the step ends the hold of this attempt.
fn ends(what: &What, who: &str) -> bool {
    let is_it = |attempt: &usize| attempt.to_string() == who;
    match what {
        What::Release { attempt, .. }
        | What::ReleaseTo { attempt, .. }
        | What::Transfer { attempt, .. }
        | What::Leave { attempt } => is_it(attempt),
        What::ReleaseAll { attempts } => attempts.iter().any(|(attempt, _)| is_it(attempt)),
        _ => false,
    }
}

fn deletes(what: &What, key: usize) -> bool {
    matches!(what, What::Delete { key: deleted } if *deleted == key)
}
