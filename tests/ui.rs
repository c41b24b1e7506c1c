//! What the compiler says to somebody who made a mistake with the attribute.
//!
//! The functions without mistakes are in `ui/pass`; the crates `ui/edition-2021` and
//! `ui/edition-2024` compile them, this test package depends on both, and clippy looks at them.

#[test]
fn every_mistake_is_explained_where_it_was_made() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}
