//! The text that passes a held lock to another process.

use std::error::Error;
use std::fmt;
use std::slice;
use std::str::FromStr;

use crate::core::request_id::RequestId;
use crate::core::text::percent::{escaped, unescaped};
use crate::core::types::id::fnv_1a;
use crate::core::types::key::{Keys, LockKey};
use crate::core::types::owner::{OwnerToken, TokenParts};
use crate::core::types::token::FencingToken;

/// A held lock on its way to another process.
///
/// [`LockGuard::into_ticket`](crate::LockGuard::into_ticket) makes one, and [`Locker::redeem`](crate::Locker::redeem)
/// turns it into a guard again, once. Meanwhile the lock stays taken, for as long as the ticket is valid, and no
/// process has it.
///
/// A ticket has the lock's whole name, its owner token, its fencing token, its store and a check sum: a text that was
/// cut off or changed is an error.
///
/// # Its text is a secret
/// A client that knows the text and may use the store can take the lock over. So a ticket has no
/// [`Display`](fmt::Display), and `{:?}` shows nothing of it. Pass the text on like a password: in the message for the
/// worker, not in a log or a URL. It is worth nothing once it was redeemed, or its time is over.
///
/// # Its store
/// A ticket has a hash of where its store is: the scheme, the hosts in any order, the ports and the database of the
/// URL, without credentials, and the name of the primary that Sentinels watch. [`redeem`](crate::Locker::redeem)
/// compares it with the hash of its own URL. So both processes write the same hosts: a server that has two names is two
/// stores.
///
/// # What this does not guarantee
/// - The hash shows no store that was replaced at the same address, and `memory://` is another store in each process:
///   then the ticket seems valid, and no lock is found for it.
/// - The check sum finds damage, not forgery. But a forged fencing token, to which the server has not counted up, is
///   not used: the redeemed lock has a counted one.
///
/// # Examples
/// The text, and the ticket again:
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use lockable_runtime::Ticket;
///
/// # let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// let ticket = guard.into_ticket(Duration::from_secs(60)).await?;
///
/// let message = ticket.expose_secret();
/// let received: Ticket = message.parse()?;
/// assert_eq!(received.key().as_str(), "disLock:order:7");
/// # locker.redeem(received).acquire().await?.release().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    key: LockKey,
    fencing_token: FencingToken,
    /// The owner token without the mark of a ticket.
    holder: OwnerToken,
    store: u64,
}

/// The version, a check sum, and the parts come behind it.
const HEAD: &str = "lockable-ticket:";
const VERSION: &str = "2";

impl Ticket {
    pub(crate) fn new(
        store: &str,
        key: LockKey,
        fencing_token: FencingToken,
        holder: OwnerToken,
    ) -> Self {
        Self { key, fencing_token, holder, store: fnv_1a(store.as_bytes().iter()) }
    }

    /// Returns the whole name of the lock, prefix included; a permit's with its number.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// Returns the fencing token of the lock, which stays the same when the ticket is redeemed.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.fencing_token
    }

    /// Returns the text of the ticket, which is a [secret](Ticket#its-text-is-a-secret).
    ///
    /// It is one line of ASCII without spaces and quotes, about 100 characters and the key. [`FromStr`] reads it in any
    /// process with the same version of its form.
    #[must_use]
    pub fn expose_secret(&self) -> String {
        let Self { store, fencing_token, .. } = self;
        let (holder, key) = (escaped(self.holder.as_ref()), escaped(self.key.as_str()));
        let parts = format!("{store:016x}:{fencing_token}:{holder}:{key}");
        let sum = fnv_1a(parts.as_bytes().iter());
        format!("{HEAD}{VERSION}:{sum:016x}:{parts}")
    }

    /// While the ticket is valid.
    pub(crate) fn owner(&self) -> OwnerToken {
        self.holder.of_ticket()
    }

    pub(crate) fn is_of(&self, store: &str) -> bool {
        self.store == fnv_1a(store.as_bytes().iter())
    }

    /// The same lock, for a process that reaches its store by another name.
    #[cfg(lockable_internals)]
    pub(crate) fn at(self, store: &str) -> Self {
        Self { store: fnv_1a(store.as_bytes().iter()), ..self }
    }

    pub(crate) fn request_id(&self) -> Option<RequestId> {
        TokenParts::parse(self.holder.as_ref())?.identity.map(RequestId::new)
    }

    fn parse(parts: &str) -> Option<Self> {
        let mut parts = parts.split(':').skip(1);
        let (store, fencing_token) = (parts.next()?, parts.next()?);
        let (holder, key) = (unescaped(parts.next()?)?, unescaped(parts.next()?)?);
        TokenParts::parse(&holder)?.mark.is_none().then_some(Self {
            store: u64::from_str_radix(store, 16).ok()?,
            fencing_token: fencing_token.parse().ok()?,
            holder: OwnerToken::received(&holder),
            key: LockKey::new(key).ok()?,
        })
    }
}

/// Reads what [`expose_secret`](Ticket::expose_secret) returned; trims white space around it.
impl FromStr for Ticket {
    type Err = TicketError;

    /// # Errors
    /// When the text is no ticket, was cut off or changed, or is one of another version.
    fn from_str(text: &str) -> Result<Self, TicketError> {
        let text = text.trim();
        let rest = text.strip_prefix(HEAD).ok_or(TicketError(NO_TICKET))?;
        let (version, parts) = rest.split_once(':').ok_or(TicketError(DAMAGED))?;
        if version != VERSION {
            return Err(TicketError(OTHER_VERSION));
        }
        let ticket = Self::parse(parts).filter(|ticket| ticket.expose_secret() == text);
        ticket.ok_or(TicketError(DAMAGED))
    }
}

impl TryFrom<String> for Ticket {
    type Error = TicketError;

    fn try_from(text: String) -> Result<Self, TicketError> {
        text.parse()
    }
}

impl Keys for Ticket {
    fn all(&self) -> &[LockKey] {
        slice::from_ref(&self.key)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(redacted)")
    }
}

/// A text that cannot be a [`Ticket`]; the message shows nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketError(&'static str);

const NO_TICKET: &str = "the text is no ticket, which begins with `lockable-ticket:`; pass on what `expose_secret` \
                         returned";

const OTHER_VERSION: &str = "the ticket has a form of another version of lockable; use the same version where it is \
                             made and where it is redeemed";

const DAMAGED: &str = "the ticket was cut off or changed on its way; pass on what `expose_secret` returned, to the \
                       last character";

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for TicketError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOLDER: &str = "1f0c9a57d2e84b36-1764000000123456 req:7 %\"+";

    fn ticket() -> Ticket {
        let (key, token) = (LockKey::from_static("p:{a b}#2"), FencingToken::new(17));
        Ticket::new("redis://h:1/0", key, token, OwnerToken::received(HOLDER))
    }

    #[test]
    fn a_ticket_comes_back_from_its_text() {
        let text = ticket().expose_secret();
        assert_eq!(text.parse(), Ok(ticket()));
        assert_eq!(format!(" {text}\r\n").parse(), Ok(ticket()));
        assert_eq!(Ticket::try_from(text.clone()), Ok(ticket()));
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte)));
        assert_eq!(ticket().request_id().unwrap().as_str(), "req:7 %\"+");
        assert_eq!(ticket().owner().as_ref(), format!("@{HOLDER}"));
    }

    #[test]
    fn a_store_is_known_by_its_name() {
        assert!(ticket().is_of("redis://h:1/0") && !ticket().is_of("redis://h:1/1"));
    }

    #[test]
    fn what_is_no_ticket_is_refused_with_words_and_not_shown() {
        let text = ticket().expose_secret();
        for damaged in [HEAD, &text.to_uppercase().replace(&HEAD.to_uppercase(), HEAD)] {
            assert!(refused(damaged).contains("cut off"), "{damaged}");
        }
        let marked = Ticket { holder: ticket().owner(), ..ticket() };
        assert!(refused(&marked.expose_secret()).contains("cut off"));
        for version in ["1", "3", ""] {
            let other = text.replacen(":2:", &format!(":{version}:"), 1);
            assert!(refused(&other).contains("another version"), "{version}");
        }
        for other in ["", "order:7", "lockable-tick"] {
            assert!(refused(other).contains("no ticket"), "{other}");
        }
    }

    fn refused(text: &str) -> String {
        text.parse::<Ticket>().unwrap_err().to_string()
    }

    prop_compose! {
        fn any_ticket()(
            store in ".{0,20}", key in "[a-zé%:#]{1,12}", fence in any::<u64>(), request in "[ -~]{0,12}",
        ) -> Ticket {
            let holder = OwnerToken::received(&format!("1f0c9a57d2e84b36-1764000000123456 r{request}"));
            Ticket::new(&store, LockKey::new(key).unwrap(), FencingToken::new(fence), holder)
        }
    }

    proptest! {
        #[test]
        fn a_text_that_was_cut_or_changed_is_no_ticket(ticket in any_ticket(), byte in 0..128u8) {
            let text = ticket.expose_secret();
            prop_assert_eq!(text.parse(), Ok(ticket));
            for at in 0..text.len() {
                let (before, behind) = text.split_at(at);
                refused(before);
                let changed = format!("{before}{}{}", char::from(byte), &behind[1..]);
                prop_assert!(changed == text || changed.parse::<Ticket>().is_err(), "{}", changed);
                refused(&format!("{before}{}", &behind[1..]));
            }
        }
    }

    #[test]
    fn nothing_of_a_ticket_is_shown_by_accident() {
        assert_eq!(format!("{:?} {:#?}", ticket(), ticket()), "Ticket(redacted) Ticket(redacted)");
    }
}
