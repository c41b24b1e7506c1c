use crate::core::acquire::inspect::inspect;
use crate::core::backend::BackendContext;
use crate::core::holder::{HeldSince, Holder, HolderKind};
use crate::core::process::utc::utc;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;

/// Adds the times of the run to the error by one more request: the reply of a try has no end. Adds none if the request
/// finds no such run any more, or no server replies.
pub(super) async fn with_times(context: &BackendContext, error: LockError) -> LockError {
    let Some(key) = error.key().and_then(|key| LockKey::new(key).ok()) else { return error };
    let found = inspect(context, key.clone()).await.ok().flatten();
    let run = found.filter(|found| found.kind() == HolderKind::Done);
    run.map_or(error, |run| LockError::done(key.as_str(), &begin(&run), &run.until()))
}

fn begin(run: &Holder) -> String {
    match run.held_since() {
        Some(HeldSince::At(moment)) => format!(" that began at {}", utc(moment)),
        Some(HeldSince::NotBefore(moment)) => format!(" that began after {}", utc(moment)),
        None => String::new(),
    }
}
