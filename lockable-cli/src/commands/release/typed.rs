//! The command line that was typed, with one more option: it is offered to be copied.

use std::env;

use lockable_runtime::admin::HolderId;

use crate::output::shell::quoted;

/// What was typed, with what takes the lock away.
pub(super) fn forced(id: HolderId) -> String {
    forced_as_typed(&typed(), id)
}

fn forced_as_typed(typed: &[String], id: HolderId) -> String {
    let (mut options, key) = in_parts(typed, "--force");
    if !options.iter().any(|word| word == "--id" || word.starts_with("--id=")) {
        options.extend(["--id".to_owned(), id.to_string()]);
    }
    line(options, "--force", key)
}

/// What was typed, with what confirms it.
pub(super) fn confirmed() -> String {
    let (options, key) = in_parts(&typed(), "--yes");
    line(options, "--yes", key)
}

/// A path may be no text; then it has to be typed again.
fn typed() -> Vec<String> {
    env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The words without this option, up to `--`, behind which there is the key alone.
fn in_parts(typed: &[String], option: &str) -> (Vec<String>, Vec<String>) {
    let is_option = |word: &&String| *word != "--";
    let (options, key) = typed.split_at(typed.iter().take_while(is_option).count());
    let options = options.iter().filter(|word| *word != option);
    (options.cloned().collect(), key.to_vec())
}

fn line(options: Vec<String>, option: &str, key: Vec<String>) -> String {
    let words = ["lockable".to_owned()].into_iter().chain(options).chain([option.to_owned()]);
    words.chain(key).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_offered_with_force() {
        let offered = |typed: &str| {
            let typed: Vec<_> = typed.split(' ').map(str::to_owned).collect();
            forced_as_typed(&typed, "3fa91c02".parse().unwrap())
        };
        let plain = "lockable release order:7 --id 3fa91c02 --force";
        assert_eq!(offered("release order:7"), plain);
        assert_eq!(offered("release order:7 --force --id 3fa91c02"), plain);
        let as_typed = "lockable release order:7 --id=3fa91c02 --force";
        assert_eq!(offered("release order:7 --id=3fa91c02"), as_typed);
        assert_eq!(offered("release -- -k"), "lockable release --id 3fa91c02 --force -- -k");
    }
}
