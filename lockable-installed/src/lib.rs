//! Which copy of `lockable-runtime` has the process-wide locker of a program.
//!
//! A program may contain two versions of `lockable-runtime`, one of them through a dependency. Each has its own statics, so
//! the locker that one installs is unknown to the other. All versions depend on this package, whose static they share: a
//! call of the second version fails, instead of using the server that `REDIS_URL` happens to name.
//!
//! See [two versions in one program](https://docs.rs/lockable-runtime/latest/lockable_runtime/guide/versions/index.html#two-versions-in-one-program).

use std::ptr;
use std::sync::OnceLock;

static FIRST: OnceLock<&'static RuntimeCopy> = OnceLock::new();

/// One compiled copy of `lockable-runtime`, known by the address of its static.
#[derive(Debug)]
pub struct RuntimeCopy {
    version: &'static str,
}

impl RuntimeCopy {
    /// Makes the value of the static of one copy.
    #[must_use]
    pub const fn new(version: &'static str) -> Self {
        Self { version }
    }

    /// Returns the version of the copy.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Returns another copy, if that has the process-wide locker.
    #[must_use]
    pub fn other(&'static self) -> Option<&'static Self> {
        FIRST.get().copied().filter(|first| !ptr::eq(*first, self))
    }

    /// Notes that this copy has the process-wide locker.
    ///
    /// # Errors
    /// With the other copy, if that has one already.
    pub fn claim(&'static self) -> Result<(), &'static Self> {
        let first = *FIRST.get_or_init(|| self);
        if ptr::eq(first, self) { Ok(()) } else { Err(first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_copy_has_the_locker() {
        static FIRST: RuntimeCopy = RuntimeCopy::new("0.1.0");
        static SECOND: RuntimeCopy = RuntimeCopy::new("0.1.0");
        assert!(FIRST.other().is_none() && SECOND.other().is_none());
        assert!(FIRST.claim().is_ok() && FIRST.claim().is_ok());
        assert_eq!(SECOND.claim().unwrap_err().version(), "0.1.0");
        assert!(FIRST.other().is_none() && SECOND.other().is_some());
    }
}
