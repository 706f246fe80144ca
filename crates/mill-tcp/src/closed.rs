//! Segments for which there is no connection (RFC 9293 3.10.7.1).

use crate::segment::{Segment, SegmentOut};
use mill_wire::tcp::Flags;

/// The RST that answers a segment for which there is no connection, nor a listener that would have it; `None` if it
/// is an RST itself (RFC 9293 3.5.2, group 1).
pub fn reset_for(segment: &Segment<'_>) -> Option<SegmentOut> {
    if segment.flags.has(Flags::RST) {
        return None;
    }
    let answer = if segment.flags.has(Flags::ACK) {
        SegmentOut {
            seq: segment.ack,
            flags: Flags::RST,
            ..SegmentOut::default()
        }
    } else {
        SegmentOut {
            ack: segment.seq + segment.len(),
            flags: Flags::RST | Flags::ACK,
            ..SegmentOut::default()
        }
    };
    Some(answer)
}
