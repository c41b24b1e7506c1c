//! Sync functions: everywhere they can be called, and everything the attribute does for them.

use std::fmt::Display;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{LockError, LockKey, Locker, distributed_lock};
use tracing::Level;

use crate::events;
use crate::support::{Journal, ShopError, is_free_now, locker_now, now};

#[distributed_lock(key = "order:{id}", locker = locks)]
fn settle(locks: &Locker, id: u64) -> Option<u64> {
    assert!(!is_free_now(locks, "order:7"), "runs without its lock");
    Some(id)
}

/// Calls twice: the second call finds the lock free again.
fn settle_twice() {
    let locks = locker_now();
    for _ in 0..2 {
        assert_eq!(settle(&locks, 7), Some(7));
        assert!(is_free_now(&locks, "order:7"));
    }
    let _other = now(locks.lock("order:7").acquire()).unwrap();
    assert_eq!(settle(&locks, 7), None);
}

#[test]
fn works_outside_of_any_runtime() {
    settle_twice();
}

#[tokio::test]
async fn works_in_a_current_thread_runtime() {
    settle_twice();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_in_a_multi_thread_runtime() {
    settle_twice();
    tokio::spawn(async { settle_twice() }).await.unwrap();
}

#[tokio::test]
async fn works_where_blocking_is_welcome() {
    tokio::task::spawn_blocking(settle_twice).await.unwrap();
}

#[distributed_lock(key = "k", locker = locker_now(), guard = lock)]
#[test]
fn a_test_runs_under_its_lock() {
    assert!(lock.is_held());
}

#[test]
#[distributed_lock(key = "k", locker = locker_now(), guard = lock)]
fn a_test_locks_below_its_attribute_too() -> Result<(), LockError> {
    assert!(lock.is_held());
    Ok(())
}

/// Goal: of many calls at once, one body runs at a time. Method: threads count in two steps, which
/// another body between them would upset.
#[test]
fn bodies_with_one_key_exclude_each_other() {
    #[distributed_lock(key = "k", locker = locks)]
    fn call(locks: &Locker, count: &Journal) -> Option<()> {
        let before = count.entries().len();
        thread::yield_now();
        count.write("ran");
        assert_eq!(count.entries().len(), before + 1, "two bodies at once");
        Some(())
    }
    let (locks, count) = (locker_now(), Journal::default());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    while call(&locks, &count).is_none() {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(count.entries().len(), 80);
}

struct Service {
    id: u8,
    name: String,
    locks: Locker,
}

impl Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service{}", self.id)
    }
}

fn service() -> Service {
    Service { id: 7, name: "n".to_owned(), locks: locker_now() }
}

impl Service {
    fn must_hold_itself(&self) {
        assert!(!is_free_now(&self.locks, "service7"));
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    fn by_reference(&self) -> Option<&str> {
        self.must_hold_itself();
        Some(&self.name)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    fn by_mutable_reference(&mut self, more: u8) -> Option<&mut u8> {
        self.must_hold_itself();
        self.id += more;
        Some(&mut self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks, on_busy = Some(self.name))]
    fn by_value(self) -> Option<String> {
        self.must_hold_itself();
        Some(self.name)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    fn by_mutable_value(mut self) -> Option<u8> {
        self.must_hold_itself();
        self.id += 1;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    fn by_arc(self: Arc<Self>) -> Option<u8> {
        self.must_hold_itself();
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    fn by_box(self: Box<Self>) -> Option<u8> {
        self.must_hold_itself();
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    fn by_pin(self: Pin<&mut Self>) -> Option<u8> {
        self.must_hold_itself();
        Some(self.id)
    }
}

#[test]
fn every_form_of_self_is_locked() {
    let mut plain = service();
    assert_eq!(plain.by_reference(), Some("n"));
    assert_eq!(plain.by_mutable_reference(0), Some(&mut 7));
    assert_eq!(pin!(service()).by_pin(), Some(7));
    assert_eq!(plain.by_value().as_deref(), Some("n"));
    assert_eq!(service().by_mutable_value(), Some(8));
    assert_eq!(Arc::new(service()).by_arc(), Some(7));
    assert_eq!(Box::new(service()).by_box(), Some(7));
    let busy = service();
    let _other = now(busy.locks.lock("service7").acquire()).unwrap();
    assert_eq!(busy.by_value().as_deref(), Some("n"));
}

trait Job {
    fn locks(&self) -> &Locker;

    #[distributed_lock(key("job:{}", self.number()), locker = self.locks())]
    fn run(&self) -> Option<u8> {
        assert!(!is_free_now(self.locks(), "job:7"));
        Some(self.number())
    }

    fn number(&self) -> u8;
}

impl Job for Service {
    fn locks(&self) -> &Locker {
        &self.locks
    }

    #[distributed_lock(key = "number", locker = self.locks, on_busy = 0, on_error = |_| 1)]
    fn number(&self) -> u8 {
        assert!(!is_free_now(&self.locks, "number"));
        self.id
    }
}

#[test]
fn methods_are_locked_in_traits_and_in_impls() {
    assert_eq!(service().run(), Some(7));
}

#[test]
fn every_option_works() {
    const KEY: LockKey = LockKey::from_static("k");

    #[distributed_lock(key = KEY, prefix = "p:", expire = Duration::from_secs(3), locker = locks, guard = lock,
        on_busy = name.len(), on_error = |err: LockError| if err.is_busy() { 1 } else { 2 })]
    fn call(locks: &Locker, name: String) -> usize {
        assert!(lock.is_held() && lock.remaining() > Duration::from_secs(2));
        assert_eq!((lock.key().as_str(), u64::from(lock.fencing_token()) > 0), ("p:k", true));
        drop(name);
        7
    }
    #[distributed_lock(key = "k", locker = locks, prefix = "p:", on_busy = skip)]
    fn skips(locks: &Locker) -> Result<Option<u8>, ShopError> {
        Ok(Some(7))
    }
    #[distributed_lock(key = "{id}", on_busy = 1, on_error = |_| 2, locker = locks)]
    fn cannot(locks: &Locker, id: &str) -> u8 {
        unreachable!("runs with an empty key")
    }
    let locks = locker_now();
    assert_eq!(call(&locks, "four".to_owned()), 7);
    assert_eq!(skips(&locks).unwrap(), Some(7));
    assert_eq!(cannot(&locks, ""), 2);
    let other = Locker::builder().url("memory://every-option").prefix("p:").connect_lazy().unwrap();
    let _held = now(other.lock("k").acquire()).unwrap();
    assert_eq!(call(&other, "four".to_owned()), 4);
    assert_eq!(skips(&other).unwrap(), None);
}

#[test]
fn generics_closures_and_opaque_types_are_taken() {
    #[distributed_lock(key = "k:{value}:{N}", locker = locks)]
    fn generic<T: Display + Clone, U, const N: usize>(
        locks: &Locker,
        value: &T,
        mut more: impl FnMut(u8) -> U,
    ) -> Option<(T, [U; N])>
    where
        U: Default,
    {
        Some((value.clone(), std::array::from_fn(|_| more(1))))
    }
    #[distributed_lock(key = "k", locker = locks)]
    fn hidden(locks: &Locker, words: Rc<str>) -> Option<impl Iterator<Item = char> + use<>> {
        Some(words.chars().rev().collect::<Vec<_>>().into_iter())
    }
    #[distributed_lock(key = "k", locker = locks)]
    fn coerced(locks: &Locker) -> Result<Box<dyn Fn() -> u8>, Box<dyn std::error::Error>> {
        Ok(Box::new(|| 7))
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = value, on_error = |_| panic!("no lock"))]
    fn anything<T>(locks: &Locker, value: T) -> T {
        value
    }
    let locks = locker_now();
    assert_eq!(generic::<_, _, 2>(&locks, &7, |n| n), Some((7, [1, 1])));
    assert_eq!(hidden(&locks, "ab".into()).unwrap().collect::<String>(), "ba");
    assert_eq!(coerced(&locks).unwrap()(), 7);
    // What a caller chooses for a type parameter is the caller's affair.
    assert_eq!(now(anything(&locks, std::future::ready(7))), 7);
}

#[test]
fn other_kinds_of_functions_are_locked() {
    #[distributed_lock(key = "k", locker = locks)]
    extern "C" fn c(locks: &Locker, looked: &mut bool) {
        *looked = !is_free_now(locks, "k");
    }
    let (locks, mut looked) = (locker_now(), false);
    let pointer: extern "C" fn(&Locker, &mut bool) = c;
    pointer(&locks, &mut looked);
    assert!(looked && is_free_now(&locks, "k"));
}

#[test]
fn every_way_out_drops_the_body_before_it_releases() {
    #[distributed_lock(key = "k", locker = locks)]
    fn call(locks: Locker, journal: Journal, way: u8) -> Result<u8, ShopError> {
        let _transaction = journal.drops("transaction").looking_at(&locks, "k");
        let found = 'search: {
            if way == 2 {
                return Ok(8);
            }
            if way == 3 {
                break 'search 9;
            }
            7
        };
        match way {
            0 | 3 => Ok(found),
            1 => Err(ShopError::SoldOut)?,
            _ => panic!("on purpose"),
        }
    }
    let (locks, journal) = (locker_now(), Journal::default());
    let mut outcomes = Vec::new();
    for way in 0..5 {
        let (locks_there, journal) = (locks.clone(), journal.clone());
        let ended = thread::spawn(move || call(locks_there, journal, way).ok()).join();
        outcomes.push(ended.ok());
        assert!(is_free_now(&locks, "k"));
    }
    assert_eq!(outcomes, [Some(Some(7)), Some(None), Some(Some(8)), Some(Some(9)), None]);
    assert_eq!(journal.entries(), ["transaction when held"; 5]);
}

/// Goal: parameters are dropped as in a plain function, and before the release.
#[test]
fn parameters_are_dropped_in_order_and_before_the_release() {
    macro_rules! drops {
        ($(#[$lock:meta])? $name:ident($locks:ident)) => {
            $(#[$lock])?
            fn $name(
                $locks: &Locker,
                first: impl Display,
                (_second, third): (impl Display, impl Display),
                _permit: impl Display,
            ) -> Option<String> {
                let _ = $locks;
                Some(format!("{first}{third}"))
            }
        };
    }
    drops!(plain(locks));
    drops!(
        #[distributed_lock(key = "k", locker = locks)]
        locked(locks)
    );

    let locks = locker_now();
    let (there, here) = (Journal::default(), Journal::default());
    let a = |journal: &Journal, name| journal.drops(name).looking_at(&locks, "k");
    let call = (a(&there, "1"), (a(&there, "2"), a(&there, "3")), a(&there, "4"));
    plain(&locks, call.0, call.1, call.2).unwrap();
    let call = (a(&here, "1"), (a(&here, "2"), a(&here, "3")), a(&here, "4"));
    locked(&locks, call.0, call.1, call.2).unwrap();
    let order = |journal: &Journal| {
        let entries = journal.entries().into_iter();
        entries.map(|entry| entry.chars().next().unwrap()).collect::<String>()
    };
    assert_eq!(order(&here), order(&there));
    assert!(
        here.entries().iter().all(|entry| entry.ends_with("when held")),
        "{here:?}",
        here = here.entries()
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_outliving_its_lease_is_reported() {
    #[distributed_lock(key = "k", locker = locks, guard = lock)]
    fn call(locks: &Locker, done: &mut bool) -> Result<u8, LockError> {
        let mut advance = pin!(tokio::time::advance(Duration::from_secs(11)));
        // The first poll moves the clock; the rest of it is for tasks that wait.
        assert!(advance.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(!lock.is_held());
        *done = true;
        Ok(7)
    }
    let (locks, mut done) = (locker_now(), false);
    events::listen();
    let error = call(&locks, &mut done).unwrap_err();
    assert!(done && error.is_lost() && error.is_completed());
    let logged = events::take();
    assert!(logged.iter().any(|event| event.level <= Level::WARN), "{logged:#?}");
}

#[test]
fn a_failed_release_leaves_the_bodys_own_error() {
    #[distributed_lock(key = "k", locker = locks)]
    fn call(locks: &Locker, lose: &MemoryStore) -> Result<u8, ShopError> {
        lose.flush();
        Err(ShopError::SoldOut)
    }
    let locks = Locker::builder().url("memory://sync-own-error").connect_lazy().unwrap();
    let store = MemoryStore::open("sync-own-error").unwrap();
    assert!(matches!(call(&locks, &store), Err(ShopError::SoldOut)));
}

#[test]
fn an_unreachable_server_refuses_the_call() {
    #[distributed_lock(key = "k", locker = locks)]
    fn call(locks: &Locker) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    // The discard port, where nothing listens.
    let locks = Locker::builder().url("redis://127.0.0.1:9").connect_lazy().unwrap();
    assert!(call(&locks).unwrap_err().is_unavailable());
}
