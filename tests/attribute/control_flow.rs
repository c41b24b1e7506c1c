//! Control flow in a body is what it is without the attribute, and every way out of it releases.

use std::future::Future;

use lockable_runtime::{Locker, distributed_lock};

use crate::support::{Journal, ShopError, is_free, locker, pause};

#[tokio::test(start_paused = true)]
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
    assert!(is_free(&locks, "k"));
    assert_eq!(option(&locks, Some(7)).await, Some(6));
    assert_eq!(option(&locks, None).await, None);
    assert!(is_free(&locks, "k"));
}

type Left = Result<&'static str, ShopError>;

/// In the order of their numbers.
const DOORS: [&str; 7] =
    ["let else", "if", "labelled block", "nested loops", "question mark", "panic", "end"];

/// A function that leaves by a different door for each number; `async` or not, with a point where others have their
/// turn.
macro_rules! doors {
    ($name:ident: [$($async:tt)?] $pause:expr) => {
        #[distributed_lock(key = "k", locker = locks)]
        $($async)? fn $name(locks: Locker, journal: Journal, number: u32) -> Left {
            let _transaction = journal.drops("transaction").looking_at(&locks, "k");
            $pause;
            let from_closure = |number| {
                if number == 0 {
                    return 1;
                }
                number
            };
            assert_eq!((from_closure(0), from_closure(9)), (1, 9));
            if number == 1 {
                return Ok("if");
            }
            let labelled = 'block: {
                if number == 2 {
                    break 'block "labelled block";
                }
                "no"
            };
            if number == 2 {
                return Ok(labelled);
            }
            let mut turns = 0;
            'outer: for turn in 0..3 {
                for inner in 0..3 {
                    turns += 1;
                    if inner == turn {
                        continue 'outer;
                    }
                    if number == 3 && turn == 2 {
                        return Ok("nested loops");
                    }
                }
            }
            assert_eq!(turns, 6);
            let Some(mut rest) = number.checked_sub(4) else { return Ok("let else") };
            loop {
                $pause;
                match rest {
                    0 => Err(ShopError::SoldOut)?,
                    1 => panic!("panic"),
                    3 => break,
                    _ => rest += 1,
                }
            }
            return Ok("end");
        }
    };
}

doors!(doors: [async] pause().await);
doors!(sync_doors: [] std::thread::yield_now());

/// What the body owns is dropped before the release, whichever way the body ends.
async fn assert_every_way_out<F>(call: impl Fn(Locker, Journal, u32) -> F)
where
    F: Future<Output = Left> + Send + 'static,
{
    let (locks, journal) = (locker().await, Journal::default());
    for (door, number) in DOORS.into_iter().zip(0..) {
        let left = match tokio::spawn(call(locks.clone(), journal.clone(), number)).await {
            Ok(Ok(door)) => door,
            Ok(Err(error)) => {
                assert!(matches!(error, ShopError::SoldOut), "{error}");
                "question mark"
            }
            Err(panic) => *panic.into_panic().downcast_ref::<&str>().unwrap(),
        };
        assert_eq!(left, door);
        assert!(is_free(&locks, "k"), "{door}");
    }
    assert_eq!(journal.entries(), ["transaction when held"; DOORS.len()]);
}

#[tokio::test(start_paused = true)]
async fn every_way_out_drops_the_body_before_it_releases() {
    assert_every_way_out(doors).await;
}

#[tokio::test(start_paused = true)]
async fn every_way_out_of_a_sync_body_releases() {
    let call = |locks, journal, number| async move { sync_doors(locks, journal, number) };
    assert_every_way_out(call).await;
}

#[tokio::test(start_paused = true)]
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
            assert!(!is_free(locks, "k") && !is_free(locks, "inner"));
            let from_block = async {
                if value == 7 {
                    return 7;
                }
                0
            };
            Some(from_block.await)
        }
        let set: BTreeSet<u8> = [add!(same(THREE), FOUR)].into();
        inner(locks, *set.first()?).await
    }
    let locks = locker().await;
    assert_eq!(items(&locks).await, Some(7));
    assert!(is_free(&locks, "k") && is_free(&locks, "inner"));
}
