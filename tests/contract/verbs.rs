//! Each script and the commands of an acquisition do what the reference in memory does.
//!
//! Goal: a script that answers, or leaves its lock, its queue or its fence counter, in another way than
//! the memory backend and the rules for what is beside a lock.
//! Method: both run the same random sequences of verbs. After each step all that is stored is compared to
//! the millisecond, and so are the answers and the messages that wake waiters. Time passes in steps only:
//! memory's clock is paused and the server's stands still, so no machine is too slow.
//!
//! Three processes wait. The last one does not listen, as if it had died: it is passed over.

use std::thread;

use lockable_tests::{clock, long_form};

use self::dice::Dice;
use self::step::Step;
use self::world::World;

mod companions;
mod dice;
mod messages;
mod nodes;
mod other_data;
mod permits;
mod reference;
mod repeated;
mod server;
mod side;
mod state;
mod step;
mod tokens;
mod world;

#[test]
fn every_verb_does_in_redis_what_it_does_in_memory() {
    if !clock::can_be_set() {
        return;
    }
    let mut world = World::start();
    let sequences = u32::try_from(long_form(200, 500)).unwrap();
    (1..=sequences).for_each(|seed| run(&mut world, seed));
    let (verbs, woken) = (world.verbs, world.woken);
    println!("{sequences} sequences, {verbs} verbs, {woken} waiters woken: alike");
    assert!(woken > sequences, "hardly any lock was handed off");
}

const STEPS: usize = 30;

/// Those who ask do so in one of them.
const PROCESSES: usize = 3;
const LISTENING: usize = 2;

/// The number of locks in each sequence.
const KEYS: usize = 3;

/// The names of a sequence: one with a hash tag, one without, and one with what ends a part of a message, or a text of Lua.
fn keys(seed: u32) -> [String; KEYS] {
    [format!("{{a{seed}}}:k"), format!("b{seed}"), format!("c \n\r\0'\"]]--é{seed}")]
}

/// Panics at the first step that differs: so the steps that are printed are the shortest start of the
/// sequence that fails.
fn run(world: &mut World, seed: u32) {
    world.clear(seed);
    let mut dice = Dice(u64::from(seed));
    let mut story = Story { seed, steps: Vec::new() };
    for _ in 0..STEPS {
        let step = Step::any(&mut dice, &world.scene());
        story.steps.push(format!("{step:?}"));
        let differences = world.take(step).differences();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

/// What was done in a sequence. Whatever fails, it is printed.
struct Story {
    seed: u32,
    steps: Vec<String>,
}

impl Drop for Story {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {}, step {}, the last of", self.seed, self.steps.len());
            eprintln!("{}", self.steps.join("\n"));
        }
    }
}
