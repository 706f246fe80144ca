//! What /proc says while a load runs, at each interval; afterwards cut to the steady part.

use crate::topology::Ground;
use mill_lab::record::Figures;
use std::io;
use std::time::Duration;

/// Whom to look at.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The server's first process; its descendants are found at each interval.
    pub server: Option<u32>,
    /// First processes of clients.
    pub clients: Vec<u32>,
    pub ground: Ground,
    pub interval: Duration,
    pub link_mbit: Option<f64>,
}

/// A running observer, on a thread of its own.
#[derive(Debug)]
pub struct Monitor {}

/// What it saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {}

impl Monitor {
    pub fn start(watched: Watched) -> io::Result<Self> {
        let _ = watched;
        Ok(Self {})
    }

    pub fn stop(self) -> Observed {
        Observed {}
    }
}

impl Observed {
    /// One line an interval.
    pub fn csv(&self) -> String {
        String::new()
    }

    /// Figures of the part from `ramp` after the first to `ramp` before the last interval; and what was absent, with the reason.
    pub fn steady(&self, ramp: Duration) -> (Figures, Vec<(String, String)>) {
        let _ = ramp;
        (Figures::new(), Vec::new())
    }
}
