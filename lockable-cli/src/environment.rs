//! The variables of the environment that are read.

use std::env::{self, VarError};
use std::path::PathBuf;

use crate::failure::Failure;

/// An empty variable is none: a crontab may set one from another that is not set.
pub(crate) fn variable(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::usage(format!("{name} is not UTF-8"))),
    }
}

/// The file of an option, or else that of a variable.
pub(crate) fn path(option: Option<&PathBuf>, name: &str) -> Option<PathBuf> {
    let of_variable = || env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    option.cloned().or_else(of_variable)
}

/// Refuses the variables that one would expect to count beside the URL.
pub(crate) fn refuse_forgotten() -> Result<(), Failure> {
    for (name, setting) in [("LOCKABLE_PREFIX", "prefix"), ("LOCKABLE_NAMESPACE", "namespace")] {
        if variable(name)?.is_some() {
            let advice =
                format!("write `?{setting}=…` at the end of LOCKABLE_URL, or give --{setting}");
            return Err(Failure::usage(format!(
                "{name} has no effect, so it must not be set; {advice}"
            )));
        }
    }
    Ok(())
}
