//! One end of a connection, as the network keeps it.

use crate::client::Reading;
use crate::files::SimFile;
use crate::link::Link;
use mill_runtime::address::Address;
use mill_runtime::payload::Shared;
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use std::collections::VecDeque;
use std::ops::Range;

/// The two ends of connection n are 2n, which connected, and 2n + 1, which accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointId(pub(crate) usize);

impl EndpointId {
    pub(crate) const fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }

    pub(crate) const fn connection(self) -> usize {
        self.0 / 2
    }

    pub(crate) const fn is_accepting(self) -> bool {
        self.0 % 2 == 1
    }
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) owner: Owner,
    pub(crate) local: Address,
    pub(crate) peer: Address,
    pub(crate) link: Link,
    /// Bytes may be sent.
    pub(crate) established: bool,
    pub(crate) error: Option<StreamError>,
    pub(crate) reset_on_close: bool,
    /// What [`Stream::mark`](mill_runtime::stream::Stream::mark) tells.
    pub(crate) mark: Option<u32>,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
}

/// What uses an end.
#[derive(Debug)]
pub(crate) enum Owner {
    /// It waits to be accepted, or the request to connect is still on its way.
    Nobody,
    Task {
        engine: usize,
        task: TaskId,
    },
    Client(ClientSide),
    /// Closed by its owner.
    Gone,
}

/// What a scripted client has seen.
#[derive(Debug, Default)]
pub(crate) struct ClientSide {
    pub(crate) reading: Reading,
    /// A slow reading is on the agenda.
    pub(crate) reading_due: bool,
    pub(crate) received: Vec<u8>,
    pub(crate) segments_len: Vec<usize>,
    pub(crate) ended_at: Option<Duration>,
    pub(crate) was_reset: bool,
}

#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) queue: VecDeque<Piece>,
    /// Bytes in `queue`.
    pub(crate) queued: u64,
    /// Bytes that left `queue`.
    pub(crate) sent: u64,
    /// Bytes sent and not yet known to be read; at most `window`, which the receiver may shrink below it never.
    pub(crate) outstanding: u64,
    pub(crate) window: u64,
    pub(crate) fin: Fin,
    /// When the link has room for the next segment.
    pub(crate) link_free_at: Instant,
    pub(crate) last_arrival: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    NotYet,
    /// It follows the queue.
    Asked,
    Sent,
}

/// Unread segments with their boundaries.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    pub(crate) unread: VecDeque<Vec<u8>>,
    /// Bytes in `unread`.
    pub(crate) unread_len: usize,
    /// Bytes of `unread` that the owner was told of.
    pub(crate) seen_len: usize,
    pub(crate) finished: bool,
}

/// A part of the queue.
#[derive(Debug)]
pub(crate) enum Piece {
    Copy(Vec<u8>, usize),
    Shared(Shared, Range<usize>),
    File {
        file: SimFile,
        offset: u64,
        len: u64,
    },
}

impl Endpoint {
    pub(crate) fn new(local: Address, peer: Address, link: Link) -> Self {
        Self {
            owner: Owner::Nobody,
            local,
            peer,
            link,
            established: false,
            error: None,
            reset_on_close: false,
            mark: None,
            sending: Sending {
                queue: VecDeque::new(),
                queued: 0,
                sent: 0,
                outstanding: 0,
                window: link.window_bytes,
                fin: Fin::NotYet,
                link_free_at: Instant::default(),
                last_arrival: Instant::default(),
            },
            receiving: Receiving::default(),
        }
    }

    pub(crate) fn client(&self) -> Option<&ClientSide> {
        match &self.owner {
            Owner::Client(side) => Some(side),
            _ => None,
        }
    }
}

impl Sending {
    pub(crate) fn push(&mut self, piece: Piece, len: u64) {
        if len > 0 {
            self.queue.push_back(piece);
            self.queued += len;
        }
    }

    /// Forgets what was not sent; returns how many bytes that were.
    pub(crate) fn discard(&mut self) -> u64 {
        self.queue.clear();
        std::mem::take(&mut self.queued)
    }

    /// Takes up to `len_max` bytes off the queue.
    pub(crate) fn next_segment(&mut self, len_max: u64) -> Result<Vec<u8>, StreamError> {
        let mut segment = Vec::new();
        while let Some(piece) = self.queue.front_mut() {
            let room = len_max - segment.len() as u64;
            if room == 0 {
                break;
            }
            piece.take(room, &mut segment)?;
            if piece.is_empty() {
                self.queue.pop_front();
            }
        }
        let len = segment.len() as u64;
        self.queued -= len;
        self.sent += len;
        self.outstanding += len;
        Ok(segment)
    }
}

impl Receiving {
    pub(crate) fn push(&mut self, segment: Vec<u8>) {
        self.unread_len += segment.len();
        self.unread.push_back(segment);
    }

    /// All unread bytes in one piece: the segment where it lies if there is one, else gathered.
    pub(crate) fn take_contiguous(&mut self) -> Vec<u8> {
        let first = self.unread.pop_front().unwrap_or_default();
        self.unread_len = 0;
        self.seen_len = 0;
        self.unread.drain(..).fold(first, |mut gathered, segment| {
            gathered.extend_from_slice(&segment);
            gathered
        })
    }

    /// Puts back what was not consumed of [`Receiving::take_contiguous`].
    pub(crate) fn put_back(&mut self, left: Vec<u8>) {
        debug_assert!(
            self.unread.is_empty(),
            "nothing arrives while bytes are lent"
        );
        if !left.is_empty() {
            self.push(left);
        }
        self.seen_len = self.unread_len;
    }

    /// Takes up to `len_max` bytes, segment by segment.
    pub(crate) fn take_up_to(&mut self, len_max: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < len_max
            && let Some(segment) = self.unread.front_mut()
        {
            let len = segment.len().min(len_max - taken.len());
            taken.extend(segment.drain(..len));
            if segment.is_empty() {
                self.unread.pop_front();
            }
        }
        self.unread_len -= taken.len();
        taken
    }
}

impl Piece {
    fn is_empty(&self) -> bool {
        match self {
            Self::Copy(bytes, taken) => *taken == bytes.len(),
            Self::Shared(_, range) => range.is_empty(),
            Self::File { len, .. } => *len == 0,
        }
    }

    fn take(&mut self, len_max: u64, segment: &mut Vec<u8>) -> Result<(), StreamError> {
        let room = usize::try_from(len_max).unwrap_or(usize::MAX);
        match self {
            Self::Copy(bytes, taken) => {
                let end = bytes.len().min(taken.saturating_add(room));
                segment.extend_from_slice(&bytes[*taken..end]);
                *taken = end;
            }
            Self::Shared(bytes, range) => {
                let end = range.end.min(range.start.saturating_add(room));
                let piece = bytes.get(range.start..end);
                segment.extend_from_slice(piece.ok_or(StreamError::Truncated)?);
                range.start = end;
            }
            Self::File { file, offset, len } => {
                let wanted = len_max.min(*len);
                file.append_to(*offset, wanted, segment)?;
                *offset += wanted;
                *len -= wanted;
            }
        }
        Ok(())
    }
}
