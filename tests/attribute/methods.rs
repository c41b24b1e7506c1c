//! Methods, async and sync: every form of `self`, in impls and traits.

/// The methods of one kind, and what is asserted of them: `async` or nothing, what is behind a call, and a point where
/// other tasks have their turn.
macro_rules! methods {
    ($kind:ident: [$($async:tt)?] [$($await:tt)*] $pause:expr) => {
        mod $kind {
            use std::fmt::{self, Display};
            use std::pin::{Pin, pin};
            use std::sync::Arc;

            use lockable_runtime::{Locker, distributed_lock};

            use crate::support::{ShopError, hold, is_free, locker_now};

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

            fn service() -> Service {
                Service { id: 7, config: Config { name: "c d".to_owned() }, locks: locker_now() }
            }

            impl Service {
                const REGION: &str = "eu";

                fn name(&self) -> &str {
                    &self.config.name
                }

                $($async)? fn must_hold_itself(&self) {
                    $pause;
                    assert!(!is_free(&self.locks, "service7"));
                }

                #[distributed_lock(
                    key("{}:{}:{self}:{}:{}", self.id, self.config.name, Self::REGION, self.name()),
                    locker = self.locks,
                    guard = lock
                )]
                $($async)? fn key(&self) -> Option<String> {
                    $pause;
                    Some(lock.key().to_string())
                }

                #[distributed_lock(key = "{self}", locker = self.locks)]
                $($async)? fn by_reference(&self) -> Option<&str> {
                    self.must_hold_itself()$($await)*;
                    Some(&self.config.name)
                }

                #[distributed_lock(key = "{self}", locker = &self.locks)]
                $($async)? fn by_mutable_reference(&mut self, more: u8) -> Option<&mut u8> {
                    self.must_hold_itself()$($await)*;
                    self.id += more;
                    Some(&mut self.id)
                }

                #[distributed_lock(key = "{self}", locker = self.locks, on_busy = Some(self.config))]
                $($async)? fn by_value(self) -> Option<Config> {
                    self.must_hold_itself()$($await)*;
                    Some(self.config)
                }

                #[distributed_lock(key = "{self}", locker = self.locks.clone())]
                $($async)? fn by_mutable_value(mut self) -> Option<u8> {
                    self.must_hold_itself()$($await)*;
                    self.id += 1;
                    Some(self.id)
                }

                #[distributed_lock(key = "{self}", locker = self.locks)]
                $($async)? fn by_arc(self: Arc<Self>) -> Option<u8> {
                    self.must_hold_itself()$($await)*;
                    Some(self.id)
                }

                #[distributed_lock(key = "{self}", locker = self.locks)]
                $($async)? fn by_box(self: Box<Self>) -> Option<u8> {
                    self.must_hold_itself()$($await)*;
                    Some(self.id)
                }

                #[distributed_lock(key = "{self}", locker = self.locks)]
                $($async)? fn by_pin(self: Pin<&mut Self>) -> Option<u8> {
                    self.must_hold_itself()$($await)*;
                    Some(self.id)
                }

                #[distributed_lock(key = "{self}", locker = self.locks)]
                $($async)? fn by_mutable_binding(mut self: &Self, other: &Self) -> Option<u8> {
                    self.must_hold_itself()$($await)*;
                    self = other;
                    Some(self.id)
                }

                #[distributed_lock(key = "{id}", locker = locks)]
                $($async)? fn without_self(locks: &Locker, id: u8) -> Option<u8> {
                    assert!(!is_free(locks, "7"));
                    Some(id)
                }
            }

            #[tokio::test(start_paused = true)]
            async fn a_key_reaches_everything_through_self() {
                let key = service().key()$($await)*;
                assert_eq!(key.as_deref(), Some("disLock:7:c%20d:service7:eu:c%20d"));
            }

            #[tokio::test(start_paused = true)]
            async fn every_form_of_self_is_locked() {
                let (mut plain, other) = (service(), service());
                assert_eq!(plain.by_reference()$($await)*, Some("c d"));
                assert_eq!(plain.by_mutable_reference(0)$($await)*, Some(&mut 7));
                assert_eq!(pin!(service()).by_pin()$($await)*, Some(7));
                assert_eq!(plain.by_mutable_binding(&other)$($await)*, Some(7));
                assert!(plain.by_value()$($await)*.is_some_and(|config| config.name == "c d"));
                assert_eq!(other.by_mutable_value()$($await)*, Some(8));
                assert_eq!(Arc::new(service()).by_arc()$($await)*, Some(7));
                assert_eq!(Box::new(service()).by_box()$($await)*, Some(7));
                assert_eq!(Service::without_self(&locker_now(), 7)$($await)*, Some(7));
            }

            #[tokio::test(start_paused = true)]
            async fn a_busy_method_still_has_its_self() {
                let service = service();
                let _other = hold(&service.locks.clone(), "service7").await;
                assert_eq!(service.by_reference()$($await)*, None);
                assert!(service.by_value()$($await)*.is_some_and(|config| config.name == "c d"));
            }

            trait Job {
                fn locks(&self) -> &Locker;

                #[distributed_lock(key("job:{}", self.number()), locker = self.locks())]
                $($async)? fn run(&self) -> Option<u8> {
                    $pause;
                    assert!(!is_free(self.locks(), "job:7"));
                    Some(self.number())
                }

                fn number(&self) -> u8;

                $($async)? fn rename(&mut self, name: &str) -> Result<usize, ShopError>;
            }

            impl Job for Service {
                fn locks(&self) -> &Locker {
                    &self.locks
                }

                fn number(&self) -> u8 {
                    self.id
                }

                #[distributed_lock(key = "rename:{name}", locker = self.locks)]
                $($async)? fn rename(&mut self, name: &str) -> Result<usize, ShopError> {
                    assert!(!is_free(&self.locks, "rename:new"));
                    name.clone_into(&mut self.config.name);
                    Ok(self.config.name.len())
                }
            }

            #[tokio::test(start_paused = true)]
            async fn methods_are_locked_in_traits_and_in_impls() {
                let mut service = service();
                assert_eq!(service.run()$($await)*, Some(7));
                assert!(matches!(service.rename("new")$($await)*, Ok(3)));
                let locks = service.locks.clone();
                let _others = (hold(&locks, "job:7").await, hold(&locks, "rename:new").await);
                assert_eq!(service.run()$($await)*, None);
                assert!(matches!(service.rename("new")$($await)*, Err(ShopError::Lock(_))));
            }

            struct Shelf<T>(T, Locker);

            impl<T: Display + Clone> Shelf<T> {
                #[distributed_lock(key("shelf:{}", self.0), locker = self.1)]
                $($async)? fn take(&self) -> Result<T, ShopError> {
                    assert!(!is_free(&self.1, "shelf:7"));
                    Ok(self.0.clone())
                }
            }

            #[tokio::test(start_paused = true)]
            async fn methods_of_generic_types_are_locked() {
                assert!(matches!(Shelf(7, locker_now()).take()$($await)*, Ok(7)));
            }
        }
    };
}

methods!(asynchronous: [async] [.await] crate::support::pause().await);
methods!(sync: [] [] std::thread::yield_now());
