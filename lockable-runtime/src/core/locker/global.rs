//! The locker that decorated functions use unless they name another.
//!
//! See "Why is memory never a silent fallback of the process-wide locker?" in DESIGN.md.

use std::panic::Location;

use lockable_installed::RuntimeCopy;
use once_cell::sync::OnceCell;

use super::scope::scoped;
use crate::core::locker::Locker;
use crate::core::process::PerProcess;
use crate::core::types::error::{LockError, LockErrorKind};

static INSTALLED: PerProcess<OnceCell<Installed>> = PerProcess::new();

/// See "What if a program contains two versions of this crate?" in DESIGN.md.
static THIS: RuntimeCopy = RuntimeCopy::new(env!("CARGO_PKG_VERSION"));

struct Installed {
    locker: Locker,
    /// Where it came from, for the message of a second `install`.
    origin: String,
    /// Whether a forked process can make the same by itself.
    is_from_environment: bool,
}

/// Installs the locker that the decorated functions of this process use.
///
/// Without it, the first decorated call makes one by [`Locker::from_env`]. A test installs nothing: it replaces the
/// locker with [`testing`](crate::testing).
///
/// A forked process installs its own. Until then its calls fail with
/// [`NotConfigured`](crate::LockErrorKind::NotConfigured), if its parent had installed one.
///
/// # Errors
/// [`AlreadyInstalled`](crate::LockErrorKind::AlreadyInstalled) when a locker is installed already, also by [another
/// version](crate::guide::versions#two-versions-in-one-program) of this crate in the program; the message names it and
/// the place that installed it.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// use lockable_runtime::Locker;
///
/// lockable_runtime::install(Locker::connect("memory://").await?)?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[track_caller]
pub fn install(locker: Locker) -> Result<(), LockError> {
    THIS.claim().map_err(|other| other_version(LockErrorKind::AlreadyInstalled, other))?;
    let origin = format!("at {}", Location::caller());
    let installed = Installed { locker, origin, is_from_environment: false };
    INSTALLED.get().try_insert(installed).map(|_| ()).map_err(|(first, _)| {
        let message = format!(
            "the process-wide locker is {} already, installed {}",
            first.locker.backend_name(),
            first.origin
        );
        LockError::new(LockErrorKind::AlreadyInstalled, message)
    })
}

/// The locker of the innermost scope, or else the process-wide one.
pub(crate) fn default_locker() -> Result<Locker, LockError> {
    scoped().map_or_else(|| installed().cloned(), Ok)
}

fn installed() -> Result<&'static Locker, LockError> {
    let from_environment = || {
        // The environment may name another backend than the one that was chosen before the fork.
        if INSTALLED.inherited().filter_map(OnceCell::get).any(|one| !one.is_from_environment) {
            return Err(LockError::forked());
        }
        let other_has_one = |other| other_version(LockErrorKind::NotConfigured, other);
        THIS.other().map_or(Ok(()), |other| Err(other_has_one(other)))?;
        let (locker, variable) = Locker::from_environment()?;
        THIS.claim().map_err(other_has_one)?;
        let origin = format!("from {variable} at the first call");
        Ok(Installed { locker, origin, is_from_environment: true })
    };
    INSTALLED.get().get_or_try_init(from_environment).map(|installed| &installed.locker)
}

fn other_version(kind: LockErrorKind, other: &RuntimeCopy) -> LockError {
    let (own, other) = (THIS.version(), other.version());
    let message = format!(
        "the program contains lockable-runtime {own} and {other}, and the process-wide locker is that of {other}; use one \
         version (`cargo tree --invert lockable-runtime@{own}` shows what needs this one), or name a locker at each function \
         of {own}"
    );
    LockError::of_flaw(kind, message)
}
