//! RFC 9293 3.10.7: a segment arrives.

use crate::arrived::Arrived;
use crate::connection::Connection;
use crate::env::Env;
use crate::segment::Segment;

impl Connection {
    /// A segment of this connection. Its payload stays the caller's; what is to be kept of it is copied.
    pub fn on_segment(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Arrived {
        let _ = (segment, env);
        Arrived::default()
    }
}
