//! Whether a run that is done ran again, or a ticket was redeemed twice.

use std::collections::BTreeMap;

use super::by_key;
use super::windows::Windows;
use crate::history::{History, Redemption};

/// Each hold that began while its lock was done.
pub(super) fn of_runs(history: &History, windows: &Windows<'_>) -> Vec<String> {
    let holds = by_key(&history.holds, |hold| &hold.key);
    let mut found = Vec::new();
    for done in &history.done {
        let of_key = holds.get(done.key.as_str()).map_or(&[][..], Vec::as_slice);
        let start = of_key.partition_point(|hold| hold.begin <= done.at);
        let again = of_key[start..].iter().take_while(|hold| hold.begin < done.until);
        let again = again.filter(|hold| !windows.harm(done.token, done.at, hold.begin));
        found.extend(again.map(|hold| format!("a run was repeated: {done:?}, then {hold:?}")));
    }
    found
}

/// Each redemption behind another one of the same ticket.
pub(super) fn of_tickets(history: &History, windows: &Windows<'_>) -> Vec<String> {
    let mut last: BTreeMap<(&str, u64), &Redemption> = BTreeMap::new();
    let mut found = Vec::new();
    for redemption in &history.redemptions {
        let former = last.insert((&redemption.key, redemption.token), redemption);
        let former = former.filter(|former| !windows.harm(former.token, former.at, redemption.at));
        found.extend(
            former.map(|former| {
                format!("a ticket was redeemed twice: {former:?}, then {redemption:?}")
            }),
        );
    }
    found
}
