//! Compiled twice by the test beside it: plain, and with `--cfg decorated`.

use std::future::ready;
use std::num::ParseIntError;

#[cfg(decorated)]
use lockable_runtime::{LockError, distributed_lock};

#[cfg_attr(decorated, distributed_lock(key = "nothing"))]
pub async fn no_tail() {
    ready(()).await;
    println!("done");
}

#[cfg_attr(decorated, distributed_lock(key = "branches:{id}", expire = 10))]
pub async fn branches(id: u64) -> Option<&'static str> {
    if id == 0 {
        return None;
    }
    match id {
        1 | 2 => {
            ready(()).await;
            Some("a pair")
        }
        few if few < 10 => Some("few"),
        _ => Some("many"),
    }
}

#[cfg_attr(decorated, distributed_lock(key = "loops:{count}", expire = 10))]
pub async fn loops_and_closures(count: u64) -> Option<u64> {
    let odd = |each: &u64| {
        let rest = each % 2;
        rest == 1
    };
    let mut sum = 0;
    for each in (0..count).filter(odd) {
        if each % 3 == 0 {
            continue;
        }
        sum += each;
    }
    while sum > 100 {
        ready(()).await;
        sum /= 2;
    }
    Some(sum)
}

#[cfg_attr(decorated, distributed_lock(key = "early:{text}", expire = 10))]
pub async fn early_ends(text: &str) -> Result<u64, Failure> {
    let first: u64 = text.trim().parse()?;
    let Some(left) = first.checked_sub(3) else {
        return Err(Failure);
    };
    let later = async move {
        ready(()).await;
        if left > 2 {
            return 2;
        }
        left
    };
    Ok(later.await + text[1..].parse::<u64>()?)
}

/// What every error becomes.
pub struct Failure;

impl From<ParseIntError> for Failure {
    fn from(_: ParseIntError) -> Self {
        Self
    }
}

#[cfg(decorated)]
impl From<LockError> for Failure {
    fn from(_: LockError) -> Self {
        Self
    }
}
