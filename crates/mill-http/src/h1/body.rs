//! The content of a request: its length, and the chunked coding, RFC 9112 6 and 7.

use crate::field::is_value_byte;
use crate::head::RequestHead;
use crate::limits::{CHUNK_SIZE_DIGITS_MAX, CONTENT_LENGTH_MAX, ChunkedRules};

/// How a message's content ends, RFC 9112 6.3. A request without length has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    Empty,
    /// Bytes, not 0.
    Length(u64),
    Chunked,
}

impl BodyKind {
    pub const fn of(head: &RequestHead) -> Self {
        match head.content_length {
            _ if head.chunked => Self::Chunked,
            None | Some(0) => Self::Empty,
            Some(length) => Self::Length(length),
        }
    }
}

/// Counts a content of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthBody {
    remaining: u64,
}

impl LengthBody {
    pub const fn new(length: u64) -> Self {
        Self { remaining: length }
    }

    /// The bytes at the beginning of `bytes` that are content; the rest is the next request.
    pub fn on_bytes<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let len = usize::try_from(self.remaining)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.remaining -= len as u64;
        bytes.get(..len).unwrap_or(bytes)
    }

    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    pub const fn is_complete(&self) -> bool {
        self.remaining == 0
    }
}

/// The result of [`ChunkedBody::on_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkedEvent<'a> {
    /// Content, not empty. Call again with the bytes after the consumed ones.
    Content(&'a [u8]),
    /// All bytes were consumed; more are needed.
    NeedMore,
    /// The body is complete, trailers included. The next request follows.
    End,
    /// Answer 400 and close; nginx logs "client sent invalid chunked body".
    Invalid,
}

/// Decodes the chunked coding. It keeps only its state, so it never needs more than one new byte and never buffers.
/// Trailer fields must follow the rules of field lines. They are discarded (RFC 9110 6.5.1 allows it, and nginx does)
/// unless `on_bytes_with` is called.
#[derive(Clone, Copy, Debug)]
pub struct ChunkedBody {
    rules: ChunkedRules,
    state: State,
    /// Of the current chunk.
    remaining: u64,
    digits: u8,
    extension_bytes: u32,
    trailer_bytes: u32,
    framing_bytes: u64,
    content_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    /// Blanks after the size (RFC 9112 7.1.1, "bad" whitespace).
    SizeEnd,
    Extension,
    SizeLf,
    Content,
    ContentCr,
    ContentLf,
    /// At the beginning of a trailer line.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    End,
    Invalid,
}

impl State {
    const fn is_in_trailers(self) -> bool {
        matches!(
            self,
            Self::TrailerStart | Self::TrailerName | Self::TrailerValue | Self::TrailerLf
        )
    }
}

impl ChunkedBody {
    pub const fn new(rules: ChunkedRules) -> Self {
        Self {
            rules,
            state: State::Size,
            remaining: 0,
            digits: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            framing_bytes: 0,
            content_bytes: 0,
        }
    }

    /// Takes the bytes that have arrived; returns how many were consumed, and the result. After `End` and `Invalid` it
    /// consumes nothing and returns the same again.
    pub fn on_bytes<'a>(&mut self, bytes: &'a [u8]) -> (usize, ChunkedEvent<'a>) {
        self.on_bytes_with(bytes, |_| {})
    }

    /// As `on_bytes`, and passes on each byte of the trailer section, the line ends included.
    pub fn on_bytes_with<'a>(
        &mut self,
        bytes: &'a [u8],
        mut on_trailer: impl FnMut(u8),
    ) -> (usize, ChunkedEvent<'a>) {
        let mut consumed = 0;
        loop {
            match self.state {
                State::End => return (consumed, ChunkedEvent::End),
                State::Invalid => return (consumed, ChunkedEvent::Invalid),
                State::Content => {
                    let rest = bytes.get(consumed..).unwrap_or(&[]);
                    if rest.is_empty() {
                        return (consumed, ChunkedEvent::NeedMore);
                    }
                    let content = self.content(rest);
                    return (consumed + content.len(), ChunkedEvent::Content(content));
                }
                state => {
                    let Some(byte) = bytes.get(consumed) else {
                        return (consumed, ChunkedEvent::NeedMore);
                    };
                    consumed += 1;
                    if state.is_in_trailers() {
                        on_trailer(*byte);
                    }
                    self.state = self.next_state(state, *byte);
                    self.count_framing();
                }
            }
        }
    }

    /// Content bytes decoded so far.
    pub const fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Content bytes decoded so far, and those that the current chunk is still to bring.
    pub const fn announced_bytes(&self) -> u64 {
        self.content_bytes.saturating_add(self.remaining)
    }

    fn content<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let len = usize::try_from(self.remaining)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.remaining -= len as u64;
        self.content_bytes = self.content_bytes.saturating_add(len as u64);
        if self.remaining == 0 {
            self.state = State::ContentCr;
        }
        bytes.get(..len).unwrap_or(bytes)
    }

    fn count_framing(&mut self) {
        self.framing_bytes = self.framing_bytes.saturating_add(1);
        let allowed = self
            .content_bytes
            .saturating_mul(u64::from(self.rules.framing_bytes_per_content_byte_max))
            .saturating_add(u64::from(self.rules.trailer_bytes_max))
            .saturating_add(u64::from(self.rules.extension_bytes_max));
        if self.framing_bytes > allowed && self.state != State::End {
            self.state = State::Invalid;
        }
    }

    fn next_state(&mut self, state: State, byte: u8) -> State {
        match (state, byte) {
            (State::Size, _) => self.on_size_byte(byte),
            (State::SizeEnd, _) => self.after_size(byte),
            (State::Extension, b'\r') => State::SizeLf,
            (State::Extension, _) => self.on_extension_byte(byte),
            (State::SizeLf, b'\n') if self.remaining == 0 => State::TrailerStart,
            (State::SizeLf, b'\n') => State::Content,
            (State::ContentCr, b'\r') => State::ContentLf,
            (State::ContentLf, b'\n') => {
                self.digits = 0;
                self.extension_bytes = 0;
                State::Size
            }
            (State::EndLf, b'\n') => State::End,
            (
                State::TrailerStart | State::TrailerName | State::TrailerValue | State::TrailerLf,
                _,
            ) => self.on_trailer_byte(state, byte),
            _ => State::Invalid,
        }
    }

    fn on_size_byte(&mut self, byte: u8) -> State {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if self.digits == 0 => return State::Invalid,
            _ => return self.after_size(byte),
        };
        if self.digits >= CHUNK_SIZE_DIGITS_MAX {
            return State::Invalid;
        }
        self.digits += 1;
        // Sixteen digits never overflow 64 bits.
        self.remaining = self.remaining << 4 | u64::from(digit);
        if self.remaining > CONTENT_LENGTH_MAX {
            State::Invalid
        } else {
            State::Size
        }
    }

    fn after_size(&mut self, byte: u8) -> State {
        match byte {
            b'\r' => State::SizeLf,
            b';' => State::Extension,
            b' ' | b'\t' => {
                if self.on_extension_byte(byte) == State::Invalid {
                    return State::Invalid;
                }
                State::SizeEnd
            }
            _ => State::Invalid,
        }
    }

    fn on_extension_byte(&mut self, byte: u8) -> State {
        self.extension_bytes += 1;
        if self.extension_bytes > self.rules.extension_bytes_max || !is_value_byte(byte) {
            return State::Invalid;
        }
        State::Extension
    }

    /// The same rules as for the head's field lines: no blank in or after a name, no obs-fold, no
    /// control byte, CRLF only.
    fn on_trailer_byte(&mut self, state: State, byte: u8) -> State {
        self.trailer_bytes += 1;
        if self.trailer_bytes > self.rules.trailer_bytes_max {
            return State::Invalid;
        }
        match (state, byte) {
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart, b':') => State::Invalid,
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerStart | State::TrailerName, 0..=b' ' | 0x7f) => State::Invalid,
            (State::TrailerStart | State::TrailerName, _) => State::TrailerName,
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerValue, _) if is_value_byte(byte) => State::TrailerValue,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            _ => State::Invalid,
        }
    }
}

#[cfg(test)]
mod tests;
