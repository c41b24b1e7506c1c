//! The calls of sync callers, which nothing stops: they look at their leases themselves.

use std::thread;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, LockKey, distributed_lock};
use lockable_tests::Dice;

use crate::calls::{Call, Caller, Kind, WAIT, look};
use crate::journal::Waiting;
use crate::losses;
use crate::stay::Stay;

pub(crate) fn work(caller: &Caller, mut dice: Dice) {
    while !caller.rests() {
        let call = Call::of(&mut dice);
        let outcome = match (call.kind, call.is_renewed) {
            (Kind::Set, _) => {
                let _parts = caller.parts(&call);
                set(caller, &call)
            }
            (_, true) => renewed(caller, &call, &mut Some(caller.waits(&call))),
            (_, false) => plain(caller, &call, &mut Some(caller.waits(&call))),
        };
        if losses::note(&caller.journal, outcome) {
            pause(20);
        }
    }
}

#[distributed_lock(key = LockKey::from_static(call.key), expire = call.expire, wait = WAIT, guard = lock, locker = caller.locks)]
fn plain(caller: &Caller, call: &Call, waiting: &mut Option<Waiting>) -> Result<(), LockError> {
    *waiting = None;
    stay(caller, &[&lock], call);
    Ok(())
}

#[distributed_lock(key = LockKey::from_static(call.key), expire = call.expire, wait = WAIT, renew, guard = lock, locker = caller.locks)]
fn renewed(caller: &Caller, call: &Call, waiting: &mut Option<Waiting>) -> Result<(), LockError> {
    *waiting = None;
    stay(caller, &[&lock], call);
    Ok(())
}

#[distributed_lock(keys = call.keys(), expire = call.expire, wait = WAIT, guard = locks, locker = caller.locks)]
fn set(caller: &Caller, call: &Call) -> Result<(), LockError> {
    let leases: Vec<&Lease> = locks.iter().collect();
    stay(caller, &leases, call);
    Ok(())
}

fn stay(caller: &Caller, leases: &[&Lease], call: &Call) {
    let stay = |lease: &&Lease| Stay::begin(&caller.journal, lease);
    let mut stays: Vec<_> = leases.iter().map(stay).collect();
    for _ in 0..call.rounds {
        if !stays.iter_mut().all(Stay::look) {
            return;
        }
        pause(1);
    }
    if call.writes {
        for stay in &stays {
            caller.resource.write(&caller.journal, stay.lease());
        }
    }
    look(&mut stays);
}

#[expect(clippy::disallowed_methods, reason = "bodies that take their time are the subject")]
fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}
