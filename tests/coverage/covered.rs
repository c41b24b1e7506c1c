//! Compiled twice by the test beside it: plain, and with `--cfg decorated`.

use std::future::ready;
use std::num::ParseIntError;

#[cfg(decorated)]
use lockable_runtime::{LockError, distributed_lock};

#[cfg_attr(decorated, distributed_lock(key = "straight:{id}", expire = 10))]
pub async fn straight_line(id: u64) -> Option<u64> {
    let doubled = id * 2;
    ready(()).await;
    let sum = doubled + 1;
    Some(sum)
}

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
    let name = if id > 10 {
        ready(()).await;
        "many"
    } else {
        "few"
    };
    Some(name)
}

#[cfg_attr(decorated, distributed_lock(key = "loops:{count}", expire = 10))]
pub async fn loops(count: u64) -> Option<u64> {
    let mut sum = 0;
    for each in 0..count {
        if each % 3 == 0 {
            continue;
        }
        sum += each;
    }
    while sum > 100 {
        ready(()).await;
        sum /= 2;
    }
    loop {
        if sum < 7 {
            break;
        }
        sum -= 7;
    }
    Some(sum)
}

#[cfg_attr(decorated, distributed_lock(key = "question:{text}", expire = 10))]
pub async fn question_marks(text: &str) -> Result<u64, Failure> {
    let first: u64 = text.trim().parse()?;
    ready(()).await;
    let second = text[1..].parse::<u64>()?;
    Ok(first + second)
}

#[cfg_attr(decorated, distributed_lock(key = "early:{id}", expire = 10))]
pub async fn early_return(id: u64) -> Result<u64, Failure> {
    let Some(left) = id.checked_sub(3) else {
        return Err(Failure);
    };
    if left > 5 {
        return Ok(left);
    }
    ready(()).await;
    Ok(0)
}

#[cfg_attr(decorated, distributed_lock(key = "closure:{id}", expire = 10))]
pub async fn nested_closure(id: u64) -> Option<u64> {
    let odd = |each: &u64| {
        let rest = each % 2;
        rest == 1
    };
    let sum = (0..id)
        .filter(odd)
        .map(|each| {
            let square = each * each;
            square + 1
        })
        .sum();
    Some(sum)
}

#[cfg_attr(decorated, distributed_lock(key = "inner:{id}", expire = 10))]
pub async fn inner_async_block(id: u64) -> Option<u64> {
    let later = async move {
        ready(()).await;
        if id > 2 {
            return 2;
        }
        id
    };
    let value = later.await;
    Some(value + 1)
}

#[cfg_attr(decorated, distributed_lock(key = "match:{id}", expire = 10))]
pub async fn arms(id: u64) -> Option<&'static str> {
    match id {
        0 => None,
        1 | 2 => {
            ready(()).await;
            Some("a pair")
        }
        few if few < 10 => Some("few"),
        _ => Some("many"),
    }
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
