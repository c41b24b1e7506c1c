//! A secret of a locker, and where each new connection gets it.

use std::error::Error;
use std::fmt;
use std::fs;
use std::future::{Future, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use crate::core::types::error::Cause;

/// A secret of a locker: a value, files that are read again, or a function that is called.
///
/// It is of [`Credentials`](crate::Credentials), or with TLS a `Pem`: certificates and keys. The methods of
/// [`LockerBuilder`](crate::LockerBuilder) also take these as a value, which stays the same.
///
/// | where it is | how to give it |
/// |---|---|
/// | in files | [`Credentials::file`](crate::Credentials::file), [`Credentials::password_file`](crate::Credentials::password_file), `Pem::file`, `Pem::files` |
/// | at a service, or in a library for tokens | [`from_fn`](Self::from_fn) |
///
/// # Guarantees
/// - Each new connection gets the current secret, also of an [installed](crate::install) locker. To rotate it, replace
///   it, and end the connections that were opened with the old one.
/// - Files are also read when the locker is made, so that a mistake in them is an error then.
/// - No error, event or `{:?}` of this library shows a secret. They show the paths of files.
///
/// # What this does not guarantee
/// - An open connection stays open when its secret changes or ends, as long as the server allows that.
/// - Files that are written in place may be read half written, and of two files only one may be new: then one
///   connection fails, and the next one reads them again. Rename a new file into the place of the old one.
/// - What is no regular file, such as a pipe, is read once.
///
/// # Errors
/// A call whose connection gets no valid secret returns [`Refused`](crate::LockErrorKind::Refused), with the builder's
/// method, the paths, and what is wrong. Open connections continue.
///
/// # Examples
/// How do I log in with a password that is rotated?
/// ```
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir();
/// # let path = folder.join(format!("lockable-secret-{}", std::process::id()));
/// # std::fs::write(&path, "word\n")?;
/// use lockable_runtime::{Credentials, Locker};
///
/// let locker = Locker::builder()
///     .url("redis://cache.internal")
///     .credentials(Credentials::file("app", &path))
///     .connect_lazy()?;
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// # #[cfg(feature = "redis")]
/// # example().unwrap();
/// ```
#[derive(Clone)]
pub struct Secret<T> {
    source: Source<T>,
    paths: Arc<str>,
}

#[derive(Clone)]
enum Source<T> {
    AtHand(Arc<dyn Fn() -> io::Result<T> + Send + Sync>),
    Function(Arc<dyn Fn() -> Answer<T> + Send + Sync>),
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Cause>> + Send>>;

impl<T: Send + 'static> Secret<T> {
    /// Makes a secret that a function returns, which is called for each new connection.
    ///
    /// Use it for tokens of a cloud's identity service, or certificates that a service issues.
    ///
    /// # Guarantees
    /// - The function is called for each attempt to open a connection that needs the secret: for each runtime that uses
    ///   the locker, for renewals and releases in the background, for the subscription of waiting calls, and for a
    ///   [`check`](crate::Locker::check).
    /// - It runs on a thread of its own, in the context of a tokio runtime with timers and sockets: it may block, and
    ///   delays only its connection.
    ///
    /// # What this does not guarantee
    /// - Several calls of the function may run at the same time, at most 32 for one locker.
    /// - While a server is unreachable, the function is called at each attempt: cache what is expensive to make.
    ///
    /// # Errors
    /// A call that needs the connection returns:
    ///
    /// - [`Refused`](crate::LockErrorKind::Refused) when the function fails or panics, with its message, and when its
    ///   result is not valid;
    /// - [`is_unavailable`](crate::LockError::is_unavailable) when the function takes longer than three quarters of the
    ///   [connect deadline](crate::LockerBuilder::connect_deadline), of which each Sentinel has half, and is dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::{Credentials, Locker, Secret};
    /// # async fn token() -> Result<String, std::io::Error> { Ok(String::new()) }
    ///
    /// let credentials =
    ///     || async { Ok::<_, std::io::Error>(Credentials::new("app", token().await?)) };
    /// let locker = Locker::builder()
    ///     .url("rediss://cache.example.com")
    ///     .credentials(Secret::from_fn(credentials))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_fn<F, A, E>(source: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let call = move || -> Answer<T> {
            let answer = source();
            Box::pin(async move { answer.await.map_err(|error| Cause::from(error.into())) })
        };
        Self { source: Source::Function(Arc::new(call)), paths: Arc::default() }
    }

    pub(crate) fn in_files<const N: usize>(
        paths: [PathBuf; N],
        make: impl Fn([Vec<u8>; N]) -> io::Result<T> + Send + Sync + 'static,
    ) -> Self {
        let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let files = paths.map(|path| (path, OnceLock::new()));
        let read = move || {
            let mut contents = [const { Vec::new() }; N];
            for (content, (path, once)) in contents.iter_mut().zip(&files) {
                *content = read(path, once).map_err(|error| {
                    // Of one file, what is said of the secret has the path.
                    if N == 1 { error } else { of_path(path, &error) }
                })?;
            }
            make(contents)
        };
        Self { source: Source::AtHand(Arc::new(read)), paths: shown.join(" and ").into() }
    }
}

impl<T: Send + 'static> Secret<T> {
    pub(crate) fn paths(&self) -> &str {
        &self.paths
    }

    pub(crate) fn at_hand(&self) -> Option<io::Result<T>> {
        if let Source::AtHand(read) = &self.source { Some(read()) } else { None }
    }

    /// Reads the files, or calls the function: either may block.
    pub(crate) fn ask(&self) -> Answer<T> {
        match &self.source {
            Source::AtHand(read) => Box::pin(ready(read().map_err(|error| Arc::new(error) as _))),
            Source::Function(call) => call(),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> From<T> for Secret<T> {
    /// A value that stays the same.
    fn from(value: T) -> Self {
        Self { source: Source::AtHand(Arc::new(move || Ok(value.clone()))), paths: Arc::default() }
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// The content of a file; empty for a second reading of a pipe and the like.
fn read(path: &Path, once: &OnceLock<Vec<u8>>) -> io::Result<Vec<u8>> {
    match once.get() {
        Some(content) => Ok(content.clone()),
        None if path.is_file() => fs::read(path),
        None => fs::read(path).map(|content| once.get_or_init(|| content).clone()),
    }
}

fn of_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary";

    fn text(path: &Path) -> Secret<String> {
        let text = |[content]: [Vec<u8>; 1]| String::from_utf8(content).map_err(io::Error::other);
        Secret::in_files([path.to_owned()], text)
    }

    #[test]
    fn a_file_is_read_each_time() {
        let path =
            std::env::temp_dir().join(format!("lockable-secret-file-{}", std::process::id()));
        let secret = text(&path);
        for content in ["one", "two"] {
            fs::write(&path, content).unwrap();
            assert_eq!(secret.at_hand().unwrap().unwrap(), content);
        }
        fs::remove_file(&path).unwrap();
        let error = secret.at_hand().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_once() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (read, mut write) = io::pipe().unwrap();
        write.write_all(b"word").unwrap();
        drop(write);
        let secret = text(Path::new(&format!("/dev/fd/{}", read.as_raw_fd())));
        for _ in 0..2 {
            assert_eq!(secret.at_hand().unwrap().unwrap(), "word");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let value = Secret::from(CANARY.to_owned());
        let function = Secret::from_fn(|| ready(Ok::<_, io::Error>(CANARY.to_owned())));
        let shown =
            [value, function, text(Path::new("/run/secrets/redis"))].map(|it| format!("{it:?}"));
        assert!(shown.iter().all(|text| !text.contains(CANARY)), "{shown:?}");
    }

    /// Builders are kept in statics and moved between threads.
    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + Clone + 'static>() {}
        check::<Secret<String>>();
    }
}
