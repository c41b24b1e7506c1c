//! With what each text of `--help` begins and ends.

/// Two command lines to copy.
pub(super) fn examples([first, second]: [&str; 2]) -> String {
    format!("Examples:\n  {first}\n  {second}")
}

/// These words, and where to read more.
pub(super) fn guide(words: &str, page: &str) -> String {
    let gap = if words.is_empty() { "" } else { "\n\n" };
    format!(
        "{words}{gap}Guide: https://docs.rs/lockable-runtime/latest/lockable_runtime/guide/{page}index.html"
    )
}
