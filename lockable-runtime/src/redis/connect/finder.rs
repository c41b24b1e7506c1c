//! Where a server is, if others than the URL say so.

use std::sync::Arc;

use super::endpoint::Endpoint;
use crate::core::backend::Reply;
use crate::core::backend::epochs::Epoch;

/// Says where a server is.
pub(crate) trait Finder: Send + Sync {
    /// Where it is now, and for how long that counts.
    fn find(&self) -> Reply<(Endpoint, Arc<dyn Term>)>;

    /// Where it was last.
    fn last(&self) -> Option<Endpoint>;
}

/// For how long a place counts.
pub(crate) trait Term: Send + Sync {
    /// Over once the server is elsewhere.
    fn epoch(&self) -> &Epoch;

    /// The server could be used there.
    fn works(&self);

    /// The server could not be used there: the next connection asks where it is.
    fn doubt(&self);
}
