//! What to do about an error or a finding.

use std::borrow::Cow;

/// What mends an error or a finding, if that is a setting which other programs may call otherwise.
///
/// A program that is configured by options of its own matches on it, and shows its own advice. See
/// [`LockError::remedy`](crate::LockError::remedy) and [`Report::advising`](crate::check::Report::advising).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// The right user and password in the URL.
    UrlCredentials,
    /// Others by [`LockerBuilder::credentials`](crate::LockerBuilder::credentials): the server refuses these.
    Credentials,
    /// Those of the Sentinels, in the URL or by
    /// [`LockerBuilder::sentinel_credentials`](crate::LockerBuilder::sentinel_credentials).
    SentinelCredentials,
    /// The certificate of the server's authority, by `LockerBuilder::root_certificate`.
    RootCertificate,
    /// A client certificate that the server accepts, if it requires one, by `LockerBuilder::client_certificate`.
    ClientCertificate,
    /// A URL with a scheme that is known.
    UrlScheme,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) text: Cow<'static, str>,
    /// `None` if no program needs other words.
    pub(crate) remedy: Option<Remedy>,
}

impl Advice {
    pub(crate) const fn new(remedy: Remedy, text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), remedy: Some(remedy) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

pub(crate) fn first<'a>(advices: impl IntoIterator<Item = &'a Advice>) -> Advice {
    advices.into_iter().find(|advice| !advice.is_empty()).cloned().unwrap_or_default()
}

impl<T: Into<Cow<'static, str>>> From<T> for Advice {
    fn from(text: T) -> Self {
        Self { text: text.into(), remedy: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_has_advice_gives_it() {
        let (none, one) = (Advice::default(), Advice::from("mend it"));
        let other = Advice::from("another");
        assert_eq!(first([&none, &one, &other]).text, "mend it");
        assert!(first([&none]).is_empty() && first([]).is_empty());
    }
}
