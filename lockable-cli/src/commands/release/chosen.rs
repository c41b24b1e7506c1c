//! Which holds are to be released: those of a pattern, or those that a file names.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use lockable_runtime::admin::{Admin, HeldLock, HolderId};
use lockable_runtime::{HolderKind, LockError};
use serde::Deserialize;

use crate::failure::Failure;

/// The holds that a command is about.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) locks: Vec<HeldLock>,
    /// Holds of the file that have ended.
    pub(super) ended: Vec<Listed>,
    /// The kinds of those that match, and have no holder who could be asked.
    passed_over: Vec<HolderKind>,
    /// Why a server of several is missing.
    pub(super) failed: Option<LockError>,
}

impl Chosen {
    /// All that match, as a listing finds them.
    pub(super) async fn by_pattern(admin: &Admin, pattern: &str) -> Self {
        let (mut chosen, mut locks) = (Self::default(), admin.locks().matching(pattern));
        while let Some(lock) = locks.next().await {
            match lock {
                Ok(lock) => chosen.add(lock, Means::Request),
                Err(error) => {
                    chosen.failed.get_or_insert(error);
                }
            }
        }
        chosen.locks.sort_by(|one, other| one.name().cmp(other.name()));
        chosen
    }

    /// Those holds of a file that have not ended.
    pub(super) async fn by_file(admin: &Admin, file: &Path, means: Means) -> Result<Self, Failure> {
        let (mut chosen, mut holds) = (Self::default(), HashSet::new());
        for listed in read(file)? {
            // A hold may be in several listings of one file.
            if !holds.insert((listed.name.clone(), listed.id.clone())) {
                continue;
            }
            if listed.key.strip_prefix(admin.prefix()) != Some(&listed.name) {
                let (key, prefix) = (&listed.key, admin.prefix());
                let message = format!("the lock `{key}` in --ids is none of the prefix `{prefix}`");
                return Err(Failure::usage(message + "; give the --prefix of the listing"));
            }
            let now = admin.holder(&listed.name).await?;
            match now.filter(|now| now.holder().id().to_string() == listed.id) {
                Some(lock) => chosen.add(lock, means),
                None => chosen.ended.push(listed),
            }
        }
        Ok(chosen)
    }

    fn add(&mut self, lock: HeldLock, means: Means) {
        match (lock.holder().kind(), means) {
            (HolderKind::Exclusive | HolderKind::Ticket, _) => self.locks.push(lock),
            (kind, Means::Force) if kind != HolderKind::NoLock => self.locks.push(lock),
            (kind, _) => self.passed_over.push(kind),
        }
    }

    /// What matches and is left alone, in words.
    pub(super) fn others(&self) -> Option<String> {
        let counted = WORDS.into_iter().filter_map(|(kind, words)| {
            let count = self.passed_over.iter().filter(|passed| **passed == kind).count();
            (count > 0).then(|| format!("{count} {words}"))
        });
        let counted: Vec<_> = counted.collect();
        (!counted.is_empty())
            .then(|| format!("no holder could be asked of: {}", counted.join(", ")))
    }
}

/// How holds are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// A holder of ours is asked, and no one else can be.
    Request,
    Force,
}

/// A line of a listing.
#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) id: String,
}

/// # Errors
/// When it is no listing.
fn read(file: &Path) -> Result<Vec<Listed>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        let message = format!("--ids {}: {error}", file.display());
        Failure::usage(format!("{message}; `lockable ls --json` writes such a file"))
    };
    let text = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    let text = text.map_err(|error| wrong(&error))?;
    let listed = serde_json::Deserializer::from_str(&text).into_iter::<Listed>();
    let listed: Vec<Listed> = listed.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    match listed.iter().find(|listed| listed.id.parse::<HolderId>().is_err()) {
        Some(listed) => Err(wrong(&format!("`{}` is no id", listed.id))),
        None if listed.is_empty() => Err(wrong(&"it lists no lock")),
        None => Ok(listed),
    }
}

const WORDS: [(HolderKind, &str); 5] = [
    (HolderKind::Paused, "paused"),
    (HolderKind::Done, "done"),
    (HolderKind::KeptByMinHold, "kept by min_hold"),
    (HolderKind::Foreign, "of another library"),
    (HolderKind::NoLock, "with data that is no lock"),
];
