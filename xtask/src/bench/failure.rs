//! Why a measurement could not be made, in words for the person who started it.

use std::fmt;
use std::io;

#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// For `map_err`: what was being done, then the system's error.
    pub(super) fn during(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
