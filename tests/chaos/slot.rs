//! One of the four places for processes: whichever ends there is replaced.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockable_tests::{Dice, Peer, Proxy};
use rustix::process::Signal;

use crate::keys::KEYS;
use crate::record::{Record, boot_time};

#[derive(Debug)]
pub(crate) struct Slot {
    kind: Kind,
    /// What is between the process and its servers.
    stub_nodes: Vec<Proxy>,
    url: String,
    resource: String,
    journal: String,
    process: Mutex<Process>,
}

/// Which program runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Multi,
    Current,
    Sync,
    /// `lockable run`, again and again.
    Program,
}

#[derive(Debug)]
struct Process {
    dice: Dice,
    peer: Option<Peer>,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Multi, Self::Current, Self::Sync, Self::Program];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Multi => "multi",
            Self::Current => "current",
            Self::Sync => "sync",
            Self::Program => "program",
        }
    }
}

impl Slot {
    pub(crate) fn new(
        kind: Kind,
        stub_nodes: Vec<Proxy>,
        url: String,
        resource: String,
        folder: &Path,
        seed: u64,
    ) -> Self {
        let journal = folder.join(format!("history.{}", kind.name())).display().to_string();
        let process = Mutex::new(Process { dice: Dice::new(seed), peer: None });
        Self { kind, stub_nodes, url, resource, journal, process }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn stub_nodes(&self) -> &[Proxy] {
        &self.stub_nodes
    }

    /// Starts its process, or lets the one that rests work again.
    pub(crate) fn work(&self) {
        let mut process = self.process();
        if process.peer.is_none() {
            let seed = process.dice.below(u64::MAX).to_string();
            process.peer = Some(self.start(&seed, &mut process.dice));
        }
        if let Some(peer) = process.peer.as_mut().filter(|_| self.kind != Kind::Program) {
            peer.say("work");
        }
    }

    fn start(&self, seed: &str, dice: &mut Dice) -> Peer {
        let worker = env!("CARGO_BIN_EXE_chaos_worker");
        let Self { kind, url, resource, journal, .. } = self;
        if *kind != Kind::Program {
            return Peer::start(worker, [kind.name(), url, resource, journal, seed]);
        }
        let key = dice.pick(&KEYS);
        let options = ["run", "--url", url, "--key", key, "--wait", "5s", "--expire", "1s"];
        let command = ["--", worker, "program", resource, journal, seed];
        let words = options.into_iter().chain(command);
        Peer::start(program(), words)
    }

    /// Replaces a process that has ended by itself.
    pub(crate) fn renew(&self, record: &Record) {
        let mut process = self.process();
        let Some(mut peer) = process.peer.take() else { return };
        if !peer.has_ended() {
            process.peer = Some(peer);
            return;
        }
        if self.kind != Kind::Program {
            record.write(format_args!("ended {}", peer.pid()));
        }
        record.write(format_args!("gone {} {}", peer.pid(), boot_time()));
        drop(process);
        self.work();
    }

    /// Ends the callers of its process; how many tasks and KiB it has then.
    pub(crate) fn rest(&self) -> Option<(u64, u64)> {
        let mut process = self.process();
        let peer = process.peer.as_mut()?;
        if self.kind == Kind::Program {
            return None;
        }
        let answer = peer.ask("rest");
        let (tasks, kibibytes) = answer.split_once(' ').expect("two numbers");
        Some((tasks.parse().expect("a number"), kibibytes.parse().expect("a number")))
    }

    pub(crate) fn connections(&self) -> usize {
        self.stub_nodes.iter().map(Proxy::open).sum()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process().peer.iter_mut().for_each(|peer| peer.signal(signal));
    }

    /// Kills its process, and starts another one.
    pub(crate) fn replace(&self, record: &Record) {
        self.kill(record);
        self.work();
    }

    pub(crate) fn kill(&self, record: &Record) {
        let Some(peer) = self.process().peer.take() else { return };
        let pid = peer.pid();
        peer.kill();
        record.write(format_args!("gone {pid} {}", boot_time()));
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program `lockable`, where cargo builds this project's programs.
pub(crate) fn program() -> std::path::PathBuf {
    Path::new(env!("CARGO_BIN_EXE_chaos_worker")).with_file_name("lockable")
}
