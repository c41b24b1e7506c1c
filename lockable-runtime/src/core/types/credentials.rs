//! The user and the password with which a connection logs in.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::secret::Secret;

/// A user and its password, or a token in place of it.
///
/// # Examples
/// ```
/// use lockable_runtime::Credentials;
///
/// let credentials = Credentials::new("app", "secret");
/// assert!(!format!("{credentials:?}").contains("secret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `None` is the default user.
    pub(crate) user: Option<String>,
    pub(crate) password: String,
}

impl Credentials {
    /// Makes the credentials of a named user.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// Makes the credentials of the user `default`, for a server with `requirepass`.
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// Makes the credentials of a named user whose password is in a file, which is read for each new connection.
    ///
    /// A line end at the end of the file is no part of the password.
    pub fn file(user: impl Into<String>, path: impl Into<PathBuf>) -> Secret<Self> {
        Self::in_file(Some(user.into()), path.into())
    }

    /// Makes the credentials of the user `default`, whose password is read from a file as by [`file`](Self::file).
    pub fn password_file(path: impl Into<PathBuf>) -> Secret<Self> {
        Self::in_file(None, path.into())
    }

    fn in_file(user: Option<String>, path: PathBuf) -> Secret<Self> {
        Secret::in_files([path], move |[content]| {
            // The error of the conversion would have the password.
            let text =
                String::from_utf8(content).map_err(|_| io::Error::other("it is not UTF-8"))?;
            match text.trim_end_matches(['\r', '\n']) {
                "" => Err(io::Error::other("it is empty")),
                password => Ok(Self { user: user.clone(), password: password.to_owned() }),
            }
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
