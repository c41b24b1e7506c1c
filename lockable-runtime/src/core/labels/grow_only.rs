use once_cell::race::OnceBox;

/// A list that starts empty, in a `static`, and only grows.
///
/// No call here waits for another thread: in a forked child that thread may not exist. A search follows the list from
/// its start: it is for few values, and those that are often searched are found first.
pub(crate) struct GrowOnly<T>(OnceBox<Node<T>>);

struct Node<T> {
    value: T,
    rest: GrowOnly<T>,
}

impl<T> GrowOnly<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceBox::new())
    }

    /// The first wanted value; adds one at the end if there is none.
    pub(crate) fn find_or_add(&self, is_wanted: impl Fn(&T) -> bool, make: impl Fn() -> T) -> &T {
        let mut list = self;
        loop {
            // Another thread may add its own here first; then this one looks at that, and continues.
            let entry =
                list.0.get_or_init(|| Box::new(Node { value: make(), rest: GrowOnly::new() }));
            if is_wanted(&entry.value) {
                return &entry.value;
            }
            list = &entry.rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_value_is_added_once() {
        let list = GrowOnly::new();
        let find =
            |wanted: usize| std::ptr::from_ref(list.find_or_add(|v| *v == wanted, || wanted));
        let (first, second) = (find(1), find(2));
        assert_ne!(first, second);
        assert_eq!((find(1), find(2)), (first, second));
    }

    /// Goal: threads that add at the same time find the same values. Method: each compares the addresses that it was
    /// given with those of a later look.
    #[test]
    fn threads_add_each_value_once() {
        let list = GrowOnly::new();
        let address = |wanted: usize| {
            std::ptr::from_ref(list.find_or_add(|v| *v == wanted, || wanted)).addr()
        };
        let found: Vec<Vec<usize>> = thread::scope(|scope| {
            let look = || (0..100).map(address).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let expected: Vec<_> = (0..100).map(address).collect();
        assert!(found.iter().all(|addresses| *addresses == expected));
    }
}
