//! One call, as the dice make it.

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
    /// One lock, several, the gate and all permits, or what the permits are of, where it wants one of them.
    pub(super) keys: Vec<&'static str>,
    pub(super) options: Options,
    pub(super) form: Form,
    /// The body waits this often, each time for so long.
    pub(super) steps: u64,
    pub(super) pause: Duration,
    /// A guard that is held by hand is extended once.
    pub(super) extends: bool,
    /// A call that ends well leaves its lock done for so long.
    pub(super) kept: Option<Duration>,
    /// The ticket that has the lock which the call takes over.
    pub(super) redeems: Option<Ticket>,
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
    /// A sync body, which nothing stops; its requests run in the background.
    Sync,
    /// As `lead` does it: a body whenever the campaign is won, until one returns or the call is dropped.
    Lead,
    /// A guard, and a ticket that has the lock for this long.
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

/// The keys of calls for several locks.
const SEVERAL: [&[&str]; 6] =
    [&["a", "b"], &["b", "a"], &["b", "c"], &["c", "a"], &["c", "b", "a"], &["a", "c", "a"]];

impl Call {
    /// Whether it is for one lock, or one permit.
    pub(super) fn is_of_one(&self) -> bool {
        self.keys.len() == 1
    }

    /// Whether the calls that wait for its lock in its process are served in their order, however long they wait.
    pub(super) fn is_patient(&self) -> bool {
        let is_plain = self.is_of_one() && ![PERMITS, ONCE].contains(&self.keys[0]);
        is_plain && self.options.wait == Wait::Forever
    }

    /// For what it may wait: as often as it may have a place.
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

/// What some calls do instead, by dice of their own: a seed in which none does is as it was before there was that.
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

    /// A campaign, which is dropped in the end, if no body resigns before.
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

    /// For the lock of a ticket, with the other options of this call.
    fn redeeming(mut self, ticket: Ticket) -> Self {
        self.keys = vec![known(ticket.key())];
        self.options.permits = Permits::OneLock;
        (self.options.once, self.kept) = (None, None);
        (self.options.wait, self.options.fair) = (Wait::Never, false);
        self.redeems = Some(ticket);
        self
    }
}

/// What a call wants, by its keys.
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

/// Most calls that are dropped are so while they ask for the first time.
fn patience(dice: &mut Dice) -> Duration {
    let longest = dice.one_of(&[30_000, 30_000, 1_500_000]);
    dice.micros_below(longest)
}
