//! One generation of the configuration, shared by all workers.

use crate::variables::mention::Mentions;
use mill_config::config::Config;

/// A configuration that is, or was, in force. A request holds it by `Arc` until it is answered.
#[derive(Debug)]
pub struct Site {
    pub config: Config,
    /// Counts the configurations since the start; 1 is the first.
    pub generation: u64,
    /// Variables whose values are costly.
    pub mentions: Mentions,
}

impl Site {
    pub fn new(config: Config, generation: u64) -> Self {
        let mentions = Mentions::of(&config);
        Self {
            config,
            generation,
            mentions,
        }
    }
}
