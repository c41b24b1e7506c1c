//! Who acquires and releases.

use std::path::PathBuf;

use lockable_benches::contenders::{Attribute, Bare, OnePermit, Order, Ours, Same, TwoKeys};
use lockable_benches::peers;
use lockable_benches::worker::{self, Flavour};

/// A way to lock, in a process of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    Bare,
    Same,
    Rslock,
    Attribute,
    ByHand,
    OnePermit,
    TwoKeys,
}

impl Contender {
    /// rslock is the last, and no part of what is compared: it gives an answer 500 ms, which Valgrind may exceed on a
    /// busy machine; then it tries again.
    pub(crate) const ALL: &[Self] = &[
        Self::Bare,
        Self::Same,
        Self::Attribute,
        Self::ByHand,
        Self::OnePermit,
        Self::TwoKeys,
        Self::Rslock,
    ];
    pub(crate) const COMPARED: &[Self] = Self::ALL.split_last().expect("contenders").1;

    /// What it is called in the tables, and to its process.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Same => "same",
            Self::Rslock => "rslock",
            Self::Attribute => "lockable",
            Self::ByHand => "lockable by hand",
            Self::OnePermit => "a permit of three",
            Self::TwoKeys => "two keys",
        }
    }

    /// The command line of its process, without the URL.
    pub(crate) fn program(self) -> Result<Vec<String>, String> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let this = || std::env::current_exe().map_err(|error| error.to_string());
        let mut words = match self {
            Self::Rslock => vec![path(peers::rust()?)],
            _ => vec![path(this()?), "--worker".to_owned()],
        };
        words.extend([self.name().to_owned(), Flavour::CurrentThread.name().to_owned()]);
        Ok(words)
    }
}

/// The work of a contender's process.
pub(crate) fn work(name: &str, url: &str) {
    worker::run(Flavour::CurrentThread, async {
        match name {
            "bare" => worker::serve(Bare::connect(url).await).await,
            "same" => worker::serve(Same::connect(url).await).await,
            "lockable" => worker::serve(Attribute::connect(url).await).await,
            "lockable by hand" => worker::serve(by_hand(url).await).await,
            "a permit of three" => worker::serve(OnePermit(by_hand(url).await)).await,
            "two keys" => worker::serve(TwoKeys(by_hand(url).await)).await,
            _ => panic!("there is no {name}"),
        }
    });
}

async fn by_hand(url: &str) -> Ours {
    Ours::connect(url, Order::Once).await
}
