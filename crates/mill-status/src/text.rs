//! As text for people: at most 100 columns, unless an address is longer.

/// Columns that are aligned.
pub mod columns;

/// The default view.
mod overview;

/// The tables that are requested by name.
pub mod tables;

/// Groups of servers.
mod upstreams;

/// Rates per second.
mod rates;

/// Numbers with their units.
pub mod number;

/// Blocked addresses.
mod blocks;

/// Caches of answers.
mod caches;

/// Certificates of servers.
mod certificates;
/// What limits have counted.
mod limits;

/// What was counted under a `status_zone`.
mod zones;

pub use blocks::blocks;
pub use caches::caches;
pub use certificates::certificates;
pub use overview::{line, overview};
pub use rates::rates;
pub use upstreams::upstreams;
pub use zones::zones;
