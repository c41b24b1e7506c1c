use std::env::{self, VarError};

use crate::core::types::error::{LockError, LockErrorKind};

pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    pub(crate) is_shared: bool,
}

/// The URL of `LOCKABLE_URL`, or else of `REDIS_URL`; `None` if both are empty or not set.
///
/// # Errors
/// When a value is not UTF-8, and when a variable is set that a user would expect to matter beside them.
pub(crate) fn url() -> Result<Option<Variable>, LockError> {
    for (name, setting) in [("LOCKABLE_PREFIX", "prefix"), ("LOCKABLE_NAMESPACE", "namespace")] {
        if variable(name)?.is_some() {
            let advice =
                format!("{name} has no effect; write `?{setting}=…` at the end of LOCKABLE_URL");
            return Err(LockError::of_flaw(LockErrorKind::InvalidOption, advice));
        }
    }
    for (name, is_shared) in [("LOCKABLE_URL", false), ("REDIS_URL", true)] {
        if let Some(url) = variable(name)? {
            return Ok(Some(Variable { name, url, is_shared }));
        }
    }
    Ok(None)
}

fn variable(name: &str) -> Result<Option<String>, LockError> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(LockError::new(LockErrorKind::InvalidOption, format!("{name} is not UTF-8")))
        }
    }
}
