//! Processes that lock, while everything around them fails, and what must hold all the same.
//!
//! Four processes work on two dozen locks: two runtimes, sync callers, and `lockable run`. They hold locks, permits and
//! sets, make runs that are not repeated, lead, and pass locks on in tickets. A nemesis stops, kills, cuts and restarts
//! what they need, as its seed says. Everything is written down, and a checker judges the history: no two holders at
//! once but where the documentation says so, tokens that rise, waiters that are served. `cargo xtask chaos` runs it for
//! minutes; CONTRIBUTING.md says when.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

mod address;
mod checker;
mod history;
mod keys;
mod nemesis;
mod observer;
mod owner;
mod record;
mod report;
mod settings;
mod slot;
mod world;

use history::History;
use nemesis::Kind;
use record::boot_time;
use report::Report;
use settings::{Settings, Topology};
use world::World;

/// Too short to have all that makes a run valid, and long enough for some thousand holds. The faults are the same each
/// time; `cargo xtask chaos` draws others.
#[test]
fn twenty_seconds_of_chaos_break_no_rule() {
    let settings = Settings { topology: Topology::One, seed: 1, length: Duration::from_secs(14) };
    let report = run(&settings);
    assert!(report.is_sound(), "{report}");
}

/// What `cargo xtask chaos` runs; nothing where it was not asked for.
#[test]
fn chaos_breaks_no_rule() {
    let mut reports = Vec::new();
    for settings in settings::all() {
        let report = run(&settings);
        println!("{report}");
        report.append();
        reports.push(report);
        report::write_summary(&reports);
    }
    assert!(reports.iter().all(|report| report.is_sound() && report.is_valid()));
}

/// One run, from the start of its servers to their end.
fn run(settings: &Settings) -> Report {
    let folder = folder(settings);
    let kinds = Kind::draw(settings);
    let world = World::start(settings, &kinds, &folder);
    let names = kinds.iter().map(|kind| kind.name()).collect();
    // What each process needs is known once it has worked for a while.
    with_processes(&world, || nap(settings.warm_up()));
    rest(&world, "begin");
    let begin = boot_time();
    with_processes(&world, || nemesis::rage(&world, settings, &kinds));
    let end = boot_time();
    world.record.write(format_args!("span {begin} {end}"));
    rest(&world, "end");
    leftovers(&world);
    world.slots.iter().for_each(|slot| slot.kill(&world.record));
    let report = Report::of(settings, names, &world, &history(&folder));
    if report.is_sound() {
        drop(fs::remove_dir_all(&folder));
    } else {
        world.servers.save_logs(&folder);
        println!("what happened is in {}", folder.display());
    }
    report
}

/// All work and are watched, until `during` and a time of calm are over.
fn with_processes(world: &World, during: impl FnOnce()) {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        world.slots.iter().for_each(slot::Slot::work);
        scope.spawn(|| observer::watch(world, &ends));
        scope.spawn(|| replace(world, &ends));
        // Also where it panics: those that watch would never end.
        let _end = AtEnd(&ends);
        during();
        nap(CALM);
    });
}

struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn replace(world: &World, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        world.slots.iter().for_each(|slot| slot.renew(&world.record));
        nap(Duration::from_millis(5));
    }
}

fn rest(world: &World, when: &str) {
    thread::scope(|scope| {
        for slot in &world.slots {
            scope.spawn(|| {
                let Some((tasks, kibibytes)) = slot.rest() else { return };
                let (kind, connections) = (slot.kind().name(), slot.connections());
                let size = format_args!("{connections} {tasks} {kibibytes}");
                world.record.write(format_args!("size {kind} {when} {size}"));
            });
        }
    });
}

/// The processes have rested for longer than a lease.
fn leftovers(world: &World) {
    for server in world.servers.running() {
        let admin = server.admin();
        if admin.info("replication").contains("role:master") {
            for key in admin.keys("*") {
                world.record.write(format_args!("left {} {key}", admin.pttl(&key)));
            }
        }
    }
}

fn history(folder: &Path) -> History {
    let mut history = History::default();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let text = fs::read(entry.expect("it can be listed").path()).expect("it can be read");
        history.read(&String::from_utf8_lossy(&text));
    }
    history.merged()
}

/// A new one in the folder of the build.
fn folder(settings: &Settings) -> PathBuf {
    // The same seed may run twice at a time.
    let (name, seed, run) = (settings.topology.name(), settings.seed, process::id());
    let folder = report::folder().join(format!("{name}-{seed}-{run}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

#[expect(
    clippy::disallowed_methods,
    reason = "faults last for a time, and so does the calm after them"
)]
fn nap(length: Duration) {
    thread::sleep(length);
}

/// Longer than what a waiter may wait then.
const CALM: Duration = Duration::from_millis(2_500);
