//! Congestion avoidance as in RFC 5681 3.1.

use crate::connection::{Cold, Connection};

impl Connection {
    /// A segment more for each window that is acknowledged, byte by byte.
    pub(super) fn grow_as_reno(&mut self, cold: &mut Cold, acked: u32) {
        let mss = u32::from(self.snd_mss);
        self.grow_by_share(cold, mss, acked);
    }
}
