//! What may be sent, and which stream is next.

use super::Connection;
use crate::h2::frame::{self, StreamId};
use crate::h2::priority::Priority;
use crate::h2::response::{emit_block, emit_request_block};

impl Connection {
    /// Appends the frames of a head or of trailers, given as the text of an HTTP/1 head. Call it in the order of sending.
    /// `false`: the stream does not exist any more, and nothing was written.
    pub fn emit_head(&mut self, stream: StreamId, text: &[u8], end: bool) -> bool {
        if self
            .stream(stream)
            .is_none_or(|known| known.is_local_closed)
        {
            return false;
        }
        let mut block = core::mem::take(&mut self.block_out);
        block.clear();
        emit_block(text, &mut self.encoder, &mut self.name, &mut block);
        self.emit_block(stream, &block, end);
        self.block_out = block;
        true
    }

    /// Appends the frames of a client's request, given as the text of an HTTP/1 head, with a scheme. Call it in the order of
    /// [`Connection::open`].
    pub fn emit_request(&mut self, stream: StreamId, scheme: &[u8], text: &[u8], end: bool) {
        let mut block = core::mem::take(&mut self.block_out);
        block.clear();
        emit_request_block(scheme, text, &mut self.encoder, &mut self.name, &mut block);
        self.emit_block(stream, &block, end);
        self.block_out = block;
    }

    /// Appends the frames of a block that needs no table.
    pub fn emit_block(&mut self, stream: StreamId, block: &[u8], end: bool) {
        let frame_bytes = self.theirs.max_frame_size as usize;
        frame::emit_headers(stream, block, end, frame_bytes, &mut self.out);
        if end {
            self.end(stream);
        }
    }

    /// How many bytes of content the stream may send now; 0 if none, or if it does not exist.
    pub fn sendable(&mut self, stream: StreamId) -> usize {
        let of_connection = self.send_window;
        let of_stream = self.stream(stream).map_or(0, |known| known.send_window);
        usize::try_from(of_connection.min(of_stream)).unwrap_or(0)
    }

    /// Bytes of content that may be sent on all streams together.
    pub const fn window(&self) -> i64 {
        self.send_window
    }

    /// Appends content, not more than [`Connection::sendable`], in frames that are not longer than `frame_bytes`.
    pub fn emit_data(&mut self, stream: StreamId, content: &[u8], end: bool, frame_bytes: usize) {
        let frame_bytes = frame_bytes.clamp(1, self.theirs.max_frame_size as usize);
        let mut rest = content;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(frame_bytes));
            rest = behind;
            let ends = end && rest.is_empty();
            let header = frame::data_header(stream, piece.len(), ends);
            self.out.extend_from_slice(&header);
            self.out.extend_from_slice(piece);
            if rest.is_empty() {
                break;
            }
        }
        self.sends += 1;
        self.abuse.allow_one();
        let len = i64::try_from(content.len()).unwrap_or(i64::MAX);
        let sends = self.sends;
        self.send_window -= len;
        if let Some(known) = self.stream(stream) {
            known.send_window -= len;
            known.sent_at = sends;
        }
        if end {
            self.end(stream);
        }
    }

    fn end(&mut self, stream: StreamId) {
        if let Some(known) = self.stream(stream) {
            known.is_local_closed = true;
        }
        self.forget_if_closed(stream);
    }

    /// Whether the peer still sends on this stream.
    pub fn is_receiving(&self, stream: StreamId) -> bool {
        let place = self.place(stream).ok();
        place.is_some_and(|place| {
            self.streams
                .get(place)
                .is_some_and(|known| !known.is_remote_closed)
        })
    }

    /// Whether the stream exists.
    pub fn is_open(&self, stream: StreamId) -> bool {
        self.place(stream).is_ok()
    }

    /// The stream waits for [`Connection::next_sender`] to name it; or does not any more.
    pub fn set_waiting(&mut self, stream: StreamId, waits: bool) {
        if let Some(known) = self.stream(stream) {
            known.wants_to_send = waits;
        }
    }

    /// What the field `Priority` says. PRIORITY_UPDATE says it better, even if it came before (RFC 9218 7).
    pub fn set_priority(&mut self, stream: StreamId, priority: Priority) {
        if let Some(known) = self.stream(stream)
            && !known.is_priority_updated
        {
            known.priority = priority;
        }
    }

    /// The stream whose turn it is: the most urgent one that waits and may send; of equals those that are of no use in
    /// parts, the first one first, and then the one that has waited longest (RFC 9218 10).
    pub fn next_sender(&self) -> Option<StreamId> {
        if self.send_window <= 0 {
            return None;
        }
        let waiting =
            (self.streams.iter()).filter(|stream| stream.wants_to_send && stream.send_window > 0);
        let next = waiting.min_by_key(|stream| {
            let Priority {
                urgency,
                incremental,
            } = stream.priority;
            let since = if incremental { stream.sent_at } else { 0 };
            (urgency, incremental, since, stream.id)
        });
        next.map(|stream| stream.id)
    }

    /// So many bytes of the peer's content were taken by their reader: the window is granted anew, and doubled where the
    /// peer had used all of it and so had to wait.
    pub fn taken(&mut self, stream: StreamId, len: usize, window_bytes_max: u32) {
        let Some(known) = self.stream(stream) else {
            return;
        };
        known.taken = known
            .taken
            .saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        if known.is_remote_closed || known.taken < known.receive_window_bytes / 2 {
            return;
        }
        let mut increment = core::mem::take(&mut known.taken);
        let doubled = known.receive_window_bytes.saturating_mul(2);
        if known.receive_window == 0 && doubled <= window_bytes_max {
            increment += known.receive_window_bytes;
            known.receive_window_bytes = doubled;
        }
        known.receive_window += i64::from(increment);
        frame::emit_window_update(stream, increment, &mut self.out);
    }
}
