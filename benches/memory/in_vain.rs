//! Calls that try once, of a key that their locker holds.

use std::time::Duration;

use lockable_benches::worker::Flavour;
use lockable_benches::{Bound, Observer, worker};
use lockable_runtime::Locker;
use tokio::time::{MissedTickBehavior, interval};

/// What the calls came to.
#[derive(Default)]
pub(crate) struct InVain {
    busy: u32,
    commands: u64,
    time: Duration,
}

/// As long as a lease of ours is fresh.
pub(crate) fn measure(url: &str, observer: &mut Observer) -> InVain {
    let mut result = InVain::default();
    worker::run(Flavour::MultiThread, async {
        let locker = Locker::connect(url).await.expect("a locker");
        let held = locker.lock("held").acquire().await.expect("a lock");
        let (before, mut ticks) = (observer.look(), interval(TICK));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        for _ in 0..TICKS {
            ticks.tick().await;
            result.busy += calls(&locker).await;
        }
        let after = observer.look();
        result.commands = after.all_calls_since(&before);
        result.time = Duration::from_nanos(after.at - before.at);
        held.release().await.expect("released");
    });
    result
}

/// How many of them were busy.
async fn calls(locker: &Locker) -> u32 {
    let mut busy = 0;
    for _ in 0..CALLS_A_TICK {
        let tried = locker.lock("held").try_acquire().await;
        busy += u32::from(tried.expect_err("it is held").is_busy());
    }
    busy
}

pub(crate) fn print(InVain { busy, commands, time }: &InVain) {
    let calls = TICKS * CALLS_A_TICK;
    println!("\n### {calls} calls that try once, of a key that their locker holds\n");
    println!("| busy | in ms | commands |\n|---|---|---|");
    println!("| {busy} | {} | {commands} |\n\nGoals:\n", time.as_millis());
    let (bound, commands) = (Bound::AtMost(0.0), u32::try_from(*commands).expect("few"));
    println!("- commands {bound}: {}", bound.verdict(f64::from(commands)));
}

/// A thousand calls in half a second.
const TICK: Duration = Duration::from_millis(5);
const TICKS: u32 = 100;
const CALLS_A_TICK: u32 = 10;
