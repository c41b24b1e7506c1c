//! A number of this process that none of its ancestors had: one load, and no system call.
//!
//! The number is in a page that every kind of fork clears, also `_Fork` and a raw `clone`, which run no handler, and
//! those whose child has its parent's process id. If the system has no such page, the number is the process id.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceRef;

pub(crate) fn current() -> u64 {
    // Threads that come first together may map a page each. All use the first; the others stay unused.
    static WORD: OnceRef<'static, AtomicU64> = OnceRef::new();
    let word = WORD.get_or_init(|| map().unwrap_or(&NOT_MAPPED));
    match word.load(Ordering::Acquire) {
        0 => begin(word),
        number => number,
    }
}

/// The number of a process whose word is zero: the next one of a count that a child continues.
///
/// Nothing here waits for another thread, which may not exist in a child.
/// 1. Two threads of a new process draw two numbers. The exchange stores one of them, and both return that.
/// 2. A fork between draw and exchange: the number was stored nowhere, and the child draws a later one.
/// 3. A fork after the exchange: a process that knows the stored number also has the count that includes it, so the
///    child and its children draw later ones. Siblings may have the same number: they share no memory.
fn begin(word: &AtomicU64) -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if ptr::eq(word, &raw const NOT_MAPPED) {
        return process::id().into();
    }
    let drawn = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let first = word.compare_exchange(0, drawn, Ordering::AcqRel, Ordering::Acquire);
    first.map_or_else(|first| first, |_| drawn)
}

/// In place of the word if the system clears none; it stays zero.
static NOT_MAPPED: AtomicU64 = AtomicU64::new(0);

/// A word, zero now and in every child, in a page that stays mapped; `None` if the system refuses it.
#[cfg(all(feature = "redis", any(target_os = "linux", target_os = "android")))]
#[expect(unsafe_code, reason = "no safe function maps memory that a fork clears")]
fn map() -> Option<&'static AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    let (size, access) = (size_of::<AtomicU64>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: the system chooses an address where nothing was, at the start of a page, so it is aligned.
    // The page is never unmapped, nothing else knows it, and neither advice changes it in this process.
    unsafe {
        let page = mmap_anonymous(ptr::null_mut(), size, access, MapFlags::PRIVATE).ok()?;
        // Linux refuses this for memory without a file. An emulator that accepts it ignores all advice.
        let ignores_advice = madvise(page, size, Advice::LinuxRemove).is_ok();
        madvise(page, size, Advice::LinuxWipeOnFork).ok()?;
        (!ignores_advice).then(|| AtomicU64::from_ptr(page.cast()))
    }
}

#[cfg(not(all(feature = "redis", any(target_os = "linux", target_os = "android"))))]
fn map() -> Option<&'static AtomicU64> {
    None
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_process_keeps_its_number() {
        assert_ne!(current(), 0);
        assert_eq!(current(), current());
    }

    /// Otherwise all works, but by a system call each time.
    #[cfg(all(feature = "redis", target_os = "linux"))]
    #[test]
    fn the_system_has_a_page_that_a_fork_clears() {
        assert!(map().is_some_and(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn threads_of_a_new_process_agree() {
        let word = AtomicU64::new(0);
        let [one, other] = thread::scope(|scope| {
            let threads = [0; 2].map(|_| scope.spawn(|| begin(&word)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!([one, other], [word.into_inner(); 2]);
    }

    #[test]
    fn a_cleared_word_gets_a_number_that_no_ancestor_had() {
        let word = AtomicU64::new(0);
        let parent = begin(&word);
        word.store(0, Ordering::Relaxed);
        let child = begin(&word);
        word.store(0, Ordering::Relaxed);
        assert!(parent < child && child < begin(&word));
    }

    #[test]
    fn without_a_page_the_number_is_the_process_id() {
        assert_eq!(begin(&NOT_MAPPED), u64::from(process::id()));
        assert_eq!(NOT_MAPPED.load(Ordering::Relaxed), 0);
    }
}
