//! One connection of a script: which ports, and where its numbers begin.

use crate::packet::Packet;
use crate::script::{Cookie, HeaderOption, Number, SYN, Segment};

/// Scripts count from 0 in each direction; packets do not.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) peer_port: u16,
    pub(crate) local_port: u16,
    pub(crate) peer_isn: u32,
    /// The stack's ISS, once its SYN was seen.
    iss: Option<u32>,
    /// What is added to a script's timestamps to get those of the stack.
    timestamps_from: Option<u32>,
    /// The last Fast Open cookie that the stack gave; cookies are for an address, so that flows share them.
    pub(crate) cookie: Option<Vec<u8>>,
}

impl Flow {
    pub(crate) const fn new(peer_port: u16, local_port: u16, peer_isn: u32) -> Self {
        Self {
            peer_port,
            local_port,
            peer_isn,
            iss: None,
            timestamps_from: None,
            cookie: None,
        }
    }

    /// The next SYN has an ISS of its own, and timestamps too.
    pub(crate) const fn renew(&mut self) {
        self.iss = None;
        self.timestamps_from = None;
    }

    /// The stack sent this.
    pub(crate) fn learn(&mut self, packet: &Packet) {
        if packet.flags & SYN != 0 && self.iss.is_none() {
            self.iss = Some(packet.seq);
        }
        for (kind, value) in &packet.options {
            if *kind == FAST_OPEN && !value.is_empty() {
                self.cookie = Some(value.clone());
            }
        }
    }

    /// Ours begin where the first SYN said; without one a packet's numbers are taken as they are.
    pub(crate) fn iss(&self) -> u32 {
        self.iss.unwrap_or(0)
    }

    /// If the script expects a timestamp and none was seen before, scripts count from this one.
    pub(crate) fn learn_timestamps(&mut self, expected: &Segment, packet: &Packet) {
        let expected = expected.options.iter().flatten().find_map(|o| match o {
            HeaderOption::Timestamps(Number::Is(value), _) => Some(*value),
            _ => None,
        });
        let sent = packet.options.iter().find_map(|(kind, value)| {
            let value = (*kind == TIMESTAMPS).then_some(value)?;
            value.first_chunk().map(|value| u32::from_be_bytes(*value))
        });
        if let (None, Some(expected), Some(sent)) = (self.timestamps_from, expected, sent) {
            self.timestamps_from = Some(sent.wrapping_sub(expected));
        }
    }

    /// A packet of the stack in a script's numbers.
    pub(crate) fn to_segment(&self, number: u8, packet: &Packet) -> Segment {
        let has = |flag| packet.flags & flag != 0;
        let options = packet
            .options
            .iter()
            .map(|(kind, value)| self.to_option(*kind, value));
        Segment {
            flow: number,
            ecn: packet.ecn,
            has_bad_checksum: false,
            is_inverted: false,
            flags: packet.flags,
            seq: packet.seq.wrapping_sub(self.iss()),
            len: u32::try_from(packet.payload.len()).expect("a packet is short"),
            ack: has(crate::script::ACK).then(|| packet.ack.wrapping_sub(self.peer_isn)),
            window: Some(packet.window),
            urgent: has(crate::script::URG).then_some(packet.urgent),
            options: Some(options.collect()),
        }
    }

    fn to_option(&self, kind: u8, value: &[u8]) -> HeaderOption {
        let u32_at = |at: usize| {
            let bytes = value.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
        };
        match (kind, value) {
            (0, _) => HeaderOption::End,
            (1, _) => HeaderOption::Nop,
            (MSS, &[a, b]) => HeaderOption::Mss(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => HeaderOption::WindowScale(shift),
            (SACK_PERMITTED, []) => HeaderOption::SackPermitted,
            (SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => {
                let relative = |at| u32_at(at).wrapping_sub(self.peer_isn);
                let blocks = (0..blocks.len()).step_by(8);
                HeaderOption::Sack(blocks.map(|at| (relative(at), relative(at + 4))).collect())
            }
            (TIMESTAMPS, value) if value.len() == 8 => {
                let from = self.timestamps_from.unwrap_or(0);
                let value = Number::Is(u32_at(0).wrapping_sub(from));
                HeaderOption::Timestamps(value, Number::Is(u32_at(4)))
            }
            (FAST_OPEN, []) => HeaderOption::FastOpen(Cookie::Request),
            (FAST_OPEN, cookie) => HeaderOption::FastOpen(Cookie::Bytes(cookie.to_vec())),
            (USER_TIMEOUT, &[a, b]) => HeaderOption::UserTimeout(u16::from_be_bytes([a, b])),
            (kind, value) => HeaderOption::Other(kind, value.to_vec()),
        }
    }

    /// A script's segment as the packet that the peer sends.
    pub(crate) fn to_packet(&self, segment: &Segment) -> Result<Packet, String> {
        let options = segment
            .options
            .as_ref()
            .ok_or("what the peer sends is to be said")?;
        let options: Result<Vec<_>, String> =
            options.iter().map(|o| self.option_bytes(o)).collect();
        let data_from = segment
            .seq
            .wrapping_add(u32::from(segment.flags & SYN != 0));
        let invert = if segment.is_inverted { 0xff } else { 0 };
        let payload = (0..segment.len).map(|at| peer_byte(data_from.wrapping_add(at)) ^ invert);
        Ok(Packet {
            ecn: segment.ecn,
            source_port: self.peer_port,
            target_port: self.local_port,
            seq: segment.seq.wrapping_add(self.peer_isn),
            ack: segment.ack.map_or(0, |ack| ack.wrapping_add(self.iss())),
            flags: segment.flags,
            window: segment.window.unwrap_or(u16::MAX),
            urgent: segment.urgent.unwrap_or(0),
            options: options?,
            payload: payload.collect(),
            may_be_fragmented: false,
        })
    }

    fn option_bytes(&self, option: &HeaderOption) -> Result<(u8, Vec<u8>), String> {
        let bytes = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        Ok(match option {
            HeaderOption::End => (0, vec![]),
            HeaderOption::Nop => (1, vec![]),
            HeaderOption::Mss(mss) => (MSS, mss.to_be_bytes().to_vec()),
            HeaderOption::WindowScale(shift) => (WINDOW_SCALE, vec![*shift]),
            HeaderOption::SackPermitted => (SACK_PERMITTED, vec![]),
            HeaderOption::Sack(blocks) => {
                let iss = self.iss();
                let edges = blocks.iter().flat_map(|(a, b)| [*a, *b]);
                let edges: Vec<u32> = edges.map(|edge| edge.wrapping_add(iss)).collect();
                (SACK, bytes(&edges))
            }
            HeaderOption::Timestamps(Number::Is(value), Number::Is(echo)) => {
                let from = self.timestamps_from.unwrap_or(0);
                (TIMESTAMPS, bytes(&[*value, echo.wrapping_add(from)]))
            }
            HeaderOption::FastOpen(Cookie::Request) => (FAST_OPEN, vec![]),
            HeaderOption::FastOpen(Cookie::Bytes(cookie)) => (FAST_OPEN, cookie.clone()),
            HeaderOption::FastOpen(Cookie::Known) => {
                let cookie = self.cookie.clone().ok_or("no cookie was given yet")?;
                (FAST_OPEN, cookie)
            }
            HeaderOption::UserTimeout(value) => (USER_TIMEOUT, value.to_be_bytes().to_vec()),
            HeaderOption::Other(kind, value) => (*kind, value.clone()),
            HeaderOption::Timestamps(..) => return Err("what the peer sends is to be said".into()),
        })
    }
}

const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const USER_TIMEOUT: u8 = 28;
const FAST_OPEN: u8 = 34;

/// The byte at a relative sequence number of the peer's stream; the first is at 1.
pub(crate) const fn peer_byte(seq: u32) -> u8 {
    byte_at(seq, 0x35)
}

/// The same of the stack's stream, which has other bytes.
pub(crate) const fn stack_byte(seq: u32) -> u8 {
    byte_at(seq, 0xc9)
}

/// No two places near each other, or a power of two apart, look alike for long.
const fn byte_at(seq: u32, salt: u8) -> u8 {
    (seq.wrapping_mul(0x9e37_79b1) >> 24) as u8 ^ salt
}

/// Whether what the stack sent is what a script expects; `*` and what is not said fit anything.
pub(crate) fn fits(expected: &Segment, sent: &Segment) -> bool {
    let options = match (&expected.options, &sent.options) {
        (Some(expected), Some(sent)) => {
            let pairs = expected.iter().zip(sent);
            expected.len() == sent.len() && pairs.into_iter().all(|(e, s)| option_fits(e, s))
        }
        _ => true,
    };
    let known = Segment {
        window: expected.window.or(sent.window),
        options: sent.options.clone(),
        ..expected.clone()
    };
    options && known == *sent
}

fn option_fits(expected: &HeaderOption, sent: &HeaderOption) -> bool {
    match (expected, sent) {
        (HeaderOption::Timestamps(a, b), HeaderOption::Timestamps(c, d)) => {
            let fits = |expected: &Number, sent| *expected == Number::Any || expected == sent;
            fits(a, c) && fits(b, d)
        }
        (HeaderOption::FastOpen(Cookie::Known), HeaderOption::FastOpen(Cookie::Bytes(_))) => true,
        (expected, sent) => expected == sent,
    }
}
