//! Buffer space that a reader requires.

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;

impl Connection {
    /// The reader waits until `bytes` are unread: the window becomes able to hold them and one more segment, also
    /// beyond what tuning would give. The window is announced at once, because the peer may have stopped.
    pub fn reserve_receive(&mut self, bytes: u32, env: &mut Env<'_>) {
        let _ = env;
        let wanted = bytes
            .saturating_add(u32::from(self.rcv.mss().max(self.snd_mss)))
            .min(RESERVE_MAX);
        if self.rcv.reserve(wanted) && self.state.may_receive() {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// Bytes of the owner's queue that were sent and are not acknowledged; SYN and FIN may be among them.
    pub fn in_flight(&self) -> u32 {
        self.snd.in_flight()
    }
}

/// Bytes; the largest window that can be offered (RFC 7323 2.3).
const RESERVE_MAX: u32 = 1 << 30;
