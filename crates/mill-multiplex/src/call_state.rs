//! The state of a call: what has come of its answer as the text of HTTP/1, and what is still to be sent.

use mill_http::h1::emit::{CHUNK_END, LAST_CHUNK, emit_chunk_head};
use mill_http::h2::connection::Connection as Protocol;
use mill_http::h2::frame::StreamId;
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;

#[derive(Debug)]
pub(crate) struct CallState {
    pub(crate) id: StreamId,
    /// The request's own task.
    pub(crate) task: TaskId,
    /// The task that sends the content, if it is another one.
    pub(crate) writer: TaskId,
    /// The answer, as far as it has come and was not taken.
    text: Vec<u8>,
    taken: usize,
    /// Bytes of content in the text: the server may send as many again when they are taken.
    held: usize,
    framing: Framing,
    interims: u32,
    is_refused: bool,
    /// How the answer has ended.
    end: Option<Result<(), StreamError>>,
    /// Content that waits for the window.
    outgoing: Vec<u8>,
    outgoing_sent: usize,
    /// No content follows that which waits.
    is_last: bool,
    /// The last frame was written.
    has_ended: bool,
    /// Bytes of the request that were sent.
    pub(crate) sent: u64,
    /// The answer to HEAD has no content whatever its head says.
    pub(crate) is_head: bool,
}

/// What stands around the answer's content in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// The head has not come.
    Unknown,
    Chunks,
    /// The head has told its length.
    Length,
    /// There is none.
    None,
}

impl CallState {
    pub(crate) const fn new(id: StreamId, task: TaskId) -> Self {
        Self {
            id,
            task,
            writer: TaskId::NONE,
            text: Vec::new(),
            taken: 0,
            held: 0,
            framing: Framing::Unknown,
            interims: 0,
            is_refused: false,
            end: None,
            outgoing: Vec::new(),
            outgoing_sent: 0,
            is_last: false,
            has_ended: false,
            sent: 0,
            is_head: false,
        }
    }

    /// A head, without the empty line at its end. Returns the bytes of content that it promises, to which the stream is
    /// to be held.
    pub(crate) fn on_head(&mut self, head: &[u8], status: u16, end: bool) -> Option<u64> {
        if status < 200 {
            self.interims += 1;
            if self.interims > INTERIMS_MAX {
                self.on_lost(StreamError::Reset);
                return None;
            }
        }
        self.text.extend_from_slice(head);
        let mut promised = None;
        if status >= 200 {
            promised = self.frame(content_length(head), status, end);
        }
        self.text.extend_from_slice(b"\r\n");
        if end {
            self.end = Some(match promised {
                None | Some(0) => Ok(()),
                // RFC 9113 8.1.1.
                Some(_) => Err(StreamError::Truncated),
            });
        }
        promised
    }

    /// Adds to a final head what frames its content. A length that is none is left to the reader of the head, as are
    /// several.
    fn frame(&mut self, length: Option<Option<u64>>, status: u16, end: bool) -> Option<u64> {
        let may_have_content = !self.is_head && !matches!(status, 204 | 304);
        self.framing = match (may_have_content && !end, length) {
            (true, Some(_)) => Framing::Length,
            (true, None) => Framing::Chunks,
            (false, _) => Framing::None,
        };
        if self.framing == Framing::Chunks {
            self.text
                .extend_from_slice(b"transfer-encoding: chunked\r\n");
        } else if may_have_content && length.is_none() {
            self.text.extend_from_slice(b"content-length: 0\r\n");
        }
        length.flatten().filter(|_| may_have_content)
    }

    pub(crate) fn on_content(&mut self, content: &[u8], end: bool) {
        self.held += content.len();
        match self.framing {
            Framing::Chunks if !content.is_empty() => {
                emit_chunk_head(content.len() as u64, &mut self.text);
                self.text.extend_from_slice(content);
                self.text.extend_from_slice(CHUNK_END);
            }
            Framing::Length => self.text.extend_from_slice(content),
            // What must not come is not waited for either: the call is over with its head.
            Framing::Chunks | Framing::None | Framing::Unknown => {}
        }
        if end {
            self.on_end(b"");
        }
    }

    /// The answer is whole; lines of trailers come with its end.
    pub(crate) fn on_end(&mut self, trailers: &[u8]) {
        if self.framing == Framing::Chunks {
            match trailers {
                [] => self.text.extend_from_slice(LAST_CHUNK),
                trailers => {
                    self.text.extend_from_slice(b"0\r\n");
                    self.text.extend_from_slice(trailers);
                    self.text.extend_from_slice(b"\r\n");
                }
            }
        }
        self.end.get_or_insert(Ok(()));
    }

    /// The stream was reset. `is_refused`: before the server has begun with the request.
    pub(crate) fn on_reset(&mut self, is_refused: bool) {
        self.on_lost(StreamError::Reset);
        if is_refused {
            self.is_refused = true;
            self.sent = 0;
        }
    }

    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Nothing more will come. An answer that is whole stays so.
    pub(crate) fn on_lost(&mut self, error: StreamError) {
        self.end.get_or_insert(Err(error));
        self.has_ended = true;
        self.outgoing.clear();
        self.outgoing_sent = 0;
    }

    pub(crate) const fn end(&self) -> Option<Result<(), StreamError>> {
        self.end
    }

    pub(crate) fn unread(&mut self) -> &mut [u8] {
        self.text.get_mut(self.taken..).unwrap_or_default()
    }

    /// So many bytes of the text were taken; returns for how much content the server may be told so.
    pub(crate) fn take(&mut self, len: usize) -> usize {
        self.taken += len;
        let mut credit = len.min(self.held);
        if self.taken == self.text.len() {
            self.text.clear();
            self.taken = 0;
            credit = self.held;
        } else if self.taken > COMPACT_BYTES {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
        self.held -= credit;
        credit
    }

    /// Content of the request; nothing is kept of it where the stream has ended.
    pub(crate) fn write(&mut self, content: &[u8]) {
        if !self.has_ended {
            self.outgoing.extend_from_slice(content);
        }
    }

    /// No content follows.
    pub(crate) const fn finish(&mut self) {
        self.is_last = true;
    }

    /// HEADERS have ended the stream.
    pub(crate) const fn finish_with_head(&mut self) {
        self.is_last = true;
        self.has_ended = true;
    }

    pub(crate) fn queued(&self) -> usize {
        self.outgoing.len() - self.outgoing_sent
    }

    pub(crate) fn has_to_send(&self) -> bool {
        !self.has_ended && (self.queued() > 0 || self.is_last)
    }

    /// Moves content into frames, as much as the windows allow; returns how much.
    pub(crate) fn send(&mut self, protocol: &mut Protocol) -> usize {
        let rest = self.outgoing.get(self.outgoing_sent..).unwrap_or_default();
        let len = rest.len().min(protocol.sendable(self.id)).min(SHARE_BYTES);
        let ends = self.is_last && len == rest.len();
        if len == 0 && !ends {
            return 0;
        }
        let piece = rest.get(..len).unwrap_or_default();
        protocol.emit_data(self.id, piece, ends, usize::MAX);
        self.outgoing_sent += len;
        self.sent += len as u64;
        self.has_ended |= ends;
        if self.outgoing_sent == self.outgoing.len() {
            self.outgoing.clear();
            self.outgoing_sent = 0;
        }
        len
    }
}

/// What `content-length` says; `Some(None)` if that is no length.
fn content_length(head: &[u8]) -> Option<Option<u64>> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(b"content-length:"))?;
    let digits = value.trim_ascii();
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_number);
    Some(digits.and_then(|digits| digits.parse().ok()))
}

/// Heads before the final one that may wait for their reader.
const INTERIMS_MAX: u32 = 32;

/// The text is moved to the front when so much of it was taken.
const COMPACT_BYTES: usize = 256 * 1024;

/// Bytes of one call's content before other calls have their turn.
const SHARE_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallState {
        CallState::new(1, TaskId::NONE)
    }

    fn text(call: &mut CallState) -> String {
        let text = String::from_utf8(call.unread().to_vec()).unwrap();
        call.take(text.len());
        text
    }

    #[test]
    fn an_answer_reads_as_http1_has_it() {
        let mut chunked = call();
        chunked.on_head(b"HTTP/1.1 103 \r\nlink: a\r\n", 103, false);
        chunked.on_head(b"HTTP/1.1 200 \r\na: b\r\n", 200, false);
        chunked.on_content(b"content", false);
        chunked.on_content(b"", false);
        chunked.on_end(b"grpc-status: 0\r\n");
        assert_eq!(
            text(&mut chunked),
            "HTTP/1.1 103 \r\nlink: a\r\n\r\nHTTP/1.1 200 \r\na: b\r\ntransfer-encoding: chunked\r\n\r\n\
             7\r\ncontent\r\n0\r\ngrpc-status: 0\r\n\r\n"
        );
        assert_eq!(chunked.end(), Some(Ok(())));
        let mut measured = call();
        measured.on_head(b"HTTP/1.1 200 \r\ncontent-length: 3\r\n", 200, false);
        measured.on_content(b"abc", true);
        assert_eq!(
            text(&mut measured),
            "HTTP/1.1 200 \r\ncontent-length: 3\r\n\r\nabc"
        );
        for (status, is_head, expected) in [
            (200, false, "content-length: 0\r\n"),
            (204, false, ""),
            (304, false, ""),
            (200, true, ""),
        ] {
            let mut bare = call();
            bare.is_head = is_head;
            bare.on_head(b"HEAD\r\n", status, true);
            assert_eq!(
                text(&mut bare),
                format!("HEAD\r\n{expected}\r\n"),
                "{status}"
            );
        }
    }

    #[test]
    fn an_answer_is_held_to_the_length_that_it_promises() {
        for (length, status, is_head, promised) in [
            ("3", 200, false, Some(3)),
            ("0", 200, false, Some(0)),
            ("3", 200, true, None),
            ("3", 304, false, None),
            ("3", 204, false, None),
            ("+3", 200, false, None),
            ("", 200, false, None),
            ("99999999999999999999", 200, false, None),
        ] {
            let head = format!("HTTP/1.1 {status} \r\ncontent-length: {length}\r\n");
            for end in [false, true] {
                let mut call = call();
                call.is_head = is_head;
                let found = call.on_head(head.as_bytes(), status, end);
                assert_eq!(found, promised, "{head}");
                let is_cut = promised.is_some_and(|length| length > 0);
                let expected = match (end, is_cut) {
                    (false, _) => None,
                    (true, false) => Some(Ok(())),
                    (true, true) => Some(Err(StreamError::Truncated)),
                };
                assert_eq!(call.end(), expected, "{head}");
            }
        }
    }

    #[test]
    fn windows_are_given_back_for_content_only_and_for_all_of_it() {
        let mut call = call();
        call.on_head(b"HTTP/1.1 200 \r\n", 200, false);
        let head = call.unread().len();
        call.on_content(&[7; 1000], false);
        assert_eq!(call.take(head), head);
        let rest = call.unread().len();
        assert_eq!(call.take(rest), 1000 - head);
        call.on_content(&[7; 10], true);
        let rest = call.unread().len();
        assert_eq!(call.take(rest), 10);
    }

    #[test]
    fn a_call_that_was_not_begun_has_sent_nothing() {
        let mut call = call();
        call.sent = 100;
        call.write(b"content");
        call.on_reset(true);
        assert!(call.is_refused() && call.sent == 0 && !call.has_to_send());
        assert_eq!(call.end(), Some(Err(StreamError::Reset)));
        call.write(b"more");
        assert_eq!(call.queued(), 0);
    }

    #[test]
    fn an_answer_that_is_whole_stays_so_when_the_connection_is_lost() {
        let mut call = call();
        call.on_head(b"HTTP/1.1 200 \r\n", 200, true);
        call.on_lost(StreamError::Reset);
        assert_eq!(call.end(), Some(Ok(())));
    }

    #[test]
    fn heads_without_end_end_the_call() {
        let mut call = call();
        for _ in 0..100 {
            call.on_head(b"HTTP/1.1 103 \r\n", 103, false);
        }
        assert_eq!(call.end(), Some(Err(StreamError::Reset)));
        assert!(call.unread().len() < 1000);
    }
}
