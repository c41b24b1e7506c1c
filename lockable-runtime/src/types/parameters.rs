//! The parameters of a URL: what is behind its question mark.

use crate::types::error::{LockError, LockErrorKind};
use crate::types::percent::unescaped;

/// One `name=value` of a URL.
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a str,
    value: Option<&'a str>,
}

/// Takes parameters out of a URL: those for which `take` answers `true`. The text is the URL with all others.
///
/// # Errors
/// Those of `take`. No message shows a value: in a URL that is written wrongly, it may be a part of the
/// password.
pub(crate) fn take_from(
    url: &str,
    mut take: impl FnMut(&Parameter<'_>) -> Result<bool, LockError>,
) -> Result<String, LockError> {
    let (address, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let Some((address, query)) = address.split_once('?') else {
        return Ok(url.to_owned());
    };
    let mut others = Vec::new();
    for parameter in query.split('&') {
        if !take(&Parameter::of(parameter))? {
            others.push(parameter);
        }
    }
    let sign = if others.is_empty() { "" } else { "?" };
    Ok(format!("{address}{sign}{}{fragment}", others.join("&")))
}

impl<'a> Parameter<'a> {
    fn of(text: &'a str) -> Self {
        match text.split_once('=') {
            Some((name, value)) => Self { name, value: Some(value) },
            None => Self { name: text, value: None },
        }
    }

    /// Whether there is neither a name nor a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.name.trim_end().is_empty() && self.value.is_none()
    }

    /// The value, which is percent-encoded. White space at its end comes from the file or the variable that the
    /// URL was read from.
    pub(crate) fn decoded(&self) -> Result<String, LockError> {
        let name = self.name;
        let value = self.value.ok_or_else(|| invalid(&format!("`{name}` has no value")))?;
        let flaw =
            || invalid(&format!("`{name}` is not percent-encoded UTF-8; write `%25` for `%`"));
        unescaped(value.trim_end()).ok_or_else(flaw)
    }

    /// Puts what the value means where it belongs; the error is a parameter that occurs twice.
    pub(crate) fn set<T>(&self, setting: &mut Option<T>, value: T) -> Result<(), LockError> {
        match setting.replace(value) {
            None => Ok(()),
            Some(_) => Err(invalid(&format!("`{}` occurs twice", self.name))),
        }
    }
}

/// What is said of an `@` where no address is: it may end a password.
pub(crate) const STRAY: &str = "an `@` is behind the address: write `/`, `?`, `#` and `@` of a password as `%2F`, \
                                `%3F`, `%23` and `%40`";

/// The error of a URL, which names what is wrong with it and shows nothing of it.
pub(crate) fn invalid(flaw: &str) -> LockError {
    LockError::new(LockErrorKind::InvalidUrl, format!("in the URL, {flaw}"))
}
