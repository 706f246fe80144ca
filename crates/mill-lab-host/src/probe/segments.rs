//! What segments of a capture tell about the path: retransmissions, reordering, duplicate acknowledgments.

use super::pcap::{ACK, FIN, RST, SYN, Segment};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Counts over a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Analysis {
    pub segments: u64,
    /// Connections that were seen, begun before the capture or in it.
    pub connections: u64,
    /// Handshakes begun in it.
    pub opened: u64,
    pub resets: u64,
    /// Payload, or a SYN or FIN, that had been seen before.
    pub retransmitted: u64,
    /// Payload that came after later payload for the first time.
    pub out_of_order: u64,
    /// Payload that left a gap before it: lost before the capture, or late.
    pub gaps: u64,
    pub duplicate_acks: u64,
    pub payload_bytes: u64,
    pub nanos: u64,
}

/// One end and the other.
type Flow = ((IpAddr, u16), (IpAddr, u16));

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
struct Direction {
    /// The first sequence number that has not been seen.
    next: Option<u32>,
    /// Ranges below `next` that have not been seen, in the order they appeared: late or lost.
    holes: Vec<Hole>,
    acknowledged: Option<(u32, u16)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    first: u32,
    end: u32,
    /// When the gap was first seen.
    nanos: u64,
}

/// What fills a hole sooner was late, what fills it later was retransmitted. Wireshark uses the same limit where it
/// does not know the round trip.
const LATE_NANOS: u64 = 3_000_000;

/// The most holes kept per direction; a path with more is not checked for order.
const HOLES_MAX: usize = 64;

/// Processes segments in the order of the capture.
pub(super) fn analyse(segments: &[Segment]) -> Analysis {
    let mut analysis = Analysis::default();
    let mut directions: BTreeMap<Flow, Direction> = BTreeMap::new();
    let mut connections = std::collections::BTreeSet::new();
    for segment in segments {
        analysis.segments += 1;
        analysis.payload_bytes += u64::from(segment.payload);
        analysis.resets += u64::from(segment.flags & RST != 0);
        let (from, to) = (segment.from, segment.to);
        connections.insert((from.min(to), from.max(to)));
        let direction = directions.entry((from, to)).or_default();
        if segment.flags & (SYN | ACK) == SYN {
            // The same address pair is a new connection once the old one is over.
            let again = direction.next == Some(segment.sequence.wrapping_add(1));
            if !again {
                analysis.opened += 1;
                *direction = Direction::default();
            }
        }
        sequence(direction, segment, &mut analysis);
        acknowledgment(direction, segment, &mut analysis);
    }
    analysis.connections = u64::try_from(connections.len()).unwrap_or(u64::MAX);
    if let (Some(first), Some(last)) = (segments.first(), segments.last()) {
        analysis.nanos = last.nanos.saturating_sub(first.nanos);
    }
    analysis
}

/// Sequence numbers wrap: `left` is before `right` if the distance is less than half of the range.
fn before(left: u32, right: u32) -> bool {
    right.wrapping_sub(left).wrapping_sub(1) < 0x7fff_ffff
}

fn sequence(direction: &mut Direction, segment: &Segment, analysis: &mut Analysis) {
    // SYN and FIN take a number each.
    let flags = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
    let length = segment.payload.wrapping_add(flags);
    if length == 0 || segment.flags & RST != 0 {
        return;
    }
    let (start, end) = (segment.sequence, segment.sequence.wrapping_add(length));
    // A SYN-ACK with other numbers is a new connection as well.
    let fresh = segment.flags & SYN != 0 && direction.next.is_some_and(|next| next != end);
    let next = match direction.next {
        Some(next) if !fresh => next,
        _ => {
            direction.next = Some(end);
            direction.holes.clear();
            return;
        }
    };
    if start == next {
        direction.next = Some(end);
        return;
    }
    if before(next, start) {
        analysis.gaps += 1;
        if direction.holes.len() < HOLES_MAX {
            direction.holes.push(Hole {
                first: next,
                end: start,
                nanos: segment.nanos,
            });
        }
        direction.next = Some(end);
        return;
    }
    let hole = direction
        .holes
        .iter()
        .position(|hole| !before(start, hole.first) && before(start, hole.end));
    match hole {
        Some(index) => {
            let hole = direction.holes.remove(index);
            if segment.nanos.saturating_sub(hole.nanos) > LATE_NANOS {
                analysis.retransmitted += 1;
            } else {
                analysis.out_of_order += 1;
            }
            fill(&mut direction.holes, hole, start, end);
        }
        // A keep-alive sends one byte, or none, below what was sent; it is no loss.
        None if segment.payload <= 1 && flags == 0 && end == next => {}
        None => analysis.retransmitted += 1,
    }
    if before(next, end) {
        direction.next = Some(end);
    }
}

/// The rest of a hole after a part of it came: up to two holes.
fn fill(holes: &mut Vec<Hole>, hole: Hole, start: u32, end: u32) {
    if before(hole.first, start) {
        holes.push(Hole { end: start, ..hole });
    }
    if before(end, hole.end) {
        holes.push(Hole { first: end, ..hole });
    }
}

/// RFC 5681 section 2: nothing else in it, nothing new acknowledged, and the window as it was.
fn acknowledgment(direction: &mut Direction, segment: &Segment, analysis: &mut Analysis) {
    if segment.flags & ACK == 0 || segment.flags & RST != 0 {
        return;
    }
    let said = (segment.acknowledgment, segment.window);
    let bare = segment.payload == 0 && segment.flags & (SYN | FIN) == 0;
    if bare && direction.acknowledged == Some(said) {
        analysis.duplicate_acks += 1;
    }
    direction.acknowledged = Some(said);
}

impl Analysis {
    /// As text for the user.
    pub(super) fn text(&self, others: usize) -> String {
        let mut text = String::new();
        let mut line = |what: &str, count: u64| {
            let _ = writeln!(text, "{what:<36}{count:>14}");
        };
        line("segments", self.segments);
        line(
            "packets that were not TCP",
            u64::try_from(others).unwrap_or(0),
        );
        line("payload bytes", self.payload_bytes);
        line("milliseconds", self.nanos / 1_000_000);
        line("connections", self.connections);
        line("connections opened", self.opened);
        line("resets", self.resets);
        line("retransmitted segments", self.retransmitted);
        line("segments out of order", self.out_of_order);
        line("gaps (lost or late)", self.gaps);
        line("duplicate acknowledgments", self.duplicate_acks);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::pcap;
    use super::super::pcap::tests::{capture, packet};
    use super::*;

    const CLIENT: (u8, u16) = (1, 40000);
    const SERVER: (u8, u16) = (2, 80);

    fn check(packets: &[Vec<u8>], expected: impl Fn(&Analysis) -> bool) {
        let packets: Vec<(u64, Vec<u8>)> = packets
            .iter()
            .enumerate()
            .map(|(index, packet)| (u64::try_from(index).unwrap() * 1000, packet.clone()))
            .collect();
        let (segments, _) = pcap::parse(&capture(101, &packets)).unwrap();
        let analysis = analyse(&segments);
        assert!(expected(&analysis), "{analysis:?}");
    }

    fn data(sequence: u32) -> Vec<u8> {
        packet(SERVER, CLIENT, sequence, 500, ACK, 100)
    }

    fn ack(number: u32) -> Vec<u8> {
        packet(CLIENT, SERVER, 500, number, ACK, 0)
    }

    fn handshake() -> Vec<Vec<u8>> {
        vec![
            packet(CLIENT, SERVER, 499, 0, SYN, 0),
            packet(SERVER, CLIENT, 99, 500, SYN | ACK, 0),
            ack(100),
        ]
    }

    #[test]
    fn a_clean_connection_has_no_counts() {
        let mut packets = handshake();
        packets.extend([data(100), ack(200), data(200), ack(300)]);
        packets.push(packet(SERVER, CLIENT, 300, 500, FIN | ACK, 0));
        packets.push(packet(CLIENT, SERVER, 500, 301, FIN | ACK, 0));
        packets.push(packet(SERVER, CLIENT, 301, 501, ACK, 0));
        let expected = Analysis {
            segments: 10,
            connections: 1,
            opened: 1,
            payload_bytes: 200,
            nanos: 9000,
            ..Analysis::default()
        };
        check(&packets, |found| *found == expected);
    }

    #[test]
    fn payload_that_was_seen_is_a_retransmission() {
        let packets = [data(100), data(200), data(100), data(300)];
        check(&packets, |found| {
            (found.retransmitted, found.out_of_order, found.gaps) == (1, 0, 0)
        });
    }

    #[test]
    fn payload_that_comes_late_is_out_of_order() {
        let packets = [data(100), data(300), data(200), data(400)];
        check(&packets, |found| {
            (found.retransmitted, found.out_of_order, found.gaps) == (0, 1, 1)
        });
        // Once it has come, the same again is a retransmission.
        let packets = [data(100), data(300), data(200), data(200)];
        check(&packets, |found| {
            (found.retransmitted, found.out_of_order) == (1, 1)
        });
    }

    #[test]
    fn payload_that_was_lost_on_the_way_here_comes_much_later() {
        let late = |nanos| {
            let packets = [(0, data(100)), (1, data(300)), (nanos, data(200))];
            let (segments, _) = pcap::parse(&capture(101, &packets)).unwrap();
            let found = analyse(&segments);
            (found.retransmitted, found.out_of_order)
        };
        assert_eq!(late(LATE_NANOS + 1), (0, 1));
        assert_eq!(late(LATE_NANOS + 2), (1, 0));
    }

    #[test]
    fn acknowledgments_without_news_are_duplicates() {
        let packets = [data(100), ack(200), ack(200), ack(200), ack(300)];
        check(&packets, |found| found.duplicate_acks == 2);
        // One that brings payload is none.
        let request = packet(CLIENT, SERVER, 500, 200, ACK, 60);
        check(&[ack(200), request], |found| found.duplicate_acks == 0);
    }

    #[test]
    fn a_syn_again_is_a_retransmission_and_the_next_connection_is_not() {
        let syn = |sequence| packet(CLIENT, SERVER, sequence, 0, SYN, 0);
        check(&[syn(499), syn(499)], |found| {
            (found.opened, found.retransmitted) == (1, 1)
        });
        check(&[syn(499), syn(9_000_000)], |found| {
            (found.opened, found.retransmitted) == (2, 0)
        });
    }

    #[test]
    fn numbers_go_round() {
        let packets = [data(u32::MAX - 49), data(50), data(150), data(50)];
        check(&packets, |found| {
            (found.retransmitted, found.gaps) == (1, 0)
        });
        assert!(before(u32::MAX, 0));
        assert!(!before(0, u32::MAX));
        assert!(!before(5, 5));
    }

    #[test]
    fn a_keep_alive_is_no_loss() {
        let alive = packet(SERVER, CLIENT, 199, 500, ACK, 1);
        check(&[data(100), alive], |found| found.retransmitted == 0);
    }

    #[test]
    fn a_summary_names_every_count() {
        let text = Analysis::default().text(3);
        assert_eq!(text.lines().count(), 11);
        assert!(
            text.contains("packets that were not TCP                        3"),
            "{text}"
        );
    }
}
