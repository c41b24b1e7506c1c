//! Where the locks are.

use std::path::PathBuf;

use clap::Args;

use super::Span;

#[derive(Args, Debug)]
#[command(next_help_heading = "Where the locks are")]
pub(crate) struct Connection {
    /// The server, Sentinels or cluster [default: LOCKABLE_URL, else REDIS_URL, which may have a password].
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The prefix of every lock's key [default: that of the URL, else disLock:].
    #[arg(long, global = true)]
    pub(crate) prefix: Option<String>,
    /// The start of the names of queues and channels [default: that of the URL, else lockable].
    #[arg(long, global = true)]
    pub(crate) namespace: Option<String>,
    /// A file with the password of the URL's user, read for each connection [default: LOCKABLE_PASSWORD_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The same for Sentinels, whose user is ?sentinel_user=… in the URL [default: LOCKABLE_SENTINEL_PASSWORD_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) sentinel_password_file: Option<PathBuf>,
    /// The root certificates to trust in place of the system's, in PEM form [default: LOCKABLE_CA_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The certificate to show to the server, in PEM form, with --key-file [default: LOCKABLE_CERT_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cert_file: Option<PathBuf>,
    /// The key of that certificate, in PEM form [default: LOCKABLE_KEY_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The limit for each command to Redis, and for each of two tries to connect.
    #[arg(long, global = true, value_name = "TIME", default_value = "5s")]
    pub(crate) timeout: Span,
}
