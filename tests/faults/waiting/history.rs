//! What processes print of their beliefs in a lock.

use std::collections::BTreeMap;

/// Who believed in the lock, by fencing token: from when to when.
#[derive(Debug, Default)]
pub(crate) struct History(BTreeMap<u64, (u64, u64)>);

impl History {
    /// Lines of `TOKEN TIME`; the last one of a killed process may be cut off.
    pub(crate) fn note(&mut self, lines: &[String]) {
        for line in lines {
            let Some((token, time)) = line.split_once(' ') else { continue };
            let (token, time): (u64, u64) = (token.parse().unwrap(), time.parse().unwrap());
            let (first, last) = self.0.entry(token).or_insert((time, time));
            (*first, *last) = (time.min(*first), time.max(*last));
        }
    }

    /// In the order of the tokens, each holder begins after the one before has ended; how many there were.
    pub(crate) fn checked(&self) -> usize {
        let holds: Vec<_> = self.0.iter().collect();
        for pair in holds.windows(2) {
            let ((former, (_, end)), (token, (begin, _))) = (pair[0], pair[1]);
            assert!(begin > end, "{token} began {} ns before {former} ended", end - begin);
        }
        holds.len()
    }
}
