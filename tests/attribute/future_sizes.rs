//! What the attribute adds to a future: few bytes.

use std::time::Duration;

use lockable_runtime::distributed_lock;

use crate::support::pause;

/// The most that a decorated future may be larger than the plain one.
const MOST: usize = 1024;
/// The most that an argument may take beyond what it takes in the plain one.
const MOST_FOR_ARGUMENT: usize = 64;

/// An argument that is moved, and dropped, rather than copied.
struct Owned([u8; 1024]);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0[0] = 0;
    }
}

fn look<T>(value: &T) -> usize {
    size_of_val(value)
}

fn longest<T>(value: &T) -> Duration {
    Duration::from_secs(10) + Duration::from_millis(u64::try_from(look(value)).unwrap_or(0))
}

/// The sizes of a plain future and of the decorated one, with the same parameters and body.
macro_rules! sizes {
    ($parameter:ident [$($option:tt)*] $value:expr => $type:ty) => {{
        async fn plain(id: u64, $parameter: $type) -> Option<usize> {
            pause().await;
            let size = look(&$parameter);
            pause().await;
            Some(size + look(&id))
        }
        #[distributed_lock(key = "k:{id}" $($option)*)]
        async fn decorated(id: u64, $parameter: $type) -> Option<usize> {
            pause().await;
            let size = look(&$parameter);
            pause().await;
            Some(size + look(&id))
        }
        (size_of_val(&plain(1, $value)), size_of_val(&decorated(1, $value)))
    }};
}

macro_rules! assert_small {
    ($parameter:ident [$($option:tt)*]) => {{
        let empty = sizes!($parameter [$($option)*] [] => [u8; 0]);
        assert!(empty.1 <= empty.0 + MOST, "{empty:?}");
        let copied = sizes!($parameter [$($option)*] [0; 1024] => [u8; 1024]);
        let owned = sizes!($parameter [$($option)*] Owned([0; 1024]) => Owned);
        for large in [copied, owned] {
            let (plain, decorated) = (large.0 - empty.0, large.1 - empty.1);
            assert!(decorated <= plain + MOST_FOR_ARGUMENT, "{empty:?} {large:?}");
        }
    }};
}

#[test]
fn a_decorated_future_is_little_larger() {
    assert_small!(value []);
    assert_small!(value [, expire = "3s", prefix = "p:"]);
    assert_small!(value [, guard = _lock]);
    assert_small!(value [, on_busy = skip]);
    assert_small!(value [, on_busy = Some(look(&value))]);
    assert_small!(value [, on_busy = Some(look(&value)), guard = _lock, on_error = |_| None]);
    assert_small!(value [, on_error = |err| Some(look(&err))]);
    assert_small!(value [, renew]);
    assert_small!(value [, renew, max_hold = "5m", min_hold = 3, on_lost = finish]);
    assert_small!(value [
        , expire = longest(&MOST), renew, max_hold = longest(&MOST), min_hold = longest(&MOST)
        , guard = _lock, on_lost = cancel, on_busy = Some(look(&value)), on_error = |_| None
    ]);
}

struct Counter(u64);

impl Counter {
    async fn plain<T>(&self, value: T) -> Option<usize> {
        pause().await;
        let size = look(&value);
        pause().await;
        Some(size + look(&self.0))
    }

    #[distributed_lock(
        key("{}", self.0),
        renew,
        max_hold = longest(&self.0),
        min_hold = longest(self),
        on_lost = finish
    )]
    async fn decorated<T>(&self, value: T) -> Option<usize> {
        pause().await;
        let size = look(&value);
        pause().await;
        Some(size + look(&self.0))
    }
}

#[test]
fn a_decorated_method_is_little_larger() {
    fn sizes<T>(value: T, same: T) -> (usize, usize) {
        let counter = Counter(1);
        (size_of_val(&counter.plain(value)), size_of_val(&counter.decorated(same)))
    }
    let empty = sizes([0_u8; 0], [0; 0]);
    for large in [sizes([0_u8; 1024], [0; 1024]), sizes(Owned([0; 1024]), Owned([0; 1024]))] {
        assert!(empty.1 <= empty.0 + MOST, "{empty:?}");
        let (plain, decorated) = (large.0 - empty.0, large.1 - empty.1);
        assert!(decorated <= plain + MOST_FOR_ARGUMENT, "{empty:?} {large:?}");
    }
}
