//! Control flow in a body is what it is without the attribute.

use lockable_runtime::{Locker, distributed_lock};

use crate::support::{ShopError, is_free, locker, pause};

#[tokio::test]
async fn question_marks_leave_the_body_and_release() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn result(locks: &Locker, stock: Result<u8, ShopError>) -> Result<u8, ShopError> {
        let stock = stock?;
        pause().await;
        Ok(stock - 1)
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn option(locks: &Locker, stock: Option<u8>) -> Option<u8> {
        Some(stock? - 1)
    }
    let locks = locker().await;
    assert!(matches!(result(&locks, Ok(7)).await, Ok(6)));
    assert!(matches!(result(&locks, Err(ShopError::SoldOut)).await, Err(ShopError::SoldOut)));
    assert!(is_free(&locks, "k").await);
    assert_eq!(option(&locks, Some(7)).await, Some(6));
    assert_eq!(option(&locks, None).await, None);
    assert!(is_free(&locks, "k").await);
}

/// Leaves by a different door for each number.
#[distributed_lock(key = "k", locker = locks)]
#[expect(clippy::needless_return, reason = "a body may end in a return")]
async fn doors(locks: &Locker, number: u32) -> Option<&'static str> {
    let from_closure = |number| {
        if number == 0 {
            return 1;
        }
        number
    };
    let from_block = async {
        if number == 1 {
            return 5;
        }
        number
    }
    .await;
    assert_eq!((from_closure(0), from_closure(9)), (1, 9));
    if number == 1 {
        assert_eq!(from_block, 5);
        return Some("from an if");
    }
    let labelled = 'block: {
        if number == 2 {
            break 'block "from a labelled block";
        }
        "no"
    };
    if number == 2 {
        return Some(labelled);
    }
    let mut turns = 0;
    'outer: for turn in 0..3 {
        for inner in 0..3 {
            turns += 1;
            if inner == turn {
                continue 'outer;
            }
            if number == 3 && turn == 2 {
                return Some("from nested loops");
            }
        }
    }
    assert_eq!(turns, 6);
    let Some(mut rest) = number.checked_sub(4) else { return Some("from let else") };
    loop {
        pause().await;
        if rest == 0 {
            break;
        }
        rest -= 1;
    }
    return Some("at the end");
}

#[tokio::test]
async fn every_way_out_releases() {
    let locks = locker().await;
    for (number, door) in [
        (0, "from let else"),
        (1, "from an if"),
        (2, "from a labelled block"),
        (3, "from nested loops"),
        (5, "at the end"),
    ] {
        assert_eq!(doors(&locks, number).await, Some(door));
        assert!(is_free(&locks, "k").await, "{door}");
    }
}

#[tokio::test]
async fn a_panic_continues_and_releases() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn panics(locks: Locker) -> Option<u8> {
        pause().await;
        panic!("on purpose")
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn unfinished(locks: Locker) {
        todo!()
    }
    let locks = locker().await;
    let panic = tokio::spawn(panics(locks.clone())).await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert!(is_free(&locks, "k").await);
    assert!(tokio::spawn(unfinished(locks.clone())).await.unwrap_err().is_panic());
    assert!(is_free(&locks, "k").await);
}

#[tokio::test]
async fn items_in_a_body_are_its_own() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn items(locks: &Locker) -> Option<u8> {
        use std::collections::BTreeSet;
        const THREE: u8 = 3;
        static FOUR: u8 = 4;
        macro_rules! add {
            ($a:expr, $b:expr) => {
                $a + $b
            };
        }
        fn same(value: u8) -> u8 {
            value
        }
        #[distributed_lock(key = "inner", locker = locks)]
        async fn inner(locks: &Locker, value: u8) -> Option<u8> {
            assert!(!is_free(locks, "k").await && !is_free(locks, "inner").await);
            Some(value)
        }
        let set: BTreeSet<u8> = [add!(same(THREE), FOUR)].into();
        inner(locks, *set.first()?).await
    }
    let locks = locker().await;
    assert_eq!(items(&locks).await, Some(7));
    assert!(is_free(&locks, "k").await && is_free(&locks, "inner").await);
}

#[tokio::test]
async fn a_body_calls_itself_with_another_key() {
    #[distributed_lock(key = "level:{level}", locker = locks)]
    async fn descend(locks: &Locker, level: u8) -> Result<u8, ShopError> {
        if level == 0 {
            assert!(!is_free(locks, "level:3").await);
            return Ok(0);
        }
        Ok(1 + Box::pin(descend(locks, level - 1)).await?)
    }
    let locks = locker().await;
    assert!(matches!(descend(&locks, 3).await, Ok(3)));
    assert!(is_free(&locks, "level:3").await && is_free(&locks, "level:0").await);
}
