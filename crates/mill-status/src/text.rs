//! As text for people: at most 100 columns, unless an address is longer.

/// Columns that are aligned.
pub mod columns;

/// What is shown without a wish.
mod overview;

/// The tables that people ask for by name.
pub mod tables;

/// What happens per second.
mod rates;

/// Numbers with their units.
pub mod number;

pub use overview::{line, overview};
pub use rates::rates;
