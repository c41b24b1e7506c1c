//! How logs and metrics say which lock they are about: by the key template, and never by the key.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockError, LockKey, Locker, distributed_lock};
use tracing::Level;

use crate::counters::counted;
use crate::events::{self, Logged, Span};
use crate::support::{SECOND, elapse, locker, pause, poll_once};

const NIGHTLY: LockKey = LockKey::from_static("nightly");

/// The labels of all that was logged about locks, `lock` and `function`, each once and in order.
fn labels(logged: &[Logged], spans: &[Span]) -> Vec<(String, String)> {
    let spans = spans.iter().filter(|span| span.name != "renew").map(|span| &*span.fields);
    let fields = logged.iter().map(|one| &*one.fields).chain(spans);
    let mut labels: Vec<_> = fields.map(label).collect();
    labels.sort();
    labels.dedup();
    labels
}

fn label(fields: &str) -> (String, String) {
    let field = |name: &str| {
        let (_, from) = fields.split_once(&format!("{name}=\""))?;
        from.split_once('"').map(|(value, _)| value.to_owned())
    };
    (field(" lock").unwrap_or_default(), field(" function").unwrap_or_default())
}

/// What one call logs as its lock and its function.
async fn logged_by<T>(call: impl Future<Output = T>) -> Vec<(String, String)> {
    events::listen();
    call.await;
    labels(&events::take_all(), &events::spans())
}

fn of(lock: &str, function: &str) -> Vec<(String, String)> {
    vec![(lock.to_owned(), format!("{}::{function}", module_path!()))]
}

#[distributed_lock(key = "order:{id}", locker = locks, expire = 1)]
async fn settle(locks: &Locker, id: u64, takes: Duration) -> Result<u64, LockError> {
    elapse(takes).await;
    Ok(id)
}

#[distributed_lock(key = "order:{id}", locker = locks, expire = 1, wait = 1)]
async fn ship(locks: &Locker, id: u64, takes: Duration) -> Option<u64> {
    elapse(takes).await;
    Some(id)
}

#[distributed_lock(key = "order:{id}", locker = locks, expire = 1, renew)]
async fn pack(locks: &Locker, id: u64) -> Option<u64> {
    elapse(SECOND / 2).await;
    Some(id)
}

#[distributed_lock(key = "order:{id}", locker = locks, expire = 1, on_lost = finish)]
async fn bill(locks: &Locker, id: u64) -> Option<u64> {
    elapse(2 * SECOND).await;
    Some(id)
}

/// Everything that can become of a call, with the function `settle` or without.
async fn everything(locks: &Locker) {
    settle(locks, 7, SECOND / 2).await.unwrap();
    settle(locks, 7, 2 * SECOND).await.unwrap_err();
    bill(locks, 7).await.unwrap();
    pack(locks, 7).await.unwrap();
    let (held, busy) = tokio::join!(ship(locks, 7, SECOND / 2), settle(locks, 7, SECOND));
    assert!(held.is_some() && busy.unwrap_err().is_busy());
    let three = tokio::join!(
        ship(locks, 7, SECOND / 5),
        ship(locks, 7, Duration::ZERO),
        ship(locks, 7, SECOND / 5)
    );
    assert!(three.0.is_some() && three.1.is_some() && three.2.is_some());
    let held = locks.lock("order:7").label("order:{id}").acquire().await.unwrap();
    assert!(ship(locks, 7, SECOND).await.is_none());
    let mut call = Box::pin(ship(locks, 7, SECOND));
    assert!(poll_once(call.as_mut()).await.is_none());
    drop((call, held));
    pause().await;
    let nowhere = Locker::builder().url("redis://127.0.0.1:1").connect_lazy().unwrap();
    settle(&nowhere, 7, SECOND).await.unwrap_err();
}

#[test]
fn every_metric_says_which_lock() {
    let counted = counted(async |locks| everything(&locks).await);
    let outcomes = ["busy]=1", "cancelled]=1", "failed]=1", "granted]=9", "wait_limit]=1"];
    assert_eq!(counted.of("lockable.acquire{order:{id}}"), outcomes);
    assert_eq!(counted.of("lockable.handoff{order:{id}}"), ["local]=1", "queue]=1"]);
    assert_eq!(counted.of("lockable.hold.lost{order:{id}}"), ["deadline]=2"]);
    assert_eq!(counted.of("lockable.hold.completed_after_loss{order:{id}}"), ["]=1"]);
    assert_eq!(counted.of("lockable.waiters{order:{id}}"), ["]=0"]);
    assert_eq!(counted.of("lockable.release.backlog{order:{id}}"), ["]=0"]);
    for name in ["acquire.wait", "hold", "renewal", "release"] {
        assert!(!counted.of(&format!("lockable.{name}{{order:{{id}}}}")).is_empty(), "{name}");
    }
    let others = counted.0.iter().filter(|line| !line.contains("{order:{id}}"));
    let others: Vec<_> = others.collect();
    assert!(others.iter().all(|line| line.ends_with("[]=0")), "{others:?}");
}

#[tokio::test(start_paused = true)]
async fn everything_logged_says_which_lock() {
    let locks = locker().await;
    let logged = logged_by(everything(&locks)).await;
    let function = |name: &str| of("order:{id}", name).remove(0);
    let by_hand = ("order:{id}".to_owned(), String::new());
    let mut expected = vec![by_hand];
    expected.extend(["bill", "pack", "settle", "ship"].map(function));
    assert_eq!(logged, expected);
}

/// Goal: what the background does is logged for the call that it does it for.
/// Method: a lock is passed to a call of another function, which is dropped in its body; and so is one that waits.
#[tokio::test(start_paused = true)]
async fn a_background_release_says_whose_it_is() {
    let locks = locker().await;
    let held = locks.lock("order:7").acquire().await.unwrap();
    let mut first = Box::pin(ship(&locks, 7, Duration::ZERO));
    assert!(poll_once(first.as_mut()).await.is_none());
    let mut second = Box::pin(locks.lock("order:7").label("second").run(pending::<()>()));
    assert!(poll_once(second.as_mut()).await.is_none());
    held.release().await.unwrap();
    tokio::select! {
        shipped = first.as_mut() => assert!(shipped.is_some()),
        _ = second.as_mut() => unreachable!("its body does not end"),
    }
    assert!(poll_once(second.as_mut()).await.is_none());
    events::listen();
    drop(second);
    elapse(SECOND).await;
    let (logged, spans) = (events::take_all(), events::spans());
    assert!(spans.iter().any(|span| span.name == "release"), "{spans:#?}");
    assert_eq!(labels(&logged, &spans), [("second".to_owned(), String::new())]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_a_label_has_no_such_fields() {
    let locks = locker().await;
    events::listen();
    locks.lock("k").run(pause()).await.unwrap();
    let logged = events::take_all().into_iter().map(|one| one.fields);
    for fields in logged.chain(events::spans().into_iter().map(|span| span.fields)) {
        assert!(!fields.contains("lock=") && !fields.contains("function="), "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_redacted_key_leaves_the_label_as_it_is() {
    let locks = Locker::builder().url("memory://").redact_keys().connect().await.unwrap();
    events::listen();
    settle(&locks, 7, 2 * SECOND).await.unwrap_err();
    let (logged, spans) = (events::take_all(), events::spans());
    assert_eq!(labels(&logged, &spans), of("order:{id}", "settle"));
    assert!(logged.iter().all(|one| one.fields.contains("redacted:")), "{logged:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_discarded_says_which_lock() {
    #[distributed_lock(key = "unit:{id}", locker = locks)]
    async fn unit(locks: &Locker, id: &str) {
        unreachable!("{id} cannot be inserted")
    }
    let locks = locker().await;
    events::listen();
    unit(&locks, "").await;
    let nowhere = Locker::builder().url("redis://127.0.0.1:1").connect_lazy().unwrap();
    unit(&nowhere, "7").await;
    let logged = events::take();
    assert_eq!(logged.iter().filter(|one| one.level == Level::ERROR).count(), 2);
    assert_eq!(labels(&logged, &[]), of("unit:{id}", "unit"));
}

#[test]
fn a_revocation_says_which_lock() {
    #[distributed_lock(key = "revoked:{id}")]
    async fn revoked(id: u64) -> Result<u64, LockError> {
        pending::<()>().await;
        Ok(id)
    }
    let counted = counted(async |_| {
        let locks = TestLocks::new();
        let ask = async {
            pause().await;
            locks.revoke("revoked:7", "migration 42");
        };
        let logged = logged_by(async {
            let (stopped, ()) = tokio::join!(locks.scope(revoked(7)), ask);
            assert!(stopped.unwrap_err().is_revoked());
        });
        assert_eq!(logged.await, of("revoked:{id}", "revoked"));
    });
    assert_eq!(counted.of("lockable.hold.revoked{revoked:{id}}"), ["]=1"]);
}

struct Shop {
    locks: Locker,
}

trait Sells {
    fn sell(&self, sku: &str) -> Option<u8>;
}

impl Sells for Shop {
    #[distributed_lock(key("stock:{}", sku.len()), locker = self.locks)]
    fn sell(&self, sku: &str) -> Option<u8> {
        Some(2)
    }
}

impl Shop {
    #[distributed_lock(key = NIGHTLY, prefix = "jobs:", locker = self.locks)]
    async fn close<const N: usize, T: Default>(&self) -> Option<T> {
        Some(T::default())
    }

    #[distributed_lock(key = Self::key(3, "x"), locker = self.locks)]
    async fn r#move(&self) -> Option<u8> {
        Some(3)
    }

    fn key(number: u8, text: &str) -> LockKey {
        LockKey::new(format!("{text}:{number}")).unwrap()
    }
}

macro_rules! locked {
    ($name:ident, $key:literal, $value:expr) => {
        #[distributed_lock(key = $key, locker = locks)]
        async fn $name(locks: &Locker) -> Option<u8> {
            Some($value)
        }
    };
}

locked!(by_macro, "by:macro", 4);

#[tokio::test(start_paused = true)]
async fn each_kind_of_function_has_its_label() {
    let shop = Shop { locks: locker().await };
    assert_eq!(logged_by(async { shop.sell("sku") }).await, of("stock:{}", "sell"));
    assert_eq!(logged_by(shop.close::<1, u8>()).await, of("NIGHTLY", "close"));
    assert_eq!(logged_by(shop.close::<2, String>()).await, of("NIGHTLY", "close"));
    assert_eq!(logged_by(by_macro(&shop.locks)).await, of("by:macro", "by_macro"));
    events::listen();
    shop.r#move().await.unwrap();
    let logged = events::take_all();
    assert!(logged[0].fields.contains(r#"lock="Self::key(3, \"x\")""#), "{logged:#?}");
    assert!(logged[0].fields.contains("::labels::move\""), "{logged:#?}");
}

/// The user's own names are not those of the expansion.
#[tokio::test(start_paused = true)]
async fn a_constant_of_the_user_is_not_the_label() {
    const LABEL: u8 = 7;
    #[distributed_lock(key("{}:{LABEL}", LABEL), locker = locks)]
    async fn constant(locks: &Locker) -> Option<u8> {
        Some(LABEL)
    }
    let locks = locker().await;
    events::listen();
    assert_eq!(constant(&locks).await, Some(7));
    assert!(events::take_all()[0].fields.contains("disLock:7:7"));
}
