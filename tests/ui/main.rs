//! What the compiler says to somebody who made a mistake with the attribute.
//!
//! The functions without mistakes are in `pass`: the packages there and in `edition-2021` compile them, and clippy looks
//! at them.

#[test]
fn every_mistake_is_explained_where_it_was_made() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
