//! One generation of the configuration, shared by all workers.

use mill_config::config::Config;

/// A configuration that is, or was, in force. A request holds it by `Arc` until it is answered.
#[derive(Debug)]
pub struct Site {
    pub config: Config,
    /// Counts the configurations since the start; 1 is the first.
    pub generation: u64,
}

impl Site {
    pub const fn new(config: Config, generation: u64) -> Self {
        Self { config, generation }
    }
}
