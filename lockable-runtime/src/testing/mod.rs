//! Tests of decorated functions without a server, each on its own store.
//!
//! [Testing](crate::guide::testing) in the guide has an example for each case. The first of them:
//!
//! ```
//! # mod tokio { pub use ::tokio::*; pub use ::tokio::main as test; }
//! use lockable_runtime::testing::TestLocks;
//! use lockable_runtime::{LockError, distributed_lock};
//!
//! #[distributed_lock(key = "order:{id}")]
//! async fn ship(id: u32) -> Result<u32, LockError> {
//!     Ok(id)
//! }
//!
//! #[tokio::test]
//! async fn a_busy_order_is_not_shipped() {
//!     let locks = TestLocks::new();
//!     let other = locks.hold("order:7");
//!     assert!(locks.scope(ship(7)).await.unwrap_err().is_busy());
//!     drop(other);
//!     assert!(locks.scope(ship(7)).await.is_ok());
//! }
//! # a_busy_order_is_not_shipped();
//! ```

pub use self::locks::{OtherHolder, TestLocks};
pub use self::staged::Counts;
pub use crate::core::locker::scope::{inherit, inherit_sync, scope, sync_scope};

#[cfg(lockable_internals)]
pub(crate) mod internals;
mod locks;
mod staged;
