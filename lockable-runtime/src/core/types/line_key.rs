//! The key of a line within its process: no text, which could also be the key of a lock.

use std::sync::Arc;

use crate::core::types::key::LockKey;
use crate::core::types::permit::LocalPermit;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LineKey {
    Lock(LockKey),
    LocalPermit(Arc<LocalPermit>),
}

impl LineKey {
    pub(crate) fn key(&self) -> &LockKey {
        match self {
            Self::Lock(key) => key,
            Self::LocalPermit(local_permit) => local_permit.permits_key.key(),
        }
    }

    pub(crate) fn local_permit(&self) -> Option<&Arc<LocalPermit>> {
        match self {
            Self::Lock(_) => None,
            Self::LocalPermit(local_permit) => Some(local_permit),
        }
    }
}
