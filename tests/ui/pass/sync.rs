//! Sync functions.

use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use lockable_runtime::{LockError, Locker, distributed_lock};

#[distributed_lock(key = "k")]
pub fn unit() {}

#[distributed_lock(key = "k")]
pub fn empty_with_a_parameter(_: u8) {}

#[distributed_lock(key = "k:{id}", expire = 10, guard = lock)]
pub fn uses_its_guard(id: u64) -> Option<u64> {
    Some(id + u64::from(lock.fencing_token()))
}

#[distributed_lock(key = "k:{id}")]
pub fn everything(id: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let closure = |number| {
        if number > 3 {
            return 1;
        }
        number
    };
    let labelled = 'block: {
        if id > 2 {
            break 'block 1;
        }
        2
    };
    'outer: for i in 0..id {
        for _ in 0..2 {
            if i > 1 {
                continue 'outer;
            }
        }
    }
    let Some(next) = id.checked_add(1).filter(|next| *next < 100) else {
        return Ok(0);
    };
    let parsed: u64 = "7".parse()?;
    Ok(closure(next) + labelled + parsed)
}

#[distributed_lock(key = "k")]
#[allow(clippy::needless_return, reason = "this is the shape")]
pub fn ends_in_return() -> Option<u64> {
    return Some(4);
}

#[distributed_lock(key = "k")]
pub fn panics() -> Option<u8> {
    panic!("on purpose")
}

#[distributed_lock(key = "k", on_busy = 1, on_error = |_| 2)]
pub fn panics_instead_of_a_number() -> u8 {
    panic!("on purpose")
}

#[distributed_lock(key = "k")]
pub fn forever() {
    loop {
        std::thread::yield_now();
    }
}

#[distributed_lock(key = "k", on_busy = panic!("busy"), on_error = |_| panic!("no lock"))]
pub fn never() -> ! {
    loop {
        std::thread::yield_now();
    }
}

#[distributed_lock(key = "k:{t}:{u}")]
pub fn bounds<'a, 'b: 'a, T: Display + Clone, U>(t: &'a T, u: &'b U) -> Option<T>
where
    U: Display + ?Sized,
    for<'x> &'x T: Sized,
{
    let _ = u;
    Some(t.clone())
}

#[distributed_lock(key = "k:{text}")]
pub fn borrows<'a>(text: &'a str, log: &mut String, bytes: &[u8]) -> Option<&'a str> {
    log.push_str(text);
    text.get(..bytes.len())
}

#[distributed_lock(key = "k:{a}:{b}")]
pub fn patterns((a, b): (u8, u8), [first, .., last]: [u8; 3], mut more: Vec<u8>) -> Option<usize> {
    more.extend([a, b, first, last]);
    Some(more.len())
}

#[distributed_lock(key = "k")]
pub fn hidden(limit: u8) -> Option<impl Debug> {
    Some(0..limit)
}

#[distributed_lock(key = "k", on_busy = 0, on_error = |_| 1)]
pub fn hidden_alone() -> impl Display {
    3
}

#[distributed_lock(key = "k", on_busy = Vec::new(), on_error = |_| Vec::new())]
pub fn collected(limit: u8) -> Vec<u8> {
    (0..limit).collect()
}

#[distributed_lock(key = "k", on_busy = value, on_error = |_| unreachable!())]
pub fn anything<T>(value: T) -> T {
    value
}

#[distributed_lock(key = "k", on_busy = skip)]
pub fn skips() -> Result<(), LockError> {
    Ok(())
}

/// # Safety
/// There is nothing to keep in mind.
#[distributed_lock(key = "k")]
#[allow(unsafe_op_in_unsafe_fn)]
pub unsafe fn is_unsafe(pointer: *const u8) -> Option<u8> {
    Some(*pointer)
}

#[distributed_lock(key = "k:{id}")]
pub extern "C" fn has_an_abi(id: u32) {
    let _ = id;
}

#[distributed_lock(key = "k")]
pub fn keeps_it_local(text: &Rc<str>) -> Option<Rc<str>> {
    Some(Rc::clone(text))
}

pub struct Service<T> {
    id: u64,
    locks: Locker,
    kind: PhantomData<T>,
}

impl<T: Default> Service<T> {
    #[distributed_lock(key("{}", self.id), locker = self.locks)]
    pub fn by_reference(&self) -> Option<T> {
        Some(T::default())
    }

    #[distributed_lock(key("{}", self.id), locker = self.locks)]
    pub fn by_mutable_reference(&mut self) -> Option<&mut u64> {
        self.id += 1;
        Some(&mut self.id)
    }

    #[distributed_lock(key("{}", self.id), locker = self.locks)]
    pub fn by_value(mut self) -> Option<Self> {
        self.id += 1;
        Some(self)
    }

    #[distributed_lock(key("{}", self.id), locker = self.locks)]
    pub fn by_arc(self: Arc<Self>) -> Option<u64> {
        Some(self.id)
    }

    #[distributed_lock(key = "{id}")]
    pub fn without_self(id: u8) -> Option<u8> {
        Some(id)
    }
}

pub trait Job {
    #[distributed_lock(key = "k")]
    fn run(&self) -> Option<u8> {
        self.number()
    }

    fn number(&self) -> Option<u8>;
}

impl<T> Job for Service<T> {
    #[distributed_lock(key = "k")]
    fn number(&self) -> Option<u8> {
        u8::try_from(self.id).ok()
    }
}
