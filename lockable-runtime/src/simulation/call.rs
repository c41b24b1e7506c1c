//! One call, as the dice make it.

use std::time::Duration;

use super::dice::Dice;
use super::mix::Mix;
use super::world::KEYS;
use crate::request_id::RequestId;
use crate::types::options::{Begin, OnLost, Terms, Ttl, Wait};
use crate::types::permit::Permits;

#[derive(Debug)]
pub(super) struct Call {
    pub(super) key: &'static str,
    pub(super) terms: Terms,
    pub(super) form: Form,
    /// The body waits this often, each time for so long.
    pub(super) steps: u64,
    pub(super) pause: Duration,
    /// A guard that is held by hand is extended once.
    pub(super) extends: bool,
    /// The call is dropped after this time.
    pub(super) patience: Option<Duration>,
}

/// How a call holds its lock, and how that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As the attribute does it: the body runs only while the lease is held.
    Body,
    /// A guard, and a release that is waited for.
    Released,
    /// A guard that is dropped.
    Dropped,
}

impl Call {
    pub(super) fn draw(dice: &mut Dice, mix: &Mix) -> Self {
        Self {
            key: KEYS[usize::from(dice.chance(150))],
            terms: terms(dice),
            form: dice.one_of(&[Form::Body, Form::Body, Form::Released, Form::Dropped]),
            steps: if mix.is_crowded && dice.chance(900) { 0 } else { dice.below(6) },
            pause: pause(dice, mix),
            extends: dice.chance(50),
            patience: dice.chance(mix.cancel).then(|| patience(dice)),
        }
    }
}

fn terms(dice: &mut Dice) -> Terms {
    let millis = dice.one_of(&[200, 500, 1_500, 4_000]);
    let renew = dice.chance(400);
    let has_max_hold = renew && dice.chance(100);
    let wait = match dice.below(10) {
        0 | 1 => Wait::Never,
        2 | 3 => Wait::AtMost(dice.millis_below(1_500)),
        _ => Wait::Forever,
    };
    Terms {
        ttl: Ttl::new("expire", Duration::from_millis(millis)).unwrap(),
        renew,
        max_hold: has_max_hold.then(|| Duration::from_millis(1 + dice.below(3_000))),
        min_hold: dice.chance(30).then(|| Duration::from_millis(millis / 3)),
        once: None,
        on_lost: if dice.chance(100) { OnLost::Finish } else { OnLost::Cancel },
        wait,
        fair: wait != Wait::Never && dice.chance(200),
        identity: dice.chance(100).then(|| RequestId::new("checkout")),
        caller_blocks: false,
        permits: Permits::OneLock,
        begin: Begin::AtGrant,
        label: Default::default(),
    }
}

fn pause(dice: &mut Dice, mix: &Mix) -> Duration {
    let is_long = dice.chance(mix.long_body);
    let longest = if is_long { 900_000 } else { dice.one_of(&[4_000, 4_000, 60_000]) };
    dice.micros_below(longest)
}

/// Most calls that are dropped are so while they ask for the first time.
fn patience(dice: &mut Dice) -> Duration {
    let longest = dice.one_of(&[30_000, 30_000, 1_500_000]);
    dice.micros_below(longest)
}
