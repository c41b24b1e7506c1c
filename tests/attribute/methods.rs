//! Methods: every form of `self`, in impls and traits.

use std::fmt::{self, Display};
use std::pin::{Pin, pin};
use std::sync::Arc;

use lockable_runtime::{Locker, distributed_lock};

use crate::support::{ShopError, hold, is_free, locker, pause};

struct Config {
    name: String,
}

struct Service {
    id: u8,
    config: Config,
    locks: Locker,
}

impl Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service{}", self.id)
    }
}

async fn service() -> Service {
    Service { id: 7, config: Config { name: "c d".to_owned() }, locks: locker().await }
}

impl Service {
    const REGION: &str = "eu";

    fn name(&self) -> &str {
        &self.config.name
    }

    async fn must_hold_itself(&self) {
        pause().await;
        assert!(!is_free(&self.locks, "service7").await);
    }

    #[distributed_lock(
        key("{}:{}:{self}:{}:{}", self.id, self.config.name, Self::REGION, self.name()),
        locker = self.locks,
        guard = lock
    )]
    async fn key(&self) -> Option<String> {
        pause().await;
        Some(lock.key().to_string())
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    async fn by_reference(&self) -> Option<u8> {
        self.must_hold_itself().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = &self.locks)]
    async fn by_mutable_reference(&mut self, more: u8) -> Option<u8> {
        self.must_hold_itself().await;
        self.id += more;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks, on_busy = Some(self.id))]
    async fn by_value(self) -> Option<u8> {
        self.must_hold_itself().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks.clone())]
    async fn by_mutable_value(mut self) -> Option<u8> {
        self.must_hold_itself().await;
        self.id += 1;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    async fn by_arc(self: Arc<Self>) -> Option<u8> {
        self.must_hold_itself().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    async fn by_box(self: Box<Self>) -> Option<u8> {
        self.must_hold_itself().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    async fn by_pin(self: Pin<&mut Self>) -> Option<u8> {
        self.must_hold_itself().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks)]
    async fn by_mutable_binding(mut self: &Self, other: &Self) -> Option<u8> {
        self.must_hold_itself().await;
        self = other;
        Some(self.id)
    }

    #[distributed_lock(key = "{id}", locker = locks)]
    async fn without_self(locks: &Locker, id: u8) -> Option<u8> {
        assert!(!is_free(locks, "7").await);
        Some(id)
    }
}

#[tokio::test]
async fn a_key_reaches_everything_through_self() {
    let key = service().await.key().await;
    assert_eq!(key.as_deref(), Some("disLock:7:c%20d:service7:eu:c%20d"));
}

#[tokio::test]
async fn every_form_of_self_is_locked() {
    let (mut plain, other) = (service().await, service().await);
    assert_eq!(plain.by_reference().await, Some(7));
    assert_eq!(plain.by_mutable_reference(0).await, Some(7));
    assert_eq!(pin!(service().await).by_pin().await, Some(7));
    assert_eq!(plain.by_mutable_binding(&other).await, Some(7));
    assert_eq!(plain.by_value().await, Some(7));
    assert_eq!(other.by_mutable_value().await, Some(8));
    assert_eq!(Arc::new(service().await).by_arc().await, Some(7));
    assert_eq!(Box::new(service().await).by_box().await, Some(7));
    assert_eq!(Service::without_self(&locker().await, 7).await, Some(7));
}

#[tokio::test]
async fn a_busy_method_still_has_its_self() {
    let service = service().await;
    let locks = service.locks.clone();
    let _other = hold(&locks, "service7").await;
    assert_eq!(service.by_reference().await, None);
    assert_eq!(service.by_value().await, Some(7));
}

trait Job {
    fn locks(&self) -> &Locker;

    #[distributed_lock(key("job:{}", self.number()), locker = self.locks())]
    async fn run(&self) -> Option<u8> {
        pause().await;
        assert!(!is_free(self.locks(), "job:7").await);
        Some(self.number())
    }

    fn number(&self) -> u8;

    async fn rename(&mut self, name: &str) -> Result<usize, ShopError>;
}

impl Job for Service {
    fn locks(&self) -> &Locker {
        &self.locks
    }

    fn number(&self) -> u8 {
        self.id
    }

    #[distributed_lock(key = "rename:{name}", locker = self.locks)]
    async fn rename(&mut self, name: &str) -> Result<usize, ShopError> {
        assert!(!is_free(&self.locks, "rename:new").await);
        name.clone_into(&mut self.config.name);
        Ok(self.config.name.len())
    }
}

#[tokio::test]
async fn methods_are_locked_in_traits_and_in_impls() {
    let mut service = service().await;
    assert_eq!(service.run().await, Some(7));
    assert!(matches!(service.rename("new").await, Ok(3)));
    let locks = service.locks.clone();
    let _others = (hold(&locks, "job:7").await, hold(&locks, "rename:new").await);
    assert_eq!(service.run().await, None);
    assert!(matches!(service.rename("new").await, Err(ShopError::Lock(_))));
}

struct Shelf<T>(T, Locker);

impl<T: Display + Clone> Shelf<T> {
    #[distributed_lock(key("shelf:{}", self.0), locker = self.1)]
    async fn take(&self) -> Result<T, ShopError> {
        assert!(!is_free(&self.1, "shelf:7").await);
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn methods_of_generic_types_are_locked() {
    assert!(matches!(Shelf(7, locker().await).take().await, Ok(7)));
}
