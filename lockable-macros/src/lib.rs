//! The attribute of `lockable-runtime`: every call of a function runs under one distributed lock.
//!
//! Depend on `lockable-runtime`, which re-exports [`macro@distributed_lock`] and holds everything
//! that an expanded function calls.

use proc_macro2::TokenStream;

use crate::args::LockArgs;
use crate::mistakes::Mistakes;
use crate::model::LockedFn;
use crate::target::Target;

mod args;
mod duration;
mod expand;
mod fallback;
mod key;
mod mistakes;
mod model;
mod names;
mod output;
mod target;
#[cfg(test)]
mod tests;

/// Runs every call of a function, in every process, under one lock: the body runs only while its
/// lease is held.
///
/// When the lock is not acquired the body does not start; when the lease is lost the body stops. The
/// function is an `async fn`, a sync one, which cannot be stopped, or one that returns
/// `Pin<Box<dyn Future>>` or `BoxFuture`, as methods under `#[async_trait]` do.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = "…{name}…"`, `key("…{}…", expr, …)` | the key template, checked at compile time and rendered once a call, before the body | required |
/// | `key = expr` | a `LockKey`; text is never converted into one | |
/// | `prefix = "…"` | replaces the locker's prefix | the locker's |
/// | `expire = 10`, `"1500ms"`, `"1m30s"`, or a `Duration` expression | how long the lease is; an integer is seconds, the least is 10 ms | 10 s |
/// | `on_busy = expr`, `on_busy = skip` | the value when another holder has the lock; `expr` sees all parameters, `skip` is `()`, `None`, `Ok(())` or `Ok(None)` | by return type |
/// | `on_error = \|err\| expr` | the value for every other way of not finishing under the lock; sees its argument, statics and `Copy` parameters | by return type |
/// | `guard = name` | what the body calls its lease: key, fencing token, remaining time | |
/// | `locker = expr` | which `Locker`; cloned, never borrowed across the body | the process-wide one |
/// | `crate = ::path` | where `lockable_runtime` lives, for re-exports | `::lockable_runtime` |
///
/// # Return types
///
/// A call whose body did not run, or was stopped, gives `()`, `None`, or an `Err` made by
/// `E: From<LockError>`. Any other return type needs both `on_busy` and `on_error`.
///
/// # Keys
///
/// A hole `{name}` is filled with a parameter, `{self}` or a constant; anything else is an argument
/// of `key("…", …)`. For one template, different values give different keys: in an inserted value
/// `%`, `:`, `{`, `}`, white space and control characters are percent-encoded, and so is the first
/// character of the text after the hole when another hole follows. Therefore two holes with nothing
/// between them, a `%` in the template, and format specs are compile errors.
///
/// # Examples
///
/// ```ignore
/// #[distributed_lock(key("stock:{}:{}", item.sku, self.region), expire = "3s", guard = lock)]
/// async fn sell(&self, item: &Item) -> Result<u32, ShopError> {
///     self.db.take_one(item, lock.fencing_token()).await
/// }
/// ```
#[proc_macro_attribute]
pub fn distributed_lock(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    attribute(args.into(), item.into()).into()
}

/// The attribute as a function of tokens, which is what the tests call.
fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let item = target::without_invisible_groups(item);
    let target = match Target::parse(&item) {
        Ok(target) => target,
        Err(mistake) => return fallback::refused(item, &mistake),
    };
    let mut mistakes = Mistakes::default();
    let args = LockArgs::parse(args, &mut mistakes);
    let guard_is_named = args.guard.is_some();
    match LockedFn::prove(args, target, mistakes) {
        Ok(locked) => expand::expand(&locked),
        Err(mistakes) if guard_is_named => fallback::refused_without_body(item, &mistakes),
        Err(mistakes) => fallback::refused(item, &mistakes),
    }
}
