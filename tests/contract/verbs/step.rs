//! What may be done to both stores.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use super::KEYS;
use super::dice::{Dice, LONGEST};
use super::side::Asked;
use super::state::State;

/// What is done, and how much time passes before.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) later: Duration,
    pub(super) what: What,
    /// Whether it is the step before once more, which changes nothing.
    pub(super) is_repeat: bool,
}

/// Attempts are named by their number, and so are keys and processes.
#[derive(Clone, Debug)]
pub(super) enum What {
    // A new attempt that does not wait.
    Acquire { key: usize, process: usize, ttl: Duration },
    // A new attempt that waits.
    Enqueue { key: usize, process: usize, ttl: Duration },
    // The same attempt asks once more, in the same way.
    Ask { attempt: usize },
    Renew { batch: Vec<(usize, Option<Duration>)> },
    Release { attempt: usize, keep: Duration },
    // Of one attempt of each key at most, all at once.
    ReleaseAll { attempts: Vec<(usize, Duration)> },
    ReleaseTo { attempt: usize, next: Next, keep: Duration },
    Leave { attempt: usize },
    // To a ticket of the attempt, or from a ticket to a new attempt.
    Transfer { attempt: usize, next: Next },
    Inspect { key: usize },
    PutForeign { key: usize, text: &'static str, life: Option<Duration> },
    Delete { key: usize },
    Flush,
    // The fence counter is ahead of the server's clock, as it is when that was set back.
    CountAhead { key: usize },
    // The fence counter was lost, and counted up by a client that did not seed it any more; or it is as old
    // and still has an end.
    LoseCount { key: usize, life: Option<Duration> },
    Advance,
}

/// Who is queued with a release, or has the lock of another one then.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    New { process: usize, ttl: Duration },
    // One that was asked for before, as a request does that is repeated.
    Known(usize),
}

/// What a step is chosen by.
pub(super) struct Scene<'a> {
    pub(super) asked: &'a [Asked],
    pub(super) state: &'a State,
    /// For how many milliseconds all queues are there.
    pub(super) patience: u64,
    pub(super) last: Option<&'a Step>,
}

impl Debug for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let once_more = if self.is_repeat { " once more" } else { "" };
        write!(f, "{:?} later{once_more}: {:?}", self.later, self.what)
    }
}

impl Step {
    pub(super) fn any(dice: &mut Dice, scene: &Scene<'_>) -> Self {
        if let Some(what) = scene.last.and_then(|last| last.what.repeated(scene.asked.len()))
            && dice.below(5) == 0
        {
            return Self { later: Duration::ZERO, what, is_repeat: true };
        }
        let what = What::any(dice, scene);
        let later = match what {
            What::Advance => advance(dice, scene),
            // Tokens that were lost were not given away just now.
            What::Flush | What::LoseCount { .. } => 1_000,
            _ => dice.one_of(&[0, 1]).unwrap_or_default(),
        };
        let later = Duration::from_millis(later);
        Self { later, what, is_repeat: false }
    }
}

impl What {
    fn any(dice: &mut Dice, scene: &Scene<'_>) -> Self {
        let (key, process, ttl) = (dice.key(), dice.process(), dice.life());
        if scene.asked.is_empty() {
            return Self::Acquire { key, process, ttl };
        }
        if let Some(what) = Self::about_reserved(dice, scene) {
            return what;
        }
        match scene.last.map(|last| &last.what) {
            Some(Self::LoseCount { key, .. }) if dice.below(2) == 0 => {
                return Self::Acquire { key: *key, process, ttl };
            }
            // A lock that may last longer than is asked for.
            Some(Self::Renew { batch }) if dice.below(3) == 0 => {
                return Self::Ask { attempt: batch[0].0 };
            }
            _ => {}
        }
        let (attempt, ending) = (one_of(dice, scene), holder(dice, scene));
        match dice.below(100) {
            0..8 => Self::Acquire { key, process, ttl },
            8..34 => Self::Enqueue { key, process, ttl },
            34..37 => Self::Ask { attempt },
            37..40 => Self::Ask { attempt: ending },
            40..47 => Self::Renew { batch: batch(dice, scene) },
            47..58 => Self::Release { attempt: ending, keep: keep(dice, scene, ending) },
            58..63 => Self::ReleaseAll { attempts: of_each_key(dice, scene) },
            63..80 => {
                let next = Next::any(dice, scene.asked, ending);
                Self::ReleaseTo { attempt: ending, next, keep: keep(dice, scene, ending) }
            }
            80..86 => Self::Leave { attempt },
            86 => Self::Inspect { key },
            87 => Self::PutForeign {
                key,
                text: FOREIGN[dice.below(FOREIGN.len())],
                life: (dice.below(2) == 0).then_some(ttl),
            },
            88..90 => Self::Delete { key },
            90 => Self::Flush,
            91 => Self::CountAhead { key },
            92..94 => Self::LoseCount { key, life: (dice.below(2) == 0).then_some(10 * LONGEST) },
            94..97 => {
                let made = ticket_of(scene.asked, ending);
                let next = made.map_or(Next::New { process, ttl }, Next::Known);
                Self::Transfer { attempt: ending, next }
            }
            _ => Self::Advance,
        }
    }

    /// What is rare by chance: a lock comes into the second that it stays taken for its waiters only, and they
    /// leave.
    fn about_reserved(dice: &mut Dice, scene: &Scene<'_>) -> Option<Self> {
        match scene.state.reserved()? {
            0..=1_000 if dice.below(3) == 0 => {
                dice.one_of(&scene.state.queued()).map(|attempt| Self::Leave { attempt })
            }
            1_001.. if dice.below(6) == 0 => Some(Self::Advance),
            _ => None,
        }
    }

    /// The same once more, where it is a verb; `asked` attempts have been made.
    fn repeated(&self, asked: usize) -> Option<Self> {
        Some(match self {
            Self::Acquire { .. } | Self::Enqueue { .. } => Self::Ask { attempt: asked - 1 },
            Self::ReleaseTo { attempt, next: Next::New { .. }, keep } => {
                Self::ReleaseTo { attempt: *attempt, next: Next::Known(asked - 1), keep: *keep }
            }
            Self::Transfer { attempt, next: Next::New { .. } } => {
                Self::Transfer { attempt: *attempt, next: Next::Known(asked - 1) }
            }
            verb if verb.is_verb() => verb.clone(),
            _ => return None,
        })
    }

    /// An attempt that the step was about, where there is one.
    fn subject(&self, asked: &[Asked]) -> Option<usize> {
        match self {
            Self::Release { attempt, .. }
            | Self::ReleaseTo { attempt, .. }
            | Self::Transfer { attempt, .. }
            | Self::Leave { attempt } => Some(*attempt),
            Self::Renew { batch } => batch.first().map(|(attempt, _)| *attempt),
            _ => self.asks(asked),
        }
    }

    /// The attempt that asks for its lock.
    pub(super) fn asks(&self, asked: &[Asked]) -> Option<usize> {
        match self {
            Self::Acquire { .. } | Self::Enqueue { .. } => Some(asked.len() - 1),
            Self::Ask { attempt } => Some(*attempt),
            _ => None,
        }
    }

    /// The keys whose locks may change hands.
    pub(super) fn keys(&self, asked: &[Asked]) -> Vec<usize> {
        match self {
            Self::Release { attempt, .. }
            | Self::ReleaseTo { attempt, .. }
            | Self::Leave { attempt } => vec![asked[*attempt].key],
            Self::ReleaseAll { attempts } => {
                attempts.iter().map(|(at, _)| asked[*at].key).collect()
            }
            _ => self.asks(asked).map(|attempt| asked[attempt].key).into_iter().collect(),
        }
    }

    /// Whether it leaves a lock taken for a minimum hold.
    pub(super) fn keeps(&self) -> bool {
        match self {
            Self::Release { keep, .. } | Self::ReleaseTo { keep, .. } => !keep.is_zero(),
            Self::ReleaseAll { attempts } => attempts.iter().any(|(_, keep)| !keep.is_zero()),
            _ => false,
        }
    }

    pub(super) fn is_verb(&self) -> bool {
        !matches!(
            self,
            Self::PutForeign { .. }
                | Self::Delete { .. }
                | Self::Flush
                | Self::CountAhead { .. }
                | Self::LoseCount { .. }
                | Self::Advance
        )
    }
}

impl Next {
    pub(super) fn number(self, asked: &[Asked]) -> usize {
        match self {
            Self::New { .. } => asked.len() - 1,
            Self::Known(number) => number,
        }
    }

    /// One of the same key that waits, and is another.
    fn any(dice: &mut Dice, asked: &[Asked], attempt: usize) -> Self {
        let is_next =
            |at: &usize| *at != attempt && asked[*at].waits && asked[*at].key == asked[attempt].key;
        let latest = (0..asked.len()).rev().filter(is_next).take(3).collect::<Vec<_>>();
        match dice.one_of(&latest) {
            Some(known) if dice.below(2) == 0 => Self::Known(known),
            _ => Self::New { process: dice.process(), ttl: dice.life() },
        }
    }
}

/// How long a release keeps the lock; a ticket's has no minimum hold.
fn keep(dice: &mut Dice, scene: &Scene<'_>, attempt: usize) -> Duration {
    let is_ticket = scene.asked[attempt].attempt.owner().starts_with('@');
    if is_ticket { Duration::ZERO } else { dice.keep() }
}

/// The ticket of an attempt, where one was made.
fn ticket_of(asked: &[Asked], attempt: usize) -> Option<usize> {
    let owner = format!("@{}", asked[attempt].attempt.owner());
    asked.iter().position(|other| other.attempt.owner() == owner)
}

/// Mostly one who has a lock.
fn holder(dice: &mut Dice, scene: &Scene<'_>) -> usize {
    let holder = dice.one_of(&scene.state.holders()).filter(|_| dice.below(4) > 0);
    holder.unwrap_or_else(|| one_of(dice, scene))
}

/// One who has a lock, one who is queued, the one of the step before, or one of the latest.
fn one_of(dice: &mut Dice, scene: &Scene<'_>) -> usize {
    let concerned = match dice.below(5) {
        0 | 1 => dice.one_of(&scene.state.holders()),
        2 => dice.one_of(&scene.state.queued()),
        3 => scene.last.and_then(|last| last.what.subject(scene.asked)),
        _ => None,
    };
    let asked = scene.asked.len();
    concerned.unwrap_or_else(|| asked - 1 - dice.below(asked.min(6)))
}

fn of_each_key(dice: &mut Dice, scene: &Scene<'_>) -> Vec<(usize, Duration)> {
    let mut attempts = Vec::new();
    if dice.below(2) == 0 {
        attempts = scene.state.holders();
    }
    for _ in 0..2 * KEYS {
        let attempt = one_of(dice, scene);
        if attempts.iter().all(|other| scene.asked[*other].key != scene.asked[attempt].key) {
            attempts.push(attempt);
        }
    }
    attempts.into_iter().map(|attempt| (attempt, keep(dice, scene, attempt))).collect()
}

/// The same attempt, or the same key, may come twice.
fn batch(dice: &mut Dice, scene: &Scene<'_>) -> Vec<(usize, Option<Duration>)> {
    let count = 1 + dice.below(4);
    let mut one = || (one_of(dice, scene), (dice.below(3) > 0).then(|| dice.life()));
    (0..count).map(|_| one()).collect()
}

/// How much time passes, in milliseconds: some, or until just after a lock ends, or the second before that
/// which a lock stays taken for its waiters. A queue does not end, because those in memory do not.
fn advance(dice: &mut Dice, scene: &Scene<'_>) -> u64 {
    let ends = scene.state.ends();
    let grace = scene.state.reserved().filter(|end| *end > 1_000 && *end < scene.patience);
    if let Some(end) = grace
        && dice.below(2) == 0
    {
        return end - 999;
    }
    let graces = ends.iter().filter_map(|end| end.checked_sub(1_000));
    let mut times: Vec<_> = ends.iter().copied().chain(graces).map(|end| end + 1).collect();
    times.extend([500, 1_000, 10_000, 40_000, 200_000, 700_000]);
    times.retain(|time| time + 10_000 < scene.patience);
    dice.one_of(&times).unwrap_or_default()
}

/// What other programs write where a lock belongs; some of it begins as a mark does.
pub(super) const FOREIGN: [&str; 3] = ["another's", "~another's", "=1.2"];
