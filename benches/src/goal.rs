//! What a result has to reach.

use std::fmt;

use crate::three_digits;

/// The bound of a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

impl Bound {
    /// A result, and whether it reaches the goal.
    #[must_use]
    pub fn verdict(self, result: f64) -> String {
        let is_reached = match self {
            Self::AtLeast(least) => result >= least,
            Self::AtMost(most) => result <= most,
        };
        let verdict = if is_reached { "pass" } else { "**miss**" };
        format!("{}, {verdict}", three_digits(result))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(formatter, "at least {least}"),
            Self::AtMost(most) => write!(formatter, "at most {most}"),
        }
    }
}
