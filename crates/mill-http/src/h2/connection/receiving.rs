//! From frames to events: RFC 9113 6, with the states of 5.1.

use super::prioritizing::depends_on;
use super::{Block, Connection, Event, Fault, Malformed, Role};
use crate::h2::abuse::Cost;
use crate::h2::answer::{AnswerText, emit_line};
use crate::h2::error::ErrorCode;
use crate::h2::frame::{
    self, FrameHeader, HEADER_BYTES, ID_MAX, SETTING_BYTES, StreamId, flag, kind,
};
use crate::h2::request::{RequestText, TrailerCheck};
use crate::h2::settings::Settings;

pub(super) const fn connection_fault(code: ErrorCode, words: &'static str) -> Fault {
    Fault::Connection(code, Malformed(words))
}

pub(super) const fn protocol_error(words: &'static str) -> Fault {
    connection_fault(ErrorCode::PROTOCOL_ERROR, words)
}

impl Connection {
    pub(super) fn on_frame(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        if self.block.is_some() && header.kind != kind::CONTINUATION {
            return Err(protocol_error("a frame inside of a header block"));
        }
        if !self.has_settings && header.kind != kind::SETTINGS {
            return Err(protocol_error("no SETTINGS at first"));
        }
        match header.kind {
            kind::DATA => self.on_data(header, payload),
            kind::HEADERS => self.on_headers(header, payload),
            kind::CONTINUATION => self.on_continuation(header, payload),
            kind::PRIORITY => self.on_priority(header, payload),
            kind::RST_STREAM => self.on_reset(header, payload),
            kind::SETTINGS => self.on_settings(header, payload),
            kind::PUSH_PROMISE => Err(protocol_error("PUSH_PROMISE")),
            kind::PING => self.on_ping(header, payload),
            kind::GOAWAY => self.on_goaway(header, payload),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload),
            kind::PRIORITY_UPDATE => self.on_priority_update(header, payload),
            // RFC 9113 4.1: unknown types are ignored.
            _ => Ok(Event::Handled),
        }
    }

    fn on_data(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        let stream = header.stream;
        let bytes = u32::try_from(header.len).unwrap_or(u32::MAX);
        if stream == 0 {
            return Err(protocol_error("DATA without a stream"));
        }
        self.received = self.received.saturating_add(bytes);
        if self.received >= CONNECTION_UPDATE_BYTES {
            let received = core::mem::take(&mut self.received);
            self.grant_connection(received);
        }
        let (start, content) = unpadded(header, payload)?;
        let end = header.has(flag::END_STREAM);
        if content.is_empty() && !end {
            self.count(Cost::EmptyFrame, "DATA without content")?;
        }
        self.check_known(stream, "DATA")?;
        self.abuse.allow_one();
        let is_client = self.role == Role::Client;
        let Some(known) = self.stream(stream) else {
            return self.on_closed(stream);
        };
        if known.is_remote_closed {
            let fault = Malformed("DATA behind the end of its stream");
            return Err(Fault::Stream(stream, ErrorCode::STREAM_CLOSED, fault));
        }
        if is_client && !known.has_head {
            let fault = Malformed("DATA before its head");
            return Err(Fault::Stream(stream, ErrorCode::PROTOCOL_ERROR, fault));
        }
        known.receive_window -= i64::from(bytes);
        if known.receive_window < 0 {
            let fault = Malformed("more content than the window allows");
            return Err(Fault::Stream(stream, ErrorCode::FLOW_CONTROL_ERROR, fault));
        }
        if !known.receive(content.len(), end) {
            let fault = Malformed("another length of content than Content-Length says");
            return Err(Fault::Stream(stream, ErrorCode::PROTOCOL_ERROR, fault));
        }
        // Padding is taken at once.
        let padding = header.len - content.len();
        known.taken += u32::try_from(padding).unwrap_or(u32::MAX);
        let range = HEADER_BYTES + start..HEADER_BYTES + start + content.len();
        self.forget_if_closed(stream);
        Ok(Event::Data { stream, range, end })
    }

    /// A frame of a stream that has ended: harmless if our side has reset it and the peer cannot know.
    fn on_closed(&mut self, stream: StreamId) -> Result<Event, Fault> {
        let is_client = self.role == Role::Client;
        if is_client
            || self.reset_by_us.contains(&stream)
            || self.goaway.is_some_and(|last| stream > last)
        {
            return Ok(Event::Handled);
        }
        let fault = Malformed("a frame of a closed stream");
        Err(Fault::Stream(stream, ErrorCode::STREAM_CLOSED, fault))
    }

    /// A stream that neither side has begun has no frames but HEADERS and PRIORITY.
    pub(super) fn check_known(&self, stream: StreamId, what: &'static str) -> Result<(), Fault> {
        let is_of_peer = (stream % 2 == 1) == (self.role == Role::Server);
        let is_idle = match is_of_peer {
            true => stream > self.last_of_peer,
            false => stream >= self.next_own,
        };
        if is_idle {
            Err(protocol_error(what))
        } else {
            Ok(())
        }
    }

    fn on_headers(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        let stream = header.stream;
        if stream == 0 {
            return Err(protocol_error("HEADERS without a stream"));
        }
        let (_, mut fragment) = unpadded(header, payload)?;
        if header.has(flag::PRIORITY) {
            let Some((priority, rest)) = fragment.split_first_chunk::<5>() else {
                return Err(connection_fault(ErrorCode::FRAME_SIZE_ERROR, "HEADERS"));
            };
            fragment = rest;
            if depends_on(priority) == stream {
                return Err(protocol_error("a stream that depends on itself"));
            }
        }
        let block = Block {
            stream,
            end: header.has(flag::END_STREAM),
            continuations: 0,
        };
        if header.has(flag::END_HEADERS) {
            return self.on_block(block, fragment);
        }
        if fragment.is_empty() {
            self.count(Cost::EmptyFrame, "HEADERS without a fragment")?;
        }
        self.fragments.clear();
        self.fragments.extend_from_slice(fragment);
        self.block = Some(block);
        Ok(Event::Handled)
    }

    fn on_continuation(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        let Some(mut block) = self.block.take() else {
            return Err(protocol_error("CONTINUATION without HEADERS"));
        };
        if header.stream != block.stream {
            return Err(protocol_error("CONTINUATION of another stream"));
        }
        block.continuations += 1;
        let too_long = self.fragments.len() + payload.len() > self.limits.block_bytes;
        if too_long || block.continuations > self.limits.continuations {
            let words = "too long a header block";
            return Err(connection_fault(ErrorCode::ENHANCE_YOUR_CALM, words));
        }
        if payload.is_empty() {
            self.count(Cost::EmptyFrame, "CONTINUATION without a fragment")?;
        }
        self.fragments.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(Event::Handled);
        }
        let fragments = core::mem::take(&mut self.fragments);
        let event = self.on_block(block, &fragments);
        self.fragments = fragments;
        event
    }

    /// A whole header block. It is decoded whatever becomes of it: the table must stay the peer's.
    fn on_block(&mut self, block: Block, bytes: &[u8]) -> Result<Event, Fault> {
        let Block { stream, end, .. } = block;
        if self.role == Role::Client {
            return self.on_answer(stream, end, bytes);
        }
        if stream % 2 == 0 {
            return Err(protocol_error("a stream with an even number"));
        }
        if stream <= self.last_of_peer {
            return self.on_trailers(stream, end, bytes);
        }
        self.last_of_peer = stream;
        let early_priority = self.take_early_priority(stream);
        let has_extended_connect = self.ours.enable_connect_protocol;
        let most = self.limits.head_bytes;
        let mut text = RequestText::new(&mut self.memory, most, has_extended_connect);
        let decoded = (self.decoder).decode(bytes, |name, value| text.field(name, value));
        let finished = text.finish();
        decoded.map_err(|_| {
            connection_fault(ErrorCode::COMPRESSION_ERROR, "a malformed header block")
        })?;
        if self.goaway.is_some() {
            return Ok(Event::Handled);
        }
        if self.streams.len() >= self.ours.max_concurrent_streams as usize {
            self.count(Cost::RefusedStream, "more streams than announced")?;
            self.emit_reset(stream, ErrorCode::REFUSED_STREAM);
            return Ok(Event::Handled);
        }
        let facts =
            finished.map_err(|fault| Fault::Stream(stream, ErrorCode::PROTOCOL_ERROR, fault))?;
        let mut new = self.new_stream(stream, end);
        if let Some(priority) = early_priority {
            (new.priority, new.is_priority_updated) = (priority, true);
        }
        self.streams.push(new);
        Ok(Event::Head { stream, end, facts })
    }

    /// A block of an answer: a head, or trailers.
    fn on_answer(&mut self, stream: StreamId, end: bool, bytes: &[u8]) -> Result<Event, Fault> {
        self.check_known(stream, "HEADERS of a stream that was not begun")?;
        let known = self.stream(stream);
        let state = known.map(|known| (known.has_head, known.is_remote_closed));
        let most = self.limits.head_bytes;
        let malformed =
            |_| connection_fault(ErrorCode::COMPRESSION_ERROR, "a malformed header block");
        let of_stream = |fault| Fault::Stream(stream, ErrorCode::PROTOCOL_ERROR, fault);
        let heads = &mut self.heads;
        heads.coded += bytes.len() as u64;
        if let Some((true, false)) = state {
            let text = &mut self.memory.text;
            text.clear();
            let mut check = TrailerCheck::new(most);
            let decoded = self.decoder.decode(bytes, |name, value| {
                heads.fields += (name.len() + value.len()) as u64;
                if check.takes(name, value) {
                    emit_line(name, value, text);
                }
            });
            decoded.map_err(malformed)?;
            check.finish().map_err(of_stream)?;
            if !end {
                return Err(of_stream(Malformed(
                    "trailers that do not end their stream",
                )));
            }
            if let Some(known) = self.stream(stream)
                && !known.receive(0, true)
            {
                return Err(of_stream(LESS_CONTENT));
            }
            self.forget_if_closed(stream);
            return Ok(Event::Trailers { stream });
        }
        let mut text = AnswerText::new(&mut self.memory.text, most);
        let decoded = self.decoder.decode(bytes, |name, value| {
            heads.fields += (name.len() + value.len()) as u64;
            text.field(name, value);
        });
        let finished = text.finish();
        decoded.map_err(malformed)?;
        let Some(known) = self.stream(stream) else {
            return Ok(Event::Handled);
        };
        if known.is_remote_closed {
            let fault = Malformed("HEADERS behind the end of their stream");
            return Err(Fault::Stream(stream, ErrorCode::STREAM_CLOSED, fault));
        }
        let status = finished.map_err(of_stream)?;
        let is_interim = status < 200;
        if is_interim && end {
            return Err(of_stream(Malformed("an interim head that ends its stream")));
        }
        known.has_head = !is_interim;
        known.is_remote_closed = end;
        self.forget_if_closed(stream);
        Ok(Event::Answer {
            stream,
            status,
            end,
        })
    }

    /// `Content-Length` of the head that the last event has told of; the content has to keep to it. The error resets the
    /// stream: it has ended already.
    pub fn promise(&mut self, stream: StreamId, content_length: u64) -> Result<(), Malformed> {
        let Some(known) = self.stream(stream) else {
            return Ok(());
        };
        if known.is_remote_closed && content_length > 0 {
            self.reset(stream, ErrorCode::PROTOCOL_ERROR);
            return Err(Malformed("no content where Content-Length says some"));
        }
        known.promised = Some(content_length);
        Ok(())
    }

    fn on_trailers(&mut self, stream: StreamId, end: bool, bytes: &[u8]) -> Result<Event, Fault> {
        let mut check = TrailerCheck::new(self.limits.head_bytes);
        let decoded = self.decoder.decode(bytes, |name, value| {
            check.takes(name, value);
        });
        decoded.map_err(|_| {
            connection_fault(ErrorCode::COMPRESSION_ERROR, "a malformed header block")
        })?;
        let Some(known) = self.stream(stream) else {
            return match self.on_closed(stream) {
                // RFC 9113 5.1: numbers never go back.
                Err(_) => Err(connection_fault(
                    ErrorCode::STREAM_CLOSED,
                    "HEADERS of a closed stream",
                )),
                handled => handled,
            };
        };
        let fault = match () {
            () if known.is_remote_closed => Some((
                ErrorCode::STREAM_CLOSED,
                Malformed("HEADERS behind the end of their stream"),
            )),
            () if !end => Some((
                ErrorCode::PROTOCOL_ERROR,
                Malformed("trailers that do not end their stream"),
            )),
            () if !known.receive(0, true) => Some((ErrorCode::PROTOCOL_ERROR, LESS_CONTENT)),
            () => (check.finish())
                .err()
                .map(|fault| (ErrorCode::PROTOCOL_ERROR, fault)),
        };
        if let Some((code, fault)) = fault {
            return Err(Fault::Stream(stream, code, fault));
        }
        self.forget_if_closed(stream);
        Ok(Event::End { stream })
    }

    fn on_reset(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        let stream = header.stream;
        if stream == 0 {
            return Err(protocol_error("RST_STREAM without a stream"));
        }
        let Ok(code) = payload.try_into() else {
            return Err(connection_fault(ErrorCode::FRAME_SIZE_ERROR, "RST_STREAM"));
        };
        self.check_known(stream, "RST_STREAM of a stream that was not begun")?;
        if self.forget(stream).is_none() {
            return Ok(Event::Handled);
        }
        if self.role == Role::Server {
            self.count(Cost::Reset, "streams reset before they were answered")?;
        }
        Ok(Event::Reset {
            stream,
            code: ErrorCode(u32::from_be_bytes(code)),
            fault: None,
        })
    }

    fn on_settings(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        if header.stream != 0 {
            return Err(protocol_error("SETTINGS on a stream"));
        }
        let is_ack = header.has(flag::ACK);
        if !payload.len().is_multiple_of(SETTING_BYTES) || (is_ack && !payload.is_empty()) {
            return Err(connection_fault(ErrorCode::FRAME_SIZE_ERROR, "SETTINGS"));
        }
        if is_ack {
            self.is_acknowledged = true;
            return Ok(Event::Handled);
        }
        self.has_settings = true;
        self.count(Cost::Settings, "SETTINGS")?;
        // RFC 9113 6.5.3: in their order. A table that shrinks and grows again is empty in between.
        for setting in payload.chunks_exact(SETTING_BYTES) {
            let before = self.theirs;
            (self.theirs.apply(setting)).map_err(|code| connection_fault(code, "SETTINGS"))?;
            self.on_changed(before)?;
        }
        if self.role == Role::Client && self.theirs.enable_push {
            return Err(protocol_error("SETTINGS of a server that enable push"));
        }
        frame::emit_settings_ack(&mut self.out);
        Ok(Event::Sendable)
    }

    fn on_changed(&mut self, before: Settings) -> Result<(), Fault> {
        self.encoder
            .set_bytes_max(self.theirs.header_table_size as usize);
        let change =
            i64::from(self.theirs.initial_window_size) - i64::from(before.initial_window_size);
        for stream in &mut self.streams {
            if !stream.widen(change) {
                let words = "a window that is too large";
                return Err(connection_fault(ErrorCode::FLOW_CONTROL_ERROR, words));
            }
        }
        Ok(())
    }

    fn on_ping(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        if header.stream != 0 {
            return Err(protocol_error("PING on a stream"));
        }
        if payload.len() != PING_BYTES {
            return Err(connection_fault(ErrorCode::FRAME_SIZE_ERROR, "PING"));
        }
        if !header.has(flag::ACK) {
            self.count(Cost::Ping, "PING")?;
            frame::emit_ping_ack(payload, &mut self.out);
        }
        Ok(Event::Handled)
    }

    fn on_goaway(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        if header.stream != 0 {
            return Err(protocol_error("GOAWAY on a stream"));
        }
        // The last stream, and a code, which makes no difference.
        let Some(([a, b, c, d, _, _, _, _], _)) = payload.split_first_chunk::<8>() else {
            return Err(connection_fault(ErrorCode::FRAME_SIZE_ERROR, "GOAWAY"));
        };
        let last = u32::from_be_bytes([*a, *b, *c, *d]) & ID_MAX;
        self.peer_goaway = Some(last);
        Ok(Event::Goaway { last })
    }

    fn on_window_update(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Event, Fault> {
        let stream = header.stream;
        let Ok(increment) = payload.try_into() else {
            return Err(connection_fault(
                ErrorCode::FRAME_SIZE_ERROR,
                "WINDOW_UPDATE",
            ));
        };
        let increment = i64::from(u32::from_be_bytes(increment) & ID_MAX);
        if increment < SMALL_INCREMENT {
            self.count(Cost::WindowUpdate, "WINDOW_UPDATE that allow little")?;
        }
        if stream == 0 {
            if increment == 0 {
                return Err(protocol_error("WINDOW_UPDATE of nothing"));
            }
            let widened = self.send_window + increment;
            if widened > i64::from(ID_MAX) {
                let words = "a window that is too large";
                return Err(connection_fault(ErrorCode::FLOW_CONTROL_ERROR, words));
            }
            self.send_window = widened;
            return Ok(Event::Sendable);
        }
        self.check_known(stream, "WINDOW_UPDATE of a stream that was not begun")?;
        let Some(known) = self.stream(stream) else {
            return Ok(Event::Handled);
        };
        if increment == 0 {
            let fault = Malformed("WINDOW_UPDATE of nothing");
            return Err(Fault::Stream(stream, ErrorCode::PROTOCOL_ERROR, fault));
        }
        if !known.widen(increment) {
            let fault = Malformed("a window that is too large");
            return Err(Fault::Stream(stream, ErrorCode::FLOW_CONTROL_ERROR, fault));
        }
        Ok(Event::Sendable)
    }
}

/// The payload without padding, and where it begins.
fn unpadded(header: FrameHeader, payload: &[u8]) -> Result<(usize, &[u8]), Fault> {
    if !header.has(flag::PADDED) {
        return Ok((0, payload));
    }
    let padding = payload.split_first().and_then(|(len, rest)| {
        let kept = rest.len().checked_sub(usize::from(*len))?;
        rest.get(..kept)
    });
    let content = padding.ok_or(protocol_error("more padding than payload"))?;
    Ok((1, content))
}

const LESS_CONTENT: Malformed = Malformed("less content than Content-Length says");

const PING_BYTES: usize = 8;

/// WINDOW_UPDATE for less are counted.
const SMALL_INCREMENT: i64 = 1024;

/// The connection's window is granted anew when so much of it is used.
const CONNECTION_UPDATE_BYTES: u32 = 1 << 24;
