//! What the benches share: a Redis server of their own, cores kept awake, and numbers compared as
//! ratios.
//!
//! The machines that these run on drift, so an absolute figure proves nothing: every contender runs
//! a short round in turn, and what counts is the median of the ratios within one turn.

mod awake;
mod clock;
mod leash;
mod server;
pub mod worker;

pub use awake::AwakeCores;
pub use clock::monotonic;
pub use leash::Leash;
pub use server::Server;

/// The middle one of some numbers, or what is midway between the middle two.
#[must_use]
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 {
        numbers[middle]
    } else {
        numbers[middle - 1].midpoint(numbers[middle])
    }
}

/// A number for a table, with three significant digits.
#[must_use]
pub fn three_digits(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}
