//! A crate that knows the runtime by another name only.
#![deny(warnings)]
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate, reason = "nobody calls them")]

pub mod by_macro {
    //! `locked!` of the other crate.

    pub struct Till(u64);

    impl Till {
        front::locked! { (key("till:{}", self.0), expire = 10, on_busy = skip)
            /// Docs.
            pub async fn settle(&self) -> Result<(), front::LockError> {
                Ok(())
            }
        }
    }

    front::locked! { (key = "order:{id}")
        #[inline]
        pub fn settle(id: u64) -> Option<u64> {
            Some(id)
        }
    }
}

pub mod by_option {
    //! The option `crate`.

    #[front::distributed_lock(key = "order:{id}", crate = ::front)]
    pub async fn settle(id: u64) -> Option<u64> {
        Some(id)
    }
}
