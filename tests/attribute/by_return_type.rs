//! What becomes of a call in the middle of its body, as each return type says it.

use lockable_runtime::LockError;

use crate::support::ShopError;

/// Calls functions of four return types with these options and this body.
macro_rules! by_return_type {
    (async $locks:expr, [$($option:tt)*] $body:expr) => {{
        #[distributed_lock(key = "k", locker = locks, on_busy = String::new(),
            on_error = |error| error.to_string(), $($option)*)]
        fn answered(locks: &Locker) -> crate::support::BoxFuture<'_, String> {
            Box::pin(async move {
                $body;
                "finished".to_owned()
            })
        }
        by_return_type!([async] [.await] $locks, [$($option)*] $body)
    }};
    (sync $locks:expr, [$($option:tt)*] $body:expr) => {{
        #[distributed_lock(key = "k", locker = locks, on_busy = String::new(),
            on_error = |error| error.to_string(), $($option)*)]
        fn answered(locks: &Locker) -> String {
            $body;
            "finished".to_owned()
        }
        by_return_type!([] [] $locks, [$($option)*] $body)
    }};
    ([$($async:tt)?] [$($await:tt)*] $locks:expr, [$($option:tt)*] $body:expr) => {{
        #[distributed_lock(key = "k", locker = locks, $($option)*)]
        $($async)? fn unit(locks: &Locker) {
            $body;
        }
        #[distributed_lock(key = "k", locker = locks, $($option)*)]
        $($async)? fn option(locks: &Locker) -> Option<u8> {
            $body;
            Some(7)
        }
        #[distributed_lock(key = "k", locker = locks, $($option)*)]
        $($async)? fn result(locks: &Locker) -> Result<u8, crate::support::ShopError> {
            $body;
            Ok(7)
        }
        let locks: &Locker = $locks;
        crate::events::listen();
        unit(locks)$($await)*;
        let of_unit = crate::events::count_errors(&["disLock:k"]);
        let option = option(locks)$($await)*;
        let of_option = crate::events::count_errors(&["disLock:k"]);
        let result = result(locks)$($await)*;
        let of_result = crate::events::count_errors(&["disLock:k"]);
        let answered = answered(locks)$($await)*;
        let errors = [of_unit, of_option, of_result, crate::events::count_errors(&["disLock:k"])];
        assert!(crate::support::is_free(locks, "k"));
        crate::by_return_type::Outcomes { option, result, answered, errors }
    }};
}
pub(crate) use by_return_type;

/// What the calls gave; that of `()` is only seen in the log.
pub(crate) struct Outcomes {
    pub(crate) option: Option<u8>,
    pub(crate) result: Result<u8, ShopError>,
    /// The text of the error, where the body has not finished.
    pub(crate) answered: String,
    /// How many events at error level each of the four calls has logged.
    pub(crate) errors: [usize; 4],
}

impl Outcomes {
    /// The error of the calls, which is logged where the return type has no place for it. A completion after the loss is
    /// always logged.
    pub(crate) fn error(self) -> LockError {
        let Err(ShopError::Lock(error)) = self.result else { panic!("{:?}", self.result) };
        assert_eq!((self.option, self.answered), (None, error.to_string()));
        let completed = usize::from(error.is_body_finished());
        assert_eq!(self.errors, [completed + 1, completed + 1, completed, completed]);
        assert_eq!(error.key(), Some("disLock:k"));
        error
    }

    /// The calls gave the values of their bodies, and as many events at error level as that.
    pub(crate) fn assert_finished(self, errors: usize) {
        assert_eq!((self.option, &*self.answered), (Some(7), "finished"));
        assert!(matches!(self.result, Ok(7)), "{:?}", self.result);
        assert_eq!(self.errors, [errors; 4]);
    }
}
