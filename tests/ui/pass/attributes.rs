//! Attributes beside ours, and macros around it.

use lockable_runtime::distributed_lock;

use crate::pause;

/// Docs.
#[distributed_lock(key = "k")]
#[must_use]
#[inline]
#[doc(hidden)]
#[allow(unused_variables)]
pub async fn several() -> Option<u8> {
    let unused = 3;
    Some(1)
}

#[expect(unused_variables)]
#[distributed_lock(key = "k")]
pub async fn expects() {
    let unused = 3;
}

#[cfg_attr(all(), distributed_lock(key = "k"))]
pub async fn through_cfg_attr() {}

#[distributed_lock(key = "k")]
pub async fn inner_attributes() {
    //! Inner docs.
    #![allow(unused_variables)]
    let unused = 3;
}

macro_rules! make {
    ($name:ident, $id:ident, $type:ty, $key:literal, $body:block, $secs:expr, $busy:expr) => {
        #[distributed_lock(key = $key, expire = $secs, on_busy = $busy)]
        pub async fn $name($id: $type) -> Option<$type> $body
    };
}

make!(made, id, u64, "made:{id}", { Some(id + 1) }, 10, Some(3));

macro_rules! lock {
    ($item:item) => {
        #[distributed_lock(key = "item")]
        $item
    };
}

lock! {
    pub async fn whole_item() -> Option<u8> {
        pause().await;
        Some(7)
    }
}

#[lockable_runtime::distributed_lock(key = "k")]
pub async fn by_path() {}

pub use lockable_runtime as reexported;

#[distributed_lock(key = "k", expire = "3s", on_busy = skip, crate = crate::attributes::reexported)]
pub async fn runtime_elsewhere() {}
