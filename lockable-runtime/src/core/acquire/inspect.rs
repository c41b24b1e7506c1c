use crate::core::backend::BackendContext;
use crate::core::holder::Holder;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::slot::Slot;

pub(crate) async fn inspect(
    context: &BackendContext,
    key: LockKey,
) -> Result<Option<Holder>, LockError> {
    let name = key.clone();
    let held = context.request(Slot::of(&key), context.backend.inspect(key)).await;
    let held = held.map_err(|fault| fault.about(&name, &context.reporting))?;
    Ok(held.as_ref().map(Holder::of))
}
