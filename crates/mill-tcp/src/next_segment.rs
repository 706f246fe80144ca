//! What to send now.

use crate::connection::Connection;
use crate::env::Env;
use crate::segment::SegmentOut;

impl Connection {
    /// The next segment to send, or `None`. `queued` is how many bytes the owner's queue holds, the unacknowledged
    /// ones at its front included. To be called until it gives `None`, or until the device has no room: what is
    /// given counts as sent.
    pub fn next_segment(&mut self, queued: u64, env: &mut Env<'_>) -> Option<SegmentOut> {
        let _ = (queued, env);
        None
    }
}
