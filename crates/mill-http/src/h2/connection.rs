//! One connection, on either side: the peer's bytes in, events out; what is owed to the peer is collected.

/// What is said of priorities.
mod prioritizing;
/// From frames to events.
mod receiving;
/// What may be sent, and which stream is next.
mod sending;

use super::abuse::{Abuse, Cost};
use super::error::ErrorCode;
use super::frame::{self, FrameHeader, HEADER_BYTES, ID_MAX, PREFACE, StreamId};
use super::hpack::{Decoder, Encoder};
use super::limits::Limits;
use super::priority::Priority;
use super::request::Memory;
pub use super::request::{HeadFacts, Malformed};
use super::settings::{Settings, WINDOW_BYTES};
use super::stream::Stream;
use alloc::vec::Vec;
use core::ops::Range;

/// The state of a connection. Bounds: streams by our SETTINGS, header blocks and everything else by [`Limits`]; the output
/// by the caller, which takes it after each batch of bytes.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    ours: Settings,
    theirs: Settings,
    decoder: Decoder,
    encoder: Encoder,
    /// By number.
    streams: Vec<Stream>,
    /// The latest stream that the peer has begun.
    last_of_peer: StreamId,
    next_own: StreamId,
    send_window: i64,
    /// Content since the last WINDOW_UPDATE of the connection.
    received: u32,
    /// Bytes of the client's preface that have arrived; all of them where there is none.
    preface_seen: usize,
    has_settings: bool,
    /// The peer has acknowledged ours; until then it may keep to the window that holds at first (RFC 9113 6.9.2).
    is_acknowledged: bool,
    /// A block that CONTINUATION goes on with.
    block: Option<Block>,
    fragments: Vec<u8>,
    /// A block and a field's name while they are made; kept for their memory.
    block_out: Vec<u8>,
    name: Vec<u8>,
    memory: Memory,
    abuse: Abuse,
    /// What PRIORITY_UPDATE has said of streams that have not begun: as many as may still begin.
    early_priorities: Vec<(StreamId, Priority)>,
    now_seconds: u64,
    /// What is to be sent: answers, and what is owed to the peer.
    out: Vec<u8>,
    /// The last stream that we have promised to answer.
    goaway: Option<StreamId>,
    /// The last stream that the peer has promised to answer.
    peer_goaway: Option<StreamId>,
    is_ended: bool,
    /// Streams that our side has reset: the peer may not know yet.
    reset_by_us: [StreamId; RESETS_KNOWN],
    resets_known: usize,
    sends: u64,
    heads: HeadBytes,
}

/// The length of fields that a client was answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadBytes {
    /// As they were received (HPACK).
    pub coded: u64,
    /// Names and values.
    pub fields: u64,
}

/// The side of a connection that this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// A block that is not complete.
#[derive(Clone, Copy, Debug)]
struct Block {
    stream: StreamId,
    end: bool,
    continuations: u32,
}

/// What the peer's bytes mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// So many unread bytes are needed.
    NeedMore(usize),
    /// Nothing for the caller.
    Handled,
    /// A new request, whose text [`Connection::head`] has until the next event; the stream ends with it, or content follows.
    Head {
        stream: StreamId,
        end: bool,
        facts: HeadFacts,
    },
    /// On a client's side: a head of the answer, whose text (without the empty line at its end) [`Connection::head`] has
    /// until the next event. Interim ones come before the final one.
    Answer {
        stream: StreamId,
        status: u16,
        end: bool,
    },
    /// On a client's side: the fields behind the content, which has ended with them; their lines are in [`Connection::head`].
    Trailers { stream: StreamId },
    /// Content: this range of the bytes. The window is granted anew by [`Connection::taken`].
    Data {
        stream: StreamId,
        range: Range<usize>,
        end: bool,
    },
    /// The peer has ended its side without further content, perhaps by trailers.
    End { stream: StreamId },
    /// The peer has ended the whole stream; or it was reset for its faults, in which case there are words for the log.
    Reset {
        stream: StreamId,
        code: ErrorCode,
        fault: Option<Malformed>,
    },
    /// Some streams may send that could not.
    Sendable,
    /// The peer will begin no further streams, and knows of none behind this one.
    Goaway { last: StreamId },
    /// The connection has ended by the peer's fault: send what is owed, and close.
    Ended { code: ErrorCode, fault: Malformed },
}

/// Why a frame is not accepted.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Connection(ErrorCode, Malformed),
    Stream(StreamId, ErrorCode, Malformed),
}

impl Connection {
    /// A server's side. Its SETTINGS are in the output at once.
    pub fn server(settings: Settings, limits: Limits) -> Self {
        let mut this = Self::new(Role::Server, settings, limits);
        frame::emit_settings(&settings.of_server(), &mut this.out);
        this.grant_connection(CONNECTION_WINDOW - WINDOW_BYTES);
        this
    }

    /// A client's side. The preface and its SETTINGS are in the output at once.
    pub fn client(settings: Settings, limits: Limits) -> Self {
        let mut this = Self::new(Role::Client, settings, limits);
        this.out.extend_from_slice(PREFACE);
        frame::emit_settings(&settings.of_client(), &mut this.out);
        this.grant_connection(CONNECTION_WINDOW - WINDOW_BYTES);
        this
    }

    fn new(role: Role, ours: Settings, limits: Limits) -> Self {
        Self {
            role,
            limits,
            ours,
            theirs: Settings {
                // A server has nothing that could be pushed to it (RFC 9113 6.5.2).
                enable_push: role == Role::Server,
                ..Settings::default()
            },
            decoder: Decoder::new(ours.header_table_size as usize),
            encoder: Encoder::new(),
            streams: Vec::new(),
            last_of_peer: 0,
            next_own: 1,
            send_window: i64::from(WINDOW_BYTES),
            received: 0,
            preface_seen: if role == Role::Server {
                0
            } else {
                PREFACE.len()
            },
            has_settings: false,
            is_acknowledged: false,
            block: None,
            fragments: Vec::new(),
            block_out: Vec::new(),
            name: Vec::new(),
            memory: Memory::default(),
            abuse: Abuse::default(),
            early_priorities: Vec::new(),
            now_seconds: 0,
            out: Vec::new(),
            goaway: None,
            peer_goaway: None,
            is_ended: false,
            reset_by_us: [0; RESETS_KNOWN],
            resets_known: 0,
            sends: 0,
            heads: HeadBytes::default(),
        }
    }

    /// Takes at most one frame from the front of the unread bytes; returns how many of them are done with. `now_seconds`
    /// only ever grows.
    pub fn on_bytes(&mut self, bytes: &[u8], now_seconds: u64) -> (usize, Event) {
        self.now_seconds = now_seconds;
        if self.is_ended {
            return (bytes.len(), Event::Handled);
        }
        if let Some(rest) = PREFACE.get(self.preface_seen..)
            && !rest.is_empty()
        {
            return self.on_preface(bytes, rest);
        }
        let Some(header) = FrameHeader::parse(bytes) else {
            return (0, Event::NeedMore(HEADER_BYTES));
        };
        if header.len > self.ours.max_frame_size as usize {
            let fault = Malformed("a frame that is too long");
            return (0, self.fail(ErrorCode::FRAME_SIZE_ERROR, fault));
        }
        let total = HEADER_BYTES + header.len;
        let Some(payload) = bytes.get(HEADER_BYTES..total) else {
            return (0, Event::NeedMore(total));
        };
        let event = match self.on_frame(header, payload) {
            Ok(event) => event,
            Err(Fault::Connection(code, fault)) => self.fail(code, fault),
            Err(Fault::Stream(stream, code, fault)) => self.refuse(stream, code, fault),
        };
        (total, event)
    }

    fn on_preface(&mut self, bytes: &[u8], rest: &[u8]) -> (usize, Event) {
        let len = bytes.len().min(rest.len());
        if bytes.get(..len) != rest.get(..len) {
            let fault = Malformed("an invalid connection preface");
            return (0, self.fail(ErrorCode::PROTOCOL_ERROR, fault));
        }
        self.preface_seen += len;
        let event = match len == rest.len() {
            true => Event::Handled,
            false => Event::NeedMore(rest.len() - len),
        };
        (len, event)
    }

    /// The text of the head that the last event has told of.
    pub fn head(&self) -> &[u8] {
        &self.memory.text
    }

    /// What is to be sent, in order: to be taken and emptied by the caller.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Streams that are open.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    pub fn has_ended(&self) -> bool {
        self.is_ended
    }

    /// Says that no further streams will be answered. Those that are open go on.
    pub fn go_away(&mut self) {
        if self.goaway.is_none() && !self.is_ended {
            self.goaway = Some(self.last_of_peer);
            frame::emit_goaway(self.last_of_peer, ErrorCode::NO_ERROR, &mut self.out);
        }
    }

    pub fn is_going_away(&self) -> bool {
        self.goaway.is_some()
    }

    /// A client's new stream; `None`: the server allows no more of them now, or at all.
    pub fn open(&mut self) -> Option<StreamId> {
        let is_full = self.streams.len() >= self.streams_max();
        if is_full || !self.may_open() {
            return None;
        }
        let stream = self.next_own;
        self.next_own += 2;
        let new = self.new_stream(stream, false);
        self.streams.push(new);
        Some(stream)
    }

    /// Streams that the server allows at once.
    pub fn streams_max(&self) -> usize {
        usize::try_from(self.theirs.max_concurrent_streams).unwrap_or(usize::MAX)
    }

    /// Whether there will be further streams on this connection.
    pub const fn may_open(&self) -> bool {
        !self.is_ended && self.peer_goaway.is_none() && self.next_own <= ID_MAX
    }

    /// What was received on a client's side since the last call.
    pub fn take_heads(&mut self) -> HeadBytes {
        core::mem::take(&mut self.heads)
    }

    /// Whether the server's SETTINGS have come.
    pub const fn has_settings(&self) -> bool {
        self.has_settings
    }

    /// Ends a stream early.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if self.forget(stream).is_none() {
            return;
        }
        self.emit_reset(stream, code);
    }

    /// RFC 9113 5.4.2: what the peer sends before it knows of the reset is ignored.
    fn emit_reset(&mut self, stream: StreamId, code: ErrorCode) {
        frame::emit_reset(stream, code, &mut self.out);
        let place = self.resets_known % RESETS_KNOWN;
        if let Some(known) = self.reset_by_us.get_mut(place) {
            *known = stream;
        }
        self.resets_known += 1;
    }

    fn refuse(&mut self, stream: StreamId, code: ErrorCode, fault: Malformed) -> Event {
        self.forget(stream);
        self.emit_reset(stream, code);
        // A peer can provoke resets as well as send them.
        match self.count(Cost::Reset, "streams that had to be reset") {
            Err(Fault::Connection(code, fault)) => self.fail(code, fault),
            _ => Event::Reset {
                stream,
                code,
                fault: Some(fault),
            },
        }
    }

    fn fail(&mut self, code: ErrorCode, fault: Malformed) -> Event {
        self.is_ended = true;
        // RFC 9113 6.8: the number never grows.
        let last = self.goaway.unwrap_or(self.last_of_peer);
        frame::emit_goaway(last, code, &mut self.out);
        Event::Ended { code, fault }
    }

    fn count(&mut self, cost: Cost, what: &'static str) -> Result<(), Fault> {
        let counted = self.abuse.count(cost, &self.limits, self.now_seconds);
        counted.map_err(|code| Fault::Connection(code, Malformed(what)))
    }

    fn place(&self, stream: StreamId) -> Result<usize, usize> {
        self.streams.binary_search_by_key(&stream, |known| known.id)
    }

    fn stream(&mut self, stream: StreamId) -> Option<&mut Stream> {
        let place = self.place(stream).ok()?;
        self.streams.get_mut(place)
    }

    fn forget(&mut self, stream: StreamId) -> Option<Stream> {
        let place = self.place(stream).ok()?;
        Some(self.streams.remove(place))
    }

    fn forget_if_closed(&mut self, stream: StreamId) {
        if self.stream(stream).is_some_and(|known| known.is_closed()) {
            self.forget(stream);
            self.abuse.reward();
        }
    }

    fn grant_connection(&mut self, increment: u32) {
        frame::emit_window_update(0, increment, &mut self.out);
    }

    fn new_stream(&self, id: StreamId, end: bool) -> Stream {
        let granted = self.ours.initial_window_size;
        let receive_window = match self.is_acknowledged {
            true => granted,
            false => granted.max(WINDOW_BYTES),
        };
        Stream {
            id,
            is_remote_closed: end,
            has_head: false,
            is_local_closed: false,
            send_window: i64::from(self.theirs.initial_window_size),
            receive_window: i64::from(receive_window),
            receive_window_bytes: granted,
            taken: 0,
            promised: None,
            priority: Priority::default(),
            is_priority_updated: false,
            wants_to_send: false,
            sent_at: 0,
        }
    }
}

/// Content is bounded by the windows of streams; the connection's is as large as it can be, as nginx's is.
const CONNECTION_WINDOW: u32 = ID_MAX;

/// Streams reset by us that are remembered: frames of them may still come.
const RESETS_KNOWN: usize = 32;

#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod tests;
