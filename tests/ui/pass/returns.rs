//! Return types.

use std::error::Error;
use std::fmt::{self, Debug, Display};

use lockable_runtime::{LockError, distributed_lock};

use crate::pause;

#[derive(Debug)]
pub enum ShopError {
    Lock(LockError),
    SoldOut,
}

impl From<LockError> for ShopError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

pub type Shop<T> = Result<T, ShopError>;

pub fn fallible(stock: u8) -> Shop<u8> {
    stock.checked_sub(1).ok_or(ShopError::SoldOut)
}

#[distributed_lock(key = "k")]
pub async fn empty() {}

#[distributed_lock(key = "k", expire = 10)]
pub async fn unit() {
    pause().await;
}

#[distributed_lock(key = "k")]
#[allow(clippy::unused_unit, reason = "this is the shape")]
pub async fn explicit_unit() -> () {}

#[distributed_lock(key = "k")]
pub async fn option() -> Option<u8> {
    pause().await;
    Some(7)
}

#[distributed_lock(key = "k")]
pub async fn result() -> Result<u8, ShopError> {
    Ok(fallible(7)? + 1)
}

#[distributed_lock(key = "k")]
pub async fn alias() -> Shop<u8> {
    fallible(7)
}

#[distributed_lock(key = "k")]
pub async fn boxed_error() -> Result<u8, Box<dyn Error>> {
    Ok("7".parse()?)
}

#[distributed_lock(key = "k")]
pub async fn sendable_boxed_error() -> Result<u8, Box<dyn Error + Send + Sync>> {
    Ok("7".parse()?)
}

#[distributed_lock(key = "k")]
pub async fn nested() -> Result<Result<u8, fmt::Error>, ShopError> {
    Ok(Err(fmt::Error))
}

#[distributed_lock(key = "k")]
pub async fn coerced() -> Shop<Box<dyn Fn() + Send>> {
    Ok(Box::new(|| ()))
}

#[distributed_lock(key = "k", on_busy = 1, on_error = |_| 2)]
pub async fn number() -> u32 {
    pause().await;
    7
}

#[distributed_lock(key = "k", on_busy = Vec::new(), on_error = |_| vec![])]
pub async fn collected() -> Vec<u8> {
    [1, 2].into_iter().collect()
}

#[distributed_lock(key = "k", on_busy = 1, on_error = |_| 2)]
pub async fn hidden() -> impl Display {
    7_u8
}

#[distributed_lock(key = "k")]
pub async fn hidden_in_option() -> Option<impl Display> {
    Some(7_u8)
}

#[distributed_lock(key = "k")]
pub async fn hidden_in_result() -> Result<impl Debug + use<>, ShopError> {
    Ok(vec![1, 2].into_iter())
}

#[distributed_lock(key = "k", on_busy = (1, 2), on_error = |_| (1, 2))]
pub async fn hidden_in_tuple() -> (impl Display, u8) {
    (1_u8, 2)
}

#[distributed_lock(key = "k")]
pub async fn hidden_in_box() -> Option<Box<dyn Iterator<Item = impl Display>>> {
    Some(Box::new(vec![1, 2].into_iter()))
}

#[distributed_lock(key = "k")]
pub async fn hidden_in_reference<'a>(number: &'a u8) -> Option<&'a (impl Display + use<'a>)> {
    Some(number)
}

#[distributed_lock(key = "k", on_busy = skip)]
pub async fn skip_unit() {}

#[distributed_lock(key = "k", on_busy = skip)]
pub async fn skip_option() -> Option<u8> {
    Some(7)
}

#[distributed_lock(key = "k", on_busy = skip)]
pub async fn skip_result() -> Shop<()> {
    Ok(())
}

#[distributed_lock(key = "k", on_busy = skip, on_error = |_| Ok(None))]
pub async fn skip_result_of_option() -> Result<Option<u8>, fmt::Error> {
    Ok(Some(7))
}

#[distributed_lock(key = "k", on_error = |err: LockError| -> Shop<u8> { Err(ShopError::Lock(err)) })]
pub async fn on_error_alone() -> Shop<u8> {
    Ok(7)
}

#[distributed_lock(key = "k", on_busy = { pause().await; Ok(fallible(1)?) })]
pub async fn busy_awaits() -> Shop<u8> {
    Ok(7)
}

#[distributed_lock(key = "k", on_busy = return Ok(1))]
#[allow(clippy::needless_return, reason = "this is the shape")]
pub async fn busy_returns() -> Shop<u8> {
    Ok(7)
}

#[distributed_lock(key = "k", on_busy = panic!("busy"), on_error = |err| panic!("{err}"))]
pub async fn busy_panics() -> u8 {
    pause().await;
    7
}

pub fn futures_can_be_sent() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(result());
    assert_send(number());
    assert_send(hidden_in_result());
    assert_send(sendable_boxed_error());
    assert_send(busy_awaits());
}
