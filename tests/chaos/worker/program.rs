//! What `lockable run` runs: it holds the lock as long as it lives.

use std::env;
use std::process;
use std::thread;
use std::time::Duration;

use lockable_tests::Dice;

use crate::journal::{Journal, boot_time};
use crate::resource::Resource;

#[expect(clippy::disallowed_methods, reason = "a program that takes its time is the subject")]
pub(crate) fn run(resource: &Resource, journal: &Journal, mut dice: Dice) {
    let key = format!("disLock:{}", env::var("LOCKABLE_KEY").unwrap());
    let token = env::var("LOCKABLE_FENCING_TOKEN").unwrap().parse().unwrap();
    let (pid, begin) = (process::id(), boot_time());
    let note = || {
        let now = boot_time();
        journal.write(format_args!("hold {pid} {key} {token} 0 {begin} {now} 0 -"));
    };
    note();
    let rounds = if dice.is_one_of(10) { 40 } else { 1 };
    for _ in 0..rounds {
        thread::sleep(Duration::from_millis(5));
        note();
    }
    // It is ended before the end of its lease.
    resource.put(journal, &key, token, || true);
    note();
}
