//! Finds a server whose address is not in the URL.

use std::sync::Arc;

use super::endpoint::Endpoint;
use crate::core::backend::Reply;
use crate::core::backend::epochs::Epoch;

pub(crate) trait Finder: Send + Sync {
    /// Where it is now, and how long that is valid.
    fn find(&self) -> Reply<(Endpoint, Arc<dyn Term>)>;

    /// Where it was last.
    fn last(&self) -> Option<Endpoint>;
}

pub(crate) trait Term: Send + Sync {
    /// Over once the server is elsewhere.
    fn epoch(&self) -> &Epoch;

    fn works(&self);

    /// The server could not be used there: the next connection finds it again.
    fn doubt(&self);
}
