//! Tests of decorated functions, without a server: a store for each test, and the rare cases made
//! easy.
//!
//! The examples test these functions:
//!
//! ```
//! # use std::future::Future;
//! use lockable_runtime::{LockError, distributed_lock};
//!
//! /// Ships an order as soon as it is packed.
//! #[distributed_lock(key = "order:{id}")]
//! async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
//!     packed.await;
//!     Ok(())
//! }
//!
//! /// Bills an order, after the call that does so already.
//! #[distributed_lock(key = "bill:{id}", wait = "3s")]
//! async fn bill(id: u32) -> Result<(), LockError> {
//!     Ok(())
//! }
//! ```
//!
//! # A store for each test
//!
//! A decorated function uses the process-wide locker, and the tests of a process run side by side. So
//! each test makes its own [`TestLocks`] and puts them in the place of that one, for as long as a
//! future runs:
//!
//! ```
//! # mod tokio { pub use ::tokio::*; pub use ::tokio::main as test; }
//! # use std::future::{Future, ready};
//! # use lockable_runtime::{LockError, distributed_lock};
//! # #[distributed_lock(key = "order:{id}")]
//! # async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
//! #     packed.await;
//! #     Ok(())
//! # }
//! use lockable_runtime::testing::TestLocks;
//!
//! #[tokio::test]
//! async fn an_order_is_shipped_under_its_lock() {
//!     let locks = TestLocks::new();
//!     locks
//!         .scope(async {
//!             let packed = async { assert!(locks.holder("order:7").is_some()) };
//!             ship(7, packed).await.unwrap();
//!             assert!(locks.holder("order:7").is_none());
//!             assert_eq!(locks.counts("order:7").granted, 1);
//!         })
//!         .await;
//! }
//! # an_order_is_shipped_under_its_lock();
//! ```
//!
//! Nothing is installed, no environment is read, and no other code sees those locks. A function that
//! names its locker, with `locker = self.locks` for example, needs no scope: give it
//! [`TestLocks::locker`].
//!
//! # Another holder has the lock
//!
//! ```
//! # mod tokio { pub use ::tokio::*; pub use ::tokio::main as test; }
//! # use std::future::{Future, ready};
//! # use lockable_runtime::{LockError, distributed_lock};
//! # use lockable_runtime::testing::TestLocks;
//! # #[distributed_lock(key = "order:{id}")]
//! # async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
//! #     packed.await;
//! #     Ok(())
//! # }
//! # #[distributed_lock(key = "bill:{id}", wait = "3s")]
//! # async fn bill(id: u32) -> Result<(), LockError> {
//! #     Ok(())
//! # }
//! #[tokio::test]
//! async fn a_busy_order_is_not_shipped() {
//!     let locks = TestLocks::new();
//!     let other = locks.hold("order:7");
//!     let error = locks.scope(ship(7, ready(()))).await.unwrap_err();
//!     assert!(error.is_busy());
//!     drop(other);
//!     assert!(locks.scope(ship(7, ready(()))).await.is_ok());
//! }
//!
//! #[tokio::test]
//! async fn a_bill_waits_for_the_one_before() {
//!     let locks = TestLocks::new();
//!     let other = locks.hold("bill:7");
//!     let end = async {
//!         assert_eq!(locks.waiting("bill:7"), 1);
//!         drop(other);
//!     };
//!     // `join!` polls in this order, so the call waits when the other holder ends.
//!     let (billed, ()) = tokio::join!(biased; locks.scope(bill(7)), end);
//!     assert!(billed.is_ok());
//! }
//! # a_busy_order_is_not_shipped();
//! # a_bill_waits_for_the_one_before();
//! ```
//!
//! # The server is unavailable
//!
//! ```
//! # mod tokio { pub use ::tokio::*; pub use ::tokio::main as test; }
//! # use std::future::Future;
//! # use lockable_runtime::{LockError, distributed_lock};
//! # use lockable_runtime::testing::TestLocks;
//! # #[distributed_lock(key = "order:{id}")]
//! # async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
//! #     packed.await;
//! #     Ok(())
//! # }
//! #[tokio::test]
//! async fn an_order_is_not_shipped_without_its_lock() {
//!     let locks = TestLocks::new();
//!     locks.fail_next("order:7");
//!     let packed = async { unreachable!("runs without a lock") };
//!     let error = locks.scope(ship(7, packed)).await.unwrap_err();
//!     assert!(error.is_unavailable());
//!     assert_eq!(locks.counts("order:7").failed, 1);
//! }
//! # an_order_is_not_shipped_without_its_lock();
//! ```
//!
//! # The lock is lost
//!
//! The body stops where it waits, and is dropped:
//!
//! ```
//! # mod tokio { pub use ::tokio::*; pub use ::tokio::main as test; }
//! # use std::future::{Future, pending};
//! # use lockable_runtime::{LockError, distributed_lock};
//! # use lockable_runtime::testing::TestLocks;
//! # #[distributed_lock(key = "order:{id}")]
//! # async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
//! #     packed.await;
//! #     Ok(())
//! # }
//! #[tokio::test]
//! async fn shipping_stops_when_its_lock_is_lost() {
//!     let locks = TestLocks::new();
//!     let loss = async { locks.lose("order:7") };
//!     let (shipped, ()) = tokio::join!(biased; locks.scope(ship(7, pending())), loss);
//!     let error = shipped.unwrap_err();
//!     assert!(error.is_lost() && !error.is_completed());
//! }
//! # shipping_stops_when_its_lock_is_lost();
//! ```
//!
//! # Time
//!
//! Leases, renewals and wait limits go by tokio's clock. A test that pauses it, with tokio's feature
//! `test-util`, is through a lease of hours at once:
//!
//! ```
//! # mod tokio { pub use ::tokio::*; pub use ::tokio::main as test; }
//! # use std::future::{Future, ready};
//! # use lockable_runtime::{LockError, distributed_lock};
//! # use lockable_runtime::testing::TestLocks;
//! # #[distributed_lock(key = "order:{id}")]
//! # async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
//! #     packed.await;
//! #     Ok(())
//! # }
//! # #[distributed_lock(key = "bill:{id}", wait = "3s")]
//! # async fn bill(id: u32) -> Result<(), LockError> {
//! #     Ok(())
//! # }
//! use std::time::Duration;
//!
//! #[tokio::test(flavor = "current_thread", start_paused = true)]
//! async fn packing_may_not_take_longer_than_the_lease() {
//!     let locks = TestLocks::new();
//!     for (seconds, is_shipped) in [(9, true), (11, false)] {
//!         let packed = tokio::time::sleep(Duration::from_secs(seconds));
//!         assert_eq!(locks.scope(ship(7, packed)).await.is_ok(), is_shipped);
//!     }
//! }
//!
//! #[tokio::test(flavor = "current_thread", start_paused = true)]
//! async fn a_bill_does_not_wait_for_ever() {
//!     let locks = TestLocks::new();
//!     let _other = locks.hold("bill:7");
//!     assert!(locks.scope(bill(7)).await.unwrap_err().is_wait_limit_reached());
//! }
//! # packing_may_not_take_longer_than_the_lease();
//! # a_bill_does_not_wait_for_ever();
//! ```
//!
//! Without pausing, those tests take as long as the times say.
//!
//! # Sync functions
//!
//! [`TestLocks::sync_scope`] takes a closure, and all else is the same:
//!
//! ```
//! use lockable_runtime::distributed_lock;
//! use lockable_runtime::testing::TestLocks;
//!
//! #[distributed_lock(key = "report")]
//! fn write_report() -> Option<usize> {
//!     Some(3)
//! }
//!
//! // #[test]
//! fn only_one_report_is_written_at_a_time() {
//!     let locks = TestLocks::new();
//!     let other = locks.hold("report");
//!     assert_eq!(locks.sync_scope(write_report), None);
//!     drop(other);
//!     assert_eq!(locks.sync_scope(write_report), Some(3));
//! }
//! # only_one_report_is_written_at_a_time();
//! ```
//!
//! # What is spawned
//!
//! A spawned task or thread is outside of the scope. A test wraps what it spawns itself in the scope
//! of its locks, `tokio::spawn(locks.scope(ship(7, packed)))`; code that is under test wraps what it
//! spawns in [`inherit`] or [`inherit_sync`], or takes its locker as a value. Nothing runs
//! unlocked because that was forgotten: without a process-wide locker the call fails.
//!
//! # In programs that are no tests
//!
//! All of this is there in every build and costs nothing until it is used: failures and counts are a
//! matter of the store that [`TestLocks`] make, and a decorated call looks for an override by reading
//! one flag that says whether there ever was one.

pub use self::locks::{OtherHolder, TestLocks};
pub use self::staged::Counts;
pub use crate::locker::scope::{LockerScope, inherit, inherit_sync, scope, sync_scope};

#[cfg(feature = "__internals")]
pub(crate) mod internals;
mod locks;
mod staged;
