//! Control flow in the body.

use lockable_runtime::distributed_lock;

use crate::pause;

#[distributed_lock(key = "k")]
pub async fn everything(number: u64) -> Option<u64> {
    let closure = |number| {
        if number > 3 {
            return 1;
        }
        number
    };
    let block = async {
        if number > 3 {
            return 4;
        }
        5
    }
    .await;
    let labelled = 'block: {
        if number > 2 {
            break 'block 1;
        }
        2
    };
    'outer: for i in 0..number {
        for _ in 0..2 {
            if i > 1 {
                continue 'outer;
            }
        }
    }
    let Some(next) = number.checked_add(1).filter(|next| *next < 100) else {
        return Some(0);
    };
    if next > 10 {
        return Some(closure(next) + block + labelled);
    }
    loop {
        if next > 1 {
            return Some(3);
        }
        pause().await;
    }
}

#[distributed_lock(key = "k")]
#[allow(clippy::needless_return, reason = "this is the shape")]
pub async fn ends_in_return() -> Option<u64> {
    pause().await;
    return Some(4);
}

#[distributed_lock(key = "k")]
pub async fn panics() -> Option<u8> {
    panic!("on purpose")
}

#[distributed_lock(key = "k", on_busy = 1, on_error = |_| 2)]
pub async fn panics_instead_of_a_number() -> u8 {
    panic!("on purpose")
}

#[distributed_lock(key = "k")]
pub async fn unfinished() {
    unimplemented!()
}

#[distributed_lock(key = "k")]
pub async fn forever() {
    loop {
        pause().await;
    }
}

#[distributed_lock(key = "k:{id}")]
pub async fn items(id: u64) -> Option<u64> {
    use std::collections::BTreeMap;
    const THREE: u64 = 3;
    static FOUR: u64 = 4;
    macro_rules! add {
        ($x:expr) => {
            $x + THREE
        };
    }
    fn helper(x: u64) -> u64 {
        x + FOUR
    }
    #[distributed_lock(key = "inner:{id}")]
    async fn nested(id: u64) -> Option<u64> {
        pause().await;
        Some(id)
    }
    let map: BTreeMap<u64, u64> = BTreeMap::new();
    Some(add!(helper(id)) + map.len() as u64 + nested(id).await?)
}

#[distributed_lock(key = "k:{level}")]
pub async fn recursive(level: u64) -> Option<u64> {
    if level == 0 { Some(0) } else { Box::pin(recursive(level - 1)).await }
}
