//! Functions that the test harness calls, or `main`.

use lockable_runtime::distributed_lock;

use crate::{body, granted, here};

#[tokio::test]
#[distributed_lock(key = "k", locker = here())]
async fn tokio_above() {
    body();
}

#[distributed_lock(key = "k", locker = here())]
#[tokio::test]
async fn tokio_below() {
    body();
}

#[rstest::rstest]
#[case(7)]
#[distributed_lock(key = "k", locker = here())]
fn rstest_above(#[case] id: u8) {
    assert_eq!(body(), Some(id));
}

#[distributed_lock(key = "k", locker = here())]
#[rstest::rstest]
#[case(7)]
fn rstest_below(#[case] id: u8) {
    assert_eq!(body(), Some(id));
}

#[test_case::test_case(7)]
#[distributed_lock(key = "k", locker = here())]
fn test_case_above(id: u8) {
    assert_eq!(body(), Some(id));
}

#[distributed_lock(key = "k", locker = here())]
#[test_case::test_case(7)]
fn test_case_below(id: u8) {
    assert_eq!(body(), Some(id));
}

#[test]
#[serial_test::serial]
#[distributed_lock(key = "k", locker = here())]
fn serial_above() {
    body();
}

#[distributed_lock(key = "k", locker = here())]
#[test]
#[serial_test::serial]
fn serial_below() {
    body();
}

#[test_log::test]
#[distributed_lock(key = "k", locker = here())]
fn test_log_above() {
    body();
}

#[distributed_lock(key = "k", locker = here())]
#[test_log::test]
fn test_log_below() {
    body();
}

#[tokio::main(flavor = "current_thread")]
#[distributed_lock(key = "k", locker = here())]
async fn main_above() -> Option<u8> {
    body()
}

#[distributed_lock(key = "k", locker = here())]
#[tokio::main(flavor = "current_thread")]
async fn main_below() -> Option<u8> {
    body()
}

#[test]
fn main_above_is_locked() {
    assert_eq!((main_above(), granted()), (Some(7), 1));
}

#[test]
fn main_below_is_locked() {
    assert_eq!((main_below(), granted()), (Some(7), 1));
}
