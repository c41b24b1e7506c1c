//! What the compiler says in a crate that does not depend on the runtime, and what the documentation says about that.

use std::fs;
use std::path::Path;

#[test]
fn a_missing_runtime_is_reported_once_at_the_attribute() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

/// A search for the compiler's words finds the option that helps.
#[test]
fn the_documentation_quotes_the_words_for_a_missing_runtime() {
    let said = file("fail/missing_runtime.stderr");
    let docs = file("../../../lockable-runtime/src/lib.rs");
    for words in ["unresolved import `lockable_runtime`", "in the list of imported crates"] {
        assert!(said.contains(words) && docs.contains(words), "{words}");
    }
}

#[test]
fn the_guide_shows_the_lines_of_the_other_crate() {
    let front = file("../front/lib.rs");
    let (_, lines) = front.split_once("\n\n").unwrap();
    assert!(file("../../../lockable-runtime/guide/faq.md").contains(lines), "{lines}");
}

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}
