//! What happened to each frame, as a ladder of segments that a person can read.
//!
//! ```text
//!      0.000 ms  a  10.0.0.2:32768 > 10.0.0.1:80  S   seq 0  win 65535  <mss 1460 sackok ts 1:0 ws 7>
//!     10.000 ms  b  10.0.0.1:80 > 10.0.0.2:32768  SA  seq 0  ack 1  win 65535  <mss 1460>  | out: lost
//! ```
//!
//! A line is entered when the frame is sent; `|` is followed by what its wires did to it. Sequence numbers are relative
//! to the connection's first.

/// One line.
mod line;
/// A TCP segment, as the judge of a world reads it.
mod sent;

pub use sent::SentSegment;

use super::carrier::Effect;
use super::flying::Flying;
use super::layout::{ICMPV6, Layout, TCP, u16_at, u32_at};
use mill_runtime::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// The frames of a world: all of them if a person wants to read them, else the last ones.
#[derive(Debug)]
pub(crate) struct Trace {
    records: VecDeque<Record>,
    /// The number of the first record.
    first: u64,
    keeps_all: bool,
    /// The initial sequence number of each direction of a connection.
    bases: BTreeMap<Flow, u32>,
}

/// One direction of a connection.
pub(super) type Flow = (SocketAddr, SocketAddr);

/// Which of a frame's two wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    Out,
    In,
}

#[derive(Debug)]
struct Record {
    at: Instant,
    station: usize,
    /// The frame's beginning: all headers.
    head: Vec<u8>,
    len: usize,
    segments: u16,
    effects: Vec<(Leg, Effect)>,
}

impl Trace {
    pub(super) const fn new() -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            keeps_all: false,
            bases: BTreeMap::new(),
        }
    }

    pub(crate) const fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Enters a frame; returns its number.
    pub(super) fn on_sent(&mut self, at: Instant, station: usize, frame: &Flying) -> u64 {
        let mut record = if !self.keeps_all && self.records.len() >= LAST_FRAMES {
            self.first += 1;
            self.records.pop_front()
        } else {
            None
        }
        .unwrap_or_else(|| Record {
            at,
            station,
            head: Vec::with_capacity(HEAD_BYTES),
            len: 0,
            segments: 1,
            effects: Vec::new(),
        });
        record.at = at;
        record.station = station;
        record.len = frame.bytes.len();
        record.segments = frame.segments();
        record.effects.clear();
        record.head.clear();
        let head = frame.bytes.len().min(HEAD_BYTES);
        record.head.extend_from_slice(&frame.bytes[..head]);
        self.learn(&record.head);
        self.records.push_back(record);
        self.first + self.records.len() as u64 - 1
    }

    pub(super) fn note(&mut self, number: u64, leg: Leg, effect: Effect) {
        let index = number
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(record) = index.and_then(|index| self.records.get_mut(index)) {
            record.effects.push((leg, effect));
        }
    }

    /// A SYN says where its direction's sequence numbers begin.
    fn learn(&mut self, head: &[u8]) {
        let Some(layout) = Layout::of_head(head).filter(|it| it.protocol == TCP) else {
            return;
        };
        let flags = head.get(layout.transport + 13).copied().unwrap_or(0);
        if flags & SYN != 0
            && let Some(flow) = flow_of(head, &layout)
        {
            let seq = u32_at(head, layout.transport + 4).unwrap_or(0);
            self.bases.insert(flow, seq);
        }
    }

    /// The TCP segments of what is kept, in the order in which they were sent.
    pub(crate) fn tcp_segments(&self) -> impl Iterator<Item = SentSegment> {
        self.records.iter().filter_map(SentSegment::of)
    }

    /// When a station asked for a neighbour (ARP, or neighbour discovery), of what is kept.
    pub(crate) fn neighbor_questions(&self, station: usize) -> impl Iterator<Item = Instant> {
        let of_station = self.records.iter().filter(move |it| it.station == station);
        of_station
            .filter(|it| asks_for_neighbor(&it.head))
            .map(|it| it.at)
    }

    /// The last lines, one per frame.
    pub(crate) fn text(&self, lines_max: usize) -> String {
        let skipped = self.records.len().saturating_sub(lines_max);
        let mut text = String::new();
        for record in self.records.iter().skip(skipped) {
            line::write(record, &self.bases, &mut text);
        }
        text
    }
}

/// Whether a frame is an ARP request (RFC 826) or a neighbour solicitation (RFC 4861 4.3).
fn asks_for_neighbor(head: &[u8]) -> bool {
    match Layout::of_head(head) {
        Some(layout) => layout.protocol == ICMPV6 && head.get(layout.transport) == Some(&135),
        None => u16_at(head, 12) == Some(0x0806) && u16_at(head, 20) == Some(1),
    }
}

/// The addresses and ports of a TCP segment.
pub(super) fn flow_of(head: &[u8], layout: &Layout) -> Option<Flow> {
    let (source, target) = layout.addresses(head)?;
    let ports = (
        u16_at(head, layout.transport)?,
        u16_at(head, layout.transport + 2)?,
    );
    Some((
        SocketAddr::new(source, ports.0),
        SocketAddr::new(target, ports.1),
    ))
}

/// Bytes of a frame that hold all its headers: Ethernet, IPv6 or IPv4 with options, TCP with options.
const HEAD_BYTES: usize = 14 + 60 + 60;

/// Frames that are kept when not all are: what led to a failure is most often among them.
const LAST_FRAMES: usize = 2000;

const SYN: u8 = 2;
