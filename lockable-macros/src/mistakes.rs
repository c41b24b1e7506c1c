//! The mistakes of one attribute, all reported at once.

use std::fmt::Display;

use proc_macro2::Span;
use syn::{Error, Result};

#[derive(Default)]
pub(crate) struct Mistakes(Option<Error>);

impl Mistakes {
    /// The message is a line, then lines that start with `help: `.
    pub(crate) fn add(&mut self, span: Span, message: impl Display) {
        self.push(Error::new(span, message));
    }

    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value if there was no mistake.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T> {
        match (self.0, value) {
            (None, Some(value)) => Ok(value),
            (Some(all), _) => Err(all),
            (None, None) => Err(Error::new(Span::call_site(), "the attribute is incomplete")),
        }
    }
}
