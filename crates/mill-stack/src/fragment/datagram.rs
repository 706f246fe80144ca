//! The pieces of one datagram.

use super::PIECE_BYTES;
use super::piece::Fragment;
use alloc::vec::Vec;
use mill_tcp::time::Instant;
use mill_wire::ipv4::Ecn;
use mill_wire::protocol::Protocol;

/// A datagram that is not whole yet, or one that will never be, which is remembered so that its other fragments are
/// refused, too (RFC 5722 4).
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) until: Instant,
    /// How many datagrams were begun before it.
    pub(super) age: u64,
    /// In order, without overlap.
    pieces: Vec<Piece>,
    /// Where the datagram ends, once the last fragment is there.
    end: Option<u16>,
    protocol: Protocol,
    /// The front of the first fragment's packet.
    beginning: Vec<u8>,
    is_given_up: bool,
    /// As bits by the number of each codepoint: which were seen.
    ecn_seen: u8,
}

#[derive(Debug)]
struct Piece {
    offset: u16,
    payload: Vec<u8>,
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    Piece,
    Duplicate,
    Refused,
}

impl Partial {
    pub(super) const fn new(until: Instant, age: u64) -> Self {
        Self {
            until,
            age,
            pieces: Vec::new(),
            end: None,
            protocol: Protocol(0),
            beginning: Vec::new(),
            is_given_up: false,
            ecn_seen: 0,
        }
    }

    /// The fragment has bytes, and ends within what a datagram may have.
    pub(super) fn add(&mut self, fragment: &Fragment<'_>) -> Added {
        if self.is_given_up {
            return Added::Refused;
        }
        let start = fragment.offset;
        let Ok(len) = u16::try_from(fragment.payload.len()) else {
            return Added::Refused;
        };
        let Some(end) = start.checked_add(len).filter(|_| len > 0) else {
            return Added::Refused;
        };
        // What comes before the end that is known, and what else may say that it is the last.
        let is_last = !fragment.more_fragments;
        let fits = match self.end {
            Some(known) if is_last => end == known,
            Some(known) => end <= known,
            None if is_last => self.pieces.last().is_none_or(|last| last.end() <= end),
            None => true,
        };
        if !fits {
            return Added::Refused;
        }
        let at = self.pieces.partition_point(|piece| piece.offset < start);
        if let Some(piece) = self.pieces.get(at)
            && piece.offset == start
            && piece.payload == fragment.payload
        {
            // RFC 8200 4.5: an exact duplicate may be passed over. Saying that it is the last one as well is news.
            return match (is_last, self.end) {
                (true, None) => Added::Refused,
                _ => Added::Duplicate,
            };
        }
        let before = at.checked_sub(1).and_then(|at| self.pieces.get(at));
        let behind = self.pieces.get(at);
        let overlaps = before.is_some_and(|piece| piece.end() > start)
            || behind.is_some_and(|piece| piece.offset < end);
        if overlaps || self.pieces.len() >= PIECES_MAX {
            return Added::Refused;
        }
        self.take(at, fragment);
        if is_last {
            self.end = Some(end);
        }
        Added::Piece
    }

    fn take(&mut self, at: usize, fragment: &Fragment<'_>) {
        let piece = Piece {
            offset: fragment.offset,
            payload: fragment.payload.to_vec(),
        };
        self.pieces.insert(at, piece);
        self.ecn_seen |= 1 << fragment.ecn.bits();
        if fragment.offset == 0 {
            self.protocol = fragment.protocol;
            let len = fragment.packet.len().min(BEGINNING_BYTES);
            self.beginning = fragment.packet.get(..len).unwrap_or_default().to_vec();
        }
    }

    /// The payload, if all of it is there.
    pub(super) fn take_whole(&self) -> Option<Vec<u8>> {
        let end = self.end?;
        let mut expected = 0;
        for piece in &self.pieces {
            if piece.offset != expected {
                return None;
            }
            expected = piece.end();
        }
        if expected != end {
            return None;
        }
        let mut whole = Vec::with_capacity(end.into());
        for piece in &self.pieces {
            whole.extend_from_slice(&piece.payload);
        }
        debug_assert_eq!(whole.len(), usize::from(end));
        Some(whole)
    }

    /// Forgets the pieces; says how many bytes that gives back.
    pub(super) fn give_up(&mut self) -> usize {
        let freed = self.size_bytes();
        self.is_given_up = true;
        self.pieces = Vec::new();
        self.beginning = Vec::new();
        freed
    }

    pub(super) const fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    pub(super) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The front of the first fragment's packet, if it has come.
    pub(super) fn beginning(&self) -> Option<&[u8]> {
        Some(self.beginning.as_slice()).filter(|beginning| !beginning.is_empty())
    }

    /// What the pieces say together (RFC 3168 5.3); `None` if they contradict each other.
    pub(super) fn ecn(&self) -> Option<Ecn> {
        let seen = |ecn: Ecn| self.ecn_seen & (1 << ecn.bits()) != 0;
        let (deaf, marked) = (seen(Ecn::NotCapable), seen(Ecn::CongestionExperienced));
        match (deaf, marked, seen(Ecn::Capable0), seen(Ecn::Capable1)) {
            (true, true, _, _) => None,
            (false, true, _, _) => Some(Ecn::CongestionExperienced),
            (false, false, true, false) => Some(Ecn::Capable0),
            (false, false, false, true) => Some(Ecn::Capable1),
            _ => Some(Ecn::NotCapable),
        }
    }

    /// Bytes of the pieces, what it takes to keep them included.
    pub(super) fn size_bytes(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| piece.payload.len() + PIECE_BYTES)
            .sum()
    }
}

impl Piece {
    fn end(&self) -> u16 {
        u16::try_from(usize::from(self.offset) + self.payload.len()).unwrap_or(u16::MAX)
    }
}

/// Pieces of one datagram: 64 KiB over links of 576 bytes take 119.
const PIECES_MAX: usize = 128;

/// Bytes kept of the first fragment's packet: what an error about it says at the least, with all headers.
const BEGINNING_BYTES: usize = 128;
