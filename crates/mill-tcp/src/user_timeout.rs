//! How long data may stay unacknowledged before the connection is given up (RFC 5482, the local half: the option is
//! neither sent nor obeyed).

use crate::connection::Connection;
use crate::env::Env;
use crate::time::Duration;

impl Connection {
    pub(crate) fn is_user_timeout_over(&self, env: &Env<'_>) -> bool {
        env.config
            .user_timeout
            .is_some_and(|limit| u128::from(self.stalled_ms(env)) >= limit.as_millis())
    }

    /// The retransmission timer never waits beyond the limit, so that it is kept to the millisecond.
    pub(crate) fn cap_by_user_timeout(&mut self, env: &Env<'_>) {
        let Some(limit) = env.config.user_timeout else {
            return;
        };
        if !self.timer.is_running() {
            return;
        }
        let stalled = Duration::from_millis(u64::from(self.stalled_ms(env)));
        let end = env.tick().after(limit.saturating_sub(stalled));
        self.timer.expire_by(end);
    }
}

#[cfg(test)]
mod tests;
