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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Ecn;
    use mill_wire::seq::SeqNumber;
    use mill_wire::tcp_option::TcpOptions;

    fn check(flags: Flags, payload: &[u8], expected: Option<(u32, u32, Flags)>) {
        let segment = Segment {
            seq: SeqNumber(u32::MAX),
            ack: SeqNumber(70),
            flags,
            window: 5,
            urgent: 0,
            options: &TcpOptions::default(),
            payload,
            ecn: Ecn::NotCapable,
            merged: 1,
        };
        let answer = reset_for(&segment).map(|reset| (reset.seq.0, reset.ack.0, reset.flags));
        assert_eq!(answer, expected, "{flags:?}");
    }

    /// RFC 9293 3.5.2, group 1: next in order for the peer, so that it believes it.
    #[test]
    fn a_segment_without_connection_gets_a_reset_and_a_reset_gets_nothing() {
        let answers = Flags::RST | Flags::ACK;
        check(Flags::SYN, b"", Some((0, 0, answers)));
        check(Flags::SYN | Flags::FIN, b"abc", Some((0, 4, answers)));
        check(Flags::default(), b"abc", Some((0, 2, answers)));
        check(Flags::ACK, b"abc", Some((70, 0, Flags::RST)));
        check(Flags::SYN | Flags::ACK, b"", Some((70, 0, Flags::RST)));
        check(Flags::RST, b"", None);
        check(Flags::RST | Flags::ACK, b"", None);
    }
}
