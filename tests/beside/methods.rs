//! Methods, and the attributes of traits. The attribute itself is on the implementation.

use lockable_runtime::distributed_lock;

use crate::calls::block_on;
use crate::{body, granted, here};

struct Shop;

#[async_trait::async_trait]
trait Job {
    async fn run(&self) -> Option<u8>;
}

#[async_trait::async_trait]
impl Job for Shop {
    #[distributed_lock(key = "k", locker = here())]
    async fn run(&self) -> Option<u8> {
        body()
    }
}

#[mockall::automock]
trait Mocked {
    fn run(&self) -> Option<u8>;
}

impl Mocked for Shop {
    #[distributed_lock(key = "k", locker = here())]
    fn run(&self) -> Option<u8> {
        body()
    }
}

#[trait_variant::make(Send)]
trait Variant {
    async fn run(&self) -> Option<u8>;
}

impl Variant for Shop {
    #[distributed_lock(key = "k", locker = here())]
    async fn run(&self) -> Option<u8> {
        body()
    }
}

#[test]
fn async_trait_is_locked() {
    assert_eq!((block_on(Job::run(&Shop)), granted()), (Some(7), 1));
}

#[test]
fn a_mocked_trait_is_locked_where_it_is_implemented() {
    let mut mock = MockMocked::new();
    mock.expect_run().return_const(Some(3));
    assert_eq!((mock.run(), granted()), (Some(3), 0));
    assert_eq!((Mocked::run(&Shop), granted()), (Some(7), 1));
}

#[test]
fn a_variant_of_a_trait_is_locked_where_it_is_implemented() {
    assert_eq!((block_on(Variant::run(&Shop)), granted()), (Some(7), 1));
}

#[axum::debug_handler]
#[distributed_lock(key = "k", locker = here())]
async fn handler_above() {
    body();
}

#[distributed_lock(key = "k", locker = here())]
#[axum::debug_handler]
async fn handler_below() {
    body();
}

#[test]
fn a_handler_below_is_locked() {
    block_on(handler_below());
    assert_eq!(granted(), 1);
}

#[test]
fn a_handler_above_is_locked() {
    block_on(handler_above());
    assert_eq!(granted(), 1);
}
