//! A timer expires.

use crate::arrived::Events;
use crate::connection::Connection;
use crate::env::Env;

impl Connection {
    /// Does what is due at `env.now`; nothing if nothing is. Afterwards `next_segment` is to be asked.
    pub fn on_timer(&mut self, env: &mut Env<'_>) -> Events {
        let _ = env;
        Events::default()
    }
}
