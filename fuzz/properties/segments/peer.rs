//! The other end of every connection: what it sends, and what it takes of what the stack sends.

use super::frame;
use super::script::Script;
use super::stream::{our_byte, their_byte};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{Flags, TcpHeader};
use mill_wire::tcp_option::{SackBlocks, TcpOptions, Timestamps};

pub(super) const PORTS: u16 = 3;

/// The peer's first port.
pub(super) const FIRST_PORT: u16 = 40_000;

/// A host with some ports. Frames that it makes are returned.
pub(super) struct Peer {
    ports: [Port; PORTS as usize],
    /// Whether the stack answers each SYN with a cookie.
    has_cookies: bool,
    /// Bytes that the stack has sent, sent again included.
    pub(super) received_bytes: u64,
}

/// What the peer knows of one of its ports.
#[derive(Default)]
struct Port {
    /// Next of its own to send.
    snd_nxt: SeqNumber,
    /// Where the stack's window ends.
    edge: Option<SeqNumber>,
    /// Known once the stack answers a SYN: whether it scales depends on the SYN that it has taken.
    shift: Option<u8>,
    /// The end of what the stack has sent.
    rcv_nxt: SeqNumber,
    /// The stack's and our first sequence numbers behind SYN, of the last connections of this port.
    their_starts: Vec<SeqNumber>,
    our_starts: Vec<SeqNumber>,
    timestamp: u32,
}

impl Peer {
    pub(super) fn new(has_cookies: bool) -> Self {
        Self {
            ports: Default::default(),
            has_cookies,
            received_bytes: 0,
        }
    }

    /// Where the peer's streams of this port may have begun.
    pub(super) fn starts(&self, port: usize) -> &[SeqNumber] {
        &self.ports[port].our_starts
    }

    /// The peer opens a connection.
    pub(super) fn syn(&mut self, port: usize, script: &mut Script<'_>) -> Vec<u8> {
        let seq = SeqNumber(script.long());
        let bits = script.byte();
        self.ports[port].snd_nxt = seq + 1;
        let header = TcpHeader {
            seq,
            flags: Flags::SYN,
            window: script.word(),
            options: TcpOptions {
                mss: (bits & 1 == 0).then(|| script.word()),
                window_scale: (bits & 2 == 0).then_some(bits >> 4),
                sack_permitted: bits & 4 == 0,
                timestamps: (bits & 8 == 0).then_some(Timestamps { value: 1, echo: 0 }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        self.segment(port, header, 0)
    }

    /// What a well-behaved peer would send next: an acknowledgement of everything, maybe data, maybe FIN.
    pub(super) fn expected(&mut self, port: usize, script: &mut Script<'_>) -> Vec<u8> {
        let bits = script.byte();
        let len = if bits & 1 == 0 {
            0
        } else {
            script.word() % 1461
        };
        let known = &mut self.ports[port];
        known.timestamp += u32::from(bits >> 4);
        let mut flags = Flags::ACK;
        if bits & 2 != 0 {
            flags |= Flags::FIN;
        }
        let header = TcpHeader {
            seq: known.snd_nxt,
            ack: known.rcv_nxt,
            flags,
            window: if bits & 4 == 0 { 65535 } else { script.word() },
            options: TcpOptions {
                timestamps: (bits & 8 == 0).then_some(Timestamps {
                    value: known.timestamp,
                    echo: 0,
                }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        known.snd_nxt += u32::from(len) + u32::from(bits >> 1 & 1);
        self.segment(port, header, len)
    }

    /// A segment of any kind near what is expected, or far from it.
    pub(super) fn anything(&mut self, port: usize, script: &mut Script<'_>) -> Vec<u8> {
        let (flags, bits) = (script.byte(), script.byte());
        let (near, far) = (u32::from(script.word()), script.long());
        let known = &self.ports[port];
        let seq = match bits & 3 {
            0 => known.snd_nxt + near,
            1 => known.snd_nxt - near,
            2 => known.edge.unwrap_or_default() - near % 5,
            _ => SeqNumber(far),
        };
        let ack = match bits >> 2 & 3 {
            0 => known.rcv_nxt,
            1 => known.rcv_nxt - near,
            2 => known.rcv_nxt + near,
            _ => SeqNumber(far.rotate_left(7)),
        };
        let mut sack = SackBlocks::default();
        for _ in 0..(bits >> 4 & 3) {
            let start = ack + u32::from(script.word());
            sack.push(start, start + u32::from(script.word()));
        }
        let header = TcpHeader {
            seq,
            ack,
            flags: Flags(u16::from(flags)),
            window: script.word(),
            urgent: script.word(),
            options: TcpOptions {
                timestamps: (bits & 64 != 0).then_some(Timestamps {
                    value: known.timestamp.wrapping_add(far),
                    echo: near,
                }),
                sack,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let len = if bits & 128 == 0 {
            0
        } else {
            script.word() % 1400
        };
        self.segment(port, header, len)
    }

    fn segment(&mut self, port: usize, header: TcpHeader, len: u16) -> Vec<u8> {
        let header = TcpHeader {
            source: FIRST_PORT + u16::try_from(port).expect("there are few ports"),
            target: 80,
            ..header
        };
        if header.flags.has(Flags::SYN) {
            remember(&mut self.ports[port].our_starts, header.seq + 1);
        }
        let first = header.seq + u32::from(header.flags.has(Flags::SYN));
        let payload: Vec<u8> = (0..u32::from(len)).map(|n| their_byte(first + n)).collect();
        frame::frame(&header, &payload)
    }

    /// What the stack has sent has to make sense.
    pub(super) fn receive(&mut self, frame: &[u8]) {
        let Some((header, payload)) = frame::parse(frame) else {
            return;
        };
        self.received_bytes += payload.len() as u64;
        let index = usize::from(header.target.wrapping_sub(FIRST_PORT));
        let has_cookies = self.has_cookies;
        if let Some(port) = self.ports.get_mut(index) {
            port.receive(&header, payload, has_cookies);
        }
    }
}

impl Port {
    fn receive(&mut self, header: &TcpHeader, payload: &[u8], has_cookies: bool) {
        if header.flags.has(Flags::SYN) {
            self.edge = None;
            self.rcv_nxt = header.seq + 1;
            remember(&mut self.their_starts, header.seq + 1);
            // A cookie forgets the scale when the peer forgets its timestamps.
            let answers = header.flags.has(Flags::ACK) && !has_cookies;
            self.shift = answers.then(|| header.options.window_scale.unwrap_or(0));
            return;
        }
        if header.flags.has(Flags::RST) {
            return;
        }
        self.check_payload(header, payload);
        let end = header.seq
            + u32::try_from(payload.len()).expect("a frame is short")
            + u32::from(header.flags.has(Flags::FIN));
        self.rcv_nxt = self.rcv_nxt.max(end);
        self.check_edge(header);
    }

    /// Whether it is what the application wrote, of one of the connections that there were.
    fn check_payload(&self, header: &TcpHeader, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let fits = |start: &SeqNumber| {
            let from = header.seq.0.wrapping_sub(start.0);
            let expected = (0..).map(|n: u32| our_byte(from.wrapping_add(n)));
            payload.iter().copied().eq(expected.take(payload.len()))
        };
        assert!(
            self.their_starts.iter().any(fits),
            "{} bytes at {:?} are not what was written",
            payload.len(),
            header.seq
        );
    }

    /// The window's edge never moves back.
    fn check_edge(&mut self, header: &TcpHeader) {
        let Some(shift) = self.shift else {
            return;
        };
        let edge = header.ack + (u32::from(header.window) << shift);
        if let Some(before) = self.edge {
            // Rounding to the scale's unit may take less than one (RFC 7323 2.4).
            assert!(
                (edge + ((1 << shift) - 1)).is_at_or_after(before),
                "the window's edge moved from {before:?} to {edge:?}"
            );
        }
        self.edge = Some(self.edge.map_or(edge, |before| before.max(edge)));
    }
}

fn remember(starts: &mut Vec<SeqNumber>, start: SeqNumber) {
    if !starts.contains(&start) {
        starts.push(start);
    }
}
