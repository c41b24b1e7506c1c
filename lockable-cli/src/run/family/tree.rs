//! The processes under this one, by what `/proc` says of each process of the machine.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, getpid, set_child_subreaper};

pub(crate) const IS_KNOWN: bool = true;

/// From now on, whatever loses its parent under this process becomes its child.
pub(crate) fn adopt() {
    // Where it is refused, the group is all that is known.
    set_child_subreaper(Some(getpid())).ok();
}

/// The processes under this one, but for those of the group, and those under others.
pub(crate) fn outside(group: Option<Pid>, foreign: &[Pid]) -> Vec<Pid> {
    let (root, group) = (getpid().as_raw_pid(), group.map(Pid::as_raw_pid));
    let foreign = foreign.iter().map(|process| process.as_raw_pid());
    let all: Vec<_> =
        all().into_iter().filter(|it| !foreign.clone().any(|id| id == it.id)).collect();
    let found = under(root, &all).into_iter().filter(|process| Some(process.group) != group);
    found.filter_map(|process| Pid::from_raw(process.id)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?))
        .collect()
}

/// The name before the last `)` may have anything in it.
fn parse(id: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    Some(Process { id, parent, group: fields.next()?.parse().ok()? })
}

/// Those that have `root` above them.
fn under(root: i32, all: &[Process]) -> Vec<Process> {
    let mut family = HashSet::from([root]);
    let mut found = Vec::new();
    loop {
        let is_new =
            |process: &&Process| family.contains(&process.parent) && !family.contains(&process.id);
        let new: Vec<Process> = all.iter().filter(is_new).copied().collect();
        if new.is_empty() {
            return found;
        }
        family.extend(new.iter().map(|process| process.id));
        found.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: i32, parent: i32) -> Process {
        Process { id, parent, group: 1 }
    }

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_confuse() {
        let found = parse(7, "7 (a) b) S 3 5 5 0 -1 4194560");
        assert_eq!(found, Some(Process { id: 7, parent: 3, group: 5 }));
        assert_eq!(parse(7, "7 (a"), None);
    }

    #[test]
    fn a_family_is_all_generations_and_no_one_else() {
        let all = [process(5, 4), process(4, 2), process(2, 1), process(3, 1), process(9, 8)];
        let mut ids: Vec<_> = under(2, &all).iter().map(|process| process.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [4, 5]);
    }

    #[test]
    fn this_process_is_not_of_its_own_family() {
        let id = getpid();
        assert!(all().iter().any(|process| process.id == id.as_raw_pid()));
        assert!(!outside(None, &[]).contains(&id));
    }
}
