/// Whether a character changes nothing but its own place: control characters move the cursor of a terminal, others the
/// direction of the text around them, and some cannot be seen.
///
/// The list is that of the standard library, which has all characters of the categories Cc and Cf.
pub(crate) fn is_shown(c: char) -> bool {
    // Behind another one, a combining character is no reason to escape it.
    let pair = String::from_iter(['x', c]);
    matches!(c, '\\' | '"' | '\'') || pair.escape_debug().count() == 2
}

pub(crate) fn escaped(text: &str) -> String {
    let written =
        |c: char| if is_shown(c) { c.to_string() } else { c.escape_default().to_string() };
    text.chars().map(written).collect()
}
