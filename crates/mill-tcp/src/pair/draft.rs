//! Segments that tests write, and what was sent because of them.

use super::{CLIENT, Pair, Peer, SERVER};
use crate::arrived::Arrived;
use crate::connection::ConnectionFlags;
use crate::segment::{Ecn, Segment, SegmentOut};
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{TcpOptions, Timestamps};

/// A segment written by a test.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) seq: SeqNumber,
    pub(crate) ack: SeqNumber,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) options: TcpOptions,
    pub(crate) payload: Vec<u8>,
    pub(crate) ecn: Ecn,
    pub(crate) merged: u16,
}

impl Draft {
    pub(crate) fn segment(&self) -> Segment<'_> {
        Segment {
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            urgent: 0,
            options: &self.options,
            payload: &self.payload,
            ecn: self.ecn,
            merged: self.merged,
        }
    }

    pub(crate) fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// Moved by so many numbers.
    pub(crate) fn shifted(mut self, by: i32) -> Self {
        self.seq = SeqNumber(self.seq.0.wrapping_add_signed(by));
        self
    }

    pub(crate) fn with_payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }
}

impl Pair {
    /// The acknowledgement that the peer of `to` could send now: right in every field.
    pub(crate) fn draft(&self, to: usize) -> Draft {
        let Peer::Open(connection) = &self.sides[to].peer else {
            panic!("no connection: {:?}", self.sides[to].peer);
        };
        let timestamps = connection
            .flags
            .has(ConnectionFlags::TIMESTAMPS)
            .then(|| Timestamps {
                value: connection.ts.recent(),
                echo: connection.ts.value_at(self.now.tick()),
            });
        Draft {
            seq: connection.rcv.nxt(),
            ack: connection.snd.nxt(),
            flags: Flags::ACK,
            window: u16::try_from(connection.snd.wnd() >> connection.shifts.snd()).unwrap(),
            options: TcpOptions {
                timestamps,
                ..TcpOptions::default()
            },
            payload: Vec::new(),
            ecn: Ecn::NotCapable,
            merged: 1,
        }
    }

    /// Gives the draft to a side, and what the side sends then.
    pub(crate) fn give(&mut self, to: usize, draft: &Draft) -> (Arrived, Vec<SegmentOut>) {
        let before = self.log.len();
        let arrived = self.inject(to, &draft.segment());
        self.flush();
        (arrived, self.sent_since(before, to))
    }

    /// Everything that one side has sent since the log had `from` entries.
    pub(crate) fn sent_since(&self, from: usize, who: usize) -> Vec<SegmentOut> {
        self.log
            .iter()
            .skip(from)
            .filter(|entry| entry.1 == who)
            .map(|entry| entry.2)
            .collect()
    }

    /// The last lines of the exchange, for messages.
    pub(crate) fn ladder(&self, lines: usize) -> alloc::string::String {
        use core::fmt::Write as _;
        let mut text = alloc::string::String::new();
        for (at, who, segment) in self.log.iter().skip(self.log.len().saturating_sub(lines)) {
            let name = if *who == CLIENT { "client" } else { "server" };
            let _ = writeln!(
                text,
                "\n{:>9} {name} seq {} len {} ack {} flags {:#x} win {} {:?}",
                at.as_micros(),
                segment.seq.0,
                segment.len,
                segment.ack.0,
                segment.flags.0,
                segment.window,
                segment.options.sack.as_slice()
            );
        }
        for who in [CLIENT, SERVER] {
            let _ = writeln!(text, "{:?} {:?}", self.state(who), self.sides[who].events);
        }
        text
    }
}
