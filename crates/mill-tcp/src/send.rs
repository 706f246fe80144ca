//! Data: new, lost, or to probe with.
