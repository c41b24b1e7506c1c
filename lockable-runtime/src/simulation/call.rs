use std::time::Duration;

use super::dice::Dice;
use super::keys::{GATE, KEYS, ONCE, PERMITS, known, permits_key};
use super::mix::Mix;
use crate::core::request_id::RequestId;
use crate::core::types::options::{Begin, OnLost, Once, Options, Ttl, Wait};
use crate::core::types::permit::Permits;
use crate::core::types::ticket::Ticket;

#[derive(Clone, Debug)]
pub(super) struct Call {
    /// One lock, several, the gate and all permits, or what one permit is of.
    pub(super) keys: Vec<&'static str>,
    pub(super) options: Options,
    pub(super) form: Form,
    pub(super) steps: u64,
    pub(super) pause: Duration,
    pub(super) extends: bool,
    /// For how long it is done after it ended well.
    pub(super) kept: Option<Duration>,
    pub(super) redeems: Option<Ticket>,
    /// After this time the call is dropped.
    pub(super) patience: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As the attribute: the body runs only while the lease is held.
    Body,
    /// A guard that is released.
    Released,
    /// A guard that is dropped.
    Dropped,
    /// A sync body, which nothing stops.
    Sync,
    /// As `lead`: a body for each election, until one returns or the call is dropped.
    Lead,
    /// A guard, and a ticket valid for this long.
    Passed(Duration),
}

const FORMS: [Form; 8] = [
    Form::Body,
    Form::Body,
    Form::Body,
    Form::Body,
    Form::Released,
    Form::Released,
    Form::Dropped,
    Form::Sync,
];

const SEVERAL: [&[&str]; 6] =
    [&["a", "b"], &["b", "a"], &["b", "c"], &["c", "a"], &["c", "b", "a"], &["a", "c", "a"]];

impl Call {
    pub(super) fn is_of_one(&self) -> bool {
        self.keys.len() == 1
    }

    /// Whether the calls of its process for its lock are served in order, however long they wait.
    pub(super) fn is_patient(&self) -> bool {
        let is_plain = self.is_of_one() && ![PERMITS, ONCE].contains(&self.keys[0]);
        is_plain && self.options.wait == Wait::Forever
    }

    /// With an item for each queue entry it may have.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| permits_key(key))
    }

    pub(super) fn draw(dice: &mut Dice, mix: &Mix) -> Self {
        let form = dice.one_of(&FORMS);
        let (keys, permits) = wanted(dice, mix);
        let kept = (keys == [ONCE] && form != Form::Sync && dice.chance(800))
            .then(|| dice.millis_below(3_000));
        let kept = kept.map(|period| period + Duration::from_millis(100));
        let mut options = Options { permits, ..options(dice) };
        options.fair &= permits == Permits::OneLock;
        if let Some(period) = kept {
            let is_body = form == Form::Body;
            options.once = Some(if is_body { Once::For(period) } else { Once::ByHand });
            options.min_hold = None;
        } else if keys == [ONCE] && options.wait == Wait::Forever {
            // It could wait for one period after the other.
            options.wait = Wait::Never;
        }
        options.caller_blocks = form == Form::Sync;
        Self {
            keys,
            options,
            form,
            kept,
            steps: if mix.is_crowded && dice.chance(900) { 0 } else { dice.below(6) },
            pause: pause(dice, mix),
            extends: dice.chance(50),
            redeems: None,
            patience: (form != Form::Sync && dice.chance(mix.cancel)).then(|| patience(dice)),
        }
    }
}

/// Later kinds of calls, by dice of their own, so that seeds without them stay the same.
impl Call {
    pub(super) fn or_late(self, ticket: Option<Ticket>, late_dice: &mut Dice, mix: &Mix) -> Self {
        let is_plain = self.is_of_one() && self.options.permits == Permits::OneLock;
        let may_lead = is_plain && self.form == Form::Body && self.options.once.is_none();
        let may_pass = self.is_of_one() && self.form == Form::Released && self.kept.is_none();
        if may_lead && late_dice.chance(mix.leads) {
            return self.led(late_dice);
        }
        let call = if let Some(ticket) = ticket { self.redeeming(ticket) } else { self };
        if may_pass && late_dice.chance(mix.passes) {
            let period = Duration::from_millis(50) + late_dice.millis_below(1_500);
            return Self { form: Form::Passed(period), ..call };
        }
        call
    }

    /// A campaign that is dropped in the end, unless a body resigns.
    fn led(mut self, late_dice: &mut Dice) -> Self {
        self.form = Form::Lead;
        self.options.wait = Wait::Forever;
        self.options.renew = true;
        self.options.on_lost = OnLost::Cancel;
        self.steps = if late_dice.chance(300) { self.steps } else { u64::MAX };
        self.pause += Duration::from_millis(1);
        self.patience = Some(late_dice.millis_below(3_000));
        self
    }

    fn redeeming(mut self, ticket: Ticket) -> Self {
        self.keys = vec![known(ticket.key())];
        self.options.permits = Permits::OneLock;
        (self.options.once, self.kept) = (None, None);
        (self.options.wait, self.options.fair) = (Wait::Never, false);
        self.redeems = Some(ticket);
        self
    }
}

fn wanted(dice: &mut Dice, mix: &Mix) -> (Vec<&'static str>, Permits) {
    if dice.chance(mix.wants_permit) {
        let count = u32::try_from(mix.permits).unwrap();
        if dice.chance(mix.wants_all) {
            return (KEYS[GATE..=GATE + mix.permits].to_vec(), Permits::All(count));
        }
        return (vec![PERMITS], Permits::OneOf(count));
    }
    let keys = match () {
        () if dice.chance(mix.wants_several) => dice.one_of(&SEVERAL).to_vec(),
        () if dice.chance(mix.wants_once) => vec![ONCE],
        () => vec![KEYS[usize::from(dice.chance(150))]],
    };
    (keys, Permits::OneLock)
}

fn options(dice: &mut Dice) -> Options {
    let millis = dice.one_of(&[200, 500, 1_500, 4_000]);
    let renew = dice.chance(400);
    let has_max_hold = renew && dice.chance(100);
    let wait = match dice.below(10) {
        0 | 1 => Wait::Never,
        2 | 3 => Wait::AtMost(dice.millis_below(1_500)),
        _ => Wait::Forever,
    };
    Options {
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
        is_campaign: false,
        label: Default::default(),
    }
}

fn pause(dice: &mut Dice, mix: &Mix) -> Duration {
    let is_long = dice.chance(mix.long_body);
    let longest = if is_long { 900_000 } else { dice.one_of(&[4_000, 4_000, 60_000]) };
    dice.micros_below(longest)
}

/// Most dropped calls are dropped during their first request.
fn patience(dice: &mut Dice) -> Duration {
    let longest = dice.one_of(&[30_000, 30_000, 1_500_000]);
    dice.micros_below(longest)
}
