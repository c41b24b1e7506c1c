//! Each script and the commands of an acquisition do what the reference in memory does.
//!
//! Goal: a script that answers, or leaves its lock or its queue, in another way than the memory
//! backend.
//! Method: both run the same random sequences of verbs, and their answers, the grants
//! that they publish, and all of their locks and queues are compared after each step. Time goes by in
//! steps: memory's clock is paused and advanced, and in Redis every lock's life is made shorter by
//! as much.
//!
//! Three processes wait. The last one does not listen, as if it had died: it is passed over.

use std::time::Duration;

use self::dice::Dice;
use self::step::Step;
use self::world::World;

mod dice;
mod side;
mod state;
mod step;
mod world;

#[test]
fn every_verb_does_in_redis_what_it_does_in_memory() {
    let mut world = World::start();
    let judged = (1..=SEQUENCES).filter(|seed| is_judged(&mut world, *seed)).count();
    assert!(judged > ENOUGH, "the machine is too slow: {judged} judged");
    assert!(world.published() > judged, "hardly any lock was handed off");
}

const SEQUENCES: u64 = 40;
const ENOUGH: usize = 20;
const STEPS: usize = 100;

/// The first has a hash tag.
const KEYS: [&str; 3] = ["{a}:1", "b", "c"];

/// Those who wait do so in one of them. The others ask in the first.
const PROCESSES: usize = 3;
const LISTENING: usize = 2;

/// All lives are multiples of this, but for those of locks that are handed off. The time that the
/// test itself takes, which counts in Redis alone, is far from it.
const UNIT: Duration = Duration::from_secs(20);

/// How long a lock lives that is handed off, and how long a step may take that hands one off.
const GRANTED: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_millis(500);

/// Whether the sequence was completed. It is given up where a lock that was handed off may have
/// ended in Redis by real time.
fn is_judged(world: &mut World, seed: u64) -> bool {
    world.clear();
    let mut dice = Dice(seed);
    let mut done = Vec::new();
    for _ in 0..STEPS {
        let step = Step::any(&mut dice, world.asked(), world.latest());
        done.push(format!("{step:?}"));
        let Some(outcome) = world.take(&step) else { return false };
        assert!(outcome.is_alike(), "seed {seed}: {outcome:?}\nafter\n{}", done.join("\n"));
    }
    true
}
