//! The answer to one request: a CGI head in standard output, then its content.

use super::{END_REQUEST, FastcgiFault, RecordEvent, Records, STDOUT};
use mill_http::h1::response::{
    BodyStep, CgiScan, Framing, RequestKind, ResponseFault, ResponseHead,
};

/// The head while it arrives.
#[derive(Clone, Copy, Debug)]
pub struct AnswerHead {
    records: Records,
    scan: CgiScan,
    request: RequestKind,
    bytes_max: usize,
}

impl AnswerHead {
    /// `bytes_max` limits the head: `fastcgi_buffer_size`.
    pub const fn new(request: RequestKind, bytes_max: u32) -> Self {
        Self {
            records: Records::new(),
            scan: CgiScan::new(request, bytes_max),
            request,
            bytes_max: bytes_max as usize,
        }
    }

    /// Takes bytes, each once, collects the head in `head`, and passes on what is in standard error, piece by piece.
    /// Returns how many it took, and the head once it is whole: `head` then is its bytes. The bytes that were not taken
    /// belong to the body. `head` must be empty before the first call, and kept between calls.
    pub fn on_bytes(
        &mut self,
        bytes: &[u8],
        head: &mut Vec<u8>,
        mut on_stderr: impl FnMut(&[u8]),
    ) -> Result<(usize, Option<ResponseHead>), FastcgiFault> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let (consumed, event) = self.records.on_bytes(rest)?;
            taken += consumed;
            match event {
                RecordEvent::NeedMore => return Ok((taken, None)),
                RecordEvent::Stderr(text) => on_stderr(text),
                RecordEvent::StdoutEnd => return Err(FastcgiFault::StdoutClosed),
                RecordEvent::End(_) => {
                    return Err(FastcgiFault::UnexpectedRecord(END_REQUEST));
                }
                RecordEvent::Stdout(content) => {
                    // One byte more than allowed shows that the head is too long.
                    let room = (self.bytes_max + 1).saturating_sub(head.len());
                    head.extend_from_slice(content.get(..room).unwrap_or(content));
                    let left = content.len().saturating_sub(room);
                    let found = self.scan.parse(head).map_err(FastcgiFault::Response)?;
                    if let Some(found) = found {
                        let surplus = left + (head.len() - found.len);
                        head.truncate(found.len);
                        self.records.give_back(surplus);
                        return Ok((taken - surplus, Some(found)));
                    }
                    debug_assert_eq!(left, 0, "a head beyond its limit is a fault");
                }
            }
        }
    }

    /// The content behind the head. `keep_conn` is what the request said.
    pub const fn into_body(self, head: &ResponseHead, keep_conn: bool) -> AnswerBody {
        let content = match head.framing {
            Framing::None if matches!(self.request, RequestKind::Head) => Content::Dropped,
            Framing::None => Content::Length(0),
            Framing::Length(length) => Content::Length(length),
            Framing::Chunked | Framing::UntilClose => Content::UntilEnd,
        };
        AnswerBody {
            records: self.records,
            content,
            keep_conn,
            stdout_ended: false,
            state: State::Open,
        }
    }
}

/// Follows the content to the end of the request.
#[derive(Clone, Copy, Debug)]
pub struct AnswerBody {
    records: Records,
    content: Content,
    keep_conn: bool,
    stdout_ended: bool,
    state: State,
}

/// What standard output still carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Bytes to come.
    Length(u64),
    UntilEnd,
    /// Of an answer to HEAD: programs send it, and the client does not get it.
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The answer is whole; the server had not ended the request yet.
    Complete,
    /// The answer is whole, and more of it came.
    Surplus,
    /// The server has ended the request.
    Ended,
}

impl AnswerBody {
    /// Takes bytes, each once, and passes on the content and what is in standard error. Only when the answer is complete
    /// may there be bytes that are not taken.
    pub fn on_bytes(
        &mut self,
        bytes: &[u8],
        mut on_content: impl FnMut(&[u8]),
        mut on_stderr: impl FnMut(&[u8]),
    ) -> Result<BodyStep, FastcgiFault> {
        let mut step = BodyStep::default();
        while !self.is_complete() {
            let rest = bytes.get(step.consumed..).unwrap_or_default();
            let (consumed, event) = self.records.on_bytes(rest)?;
            step.consumed += consumed;
            match event {
                RecordEvent::NeedMore => break,
                RecordEvent::Stderr(text) => on_stderr(text),
                RecordEvent::Stdout(_) if self.stdout_ended => {
                    return Err(FastcgiFault::UnexpectedRecord(STDOUT));
                }
                RecordEvent::Stdout(content) => {
                    let content = self.take(content);
                    step.content += content.len();
                    if !content.is_empty() {
                        on_content(content);
                    }
                }
                RecordEvent::StdoutEnd => {
                    self.check_length(FastcgiFault::StdoutClosed)?;
                    self.stdout_ended = true;
                    // The server closes the connection, or does not: nothing that matters follows.
                    if !self.keep_conn {
                        self.state = State::Complete;
                    }
                }
                RecordEvent::End(end) => {
                    if end.protocol_status != 0 {
                        return Err(FastcgiFault::Rejected(end.protocol_status));
                    }
                    self.check_length(FastcgiFault::RequestClosed)?;
                    self.state = State::Ended;
                }
            }
        }
        step.complete = self.is_complete();
        Ok(step)
    }

    /// The answer is complete: at the end of the request, or of standard output if the connection is not to be kept.
    pub const fn is_complete(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// The server has ended the request and keeps the connection for another one.
    pub const fn may_be_kept(&self) -> bool {
        self.keep_conn && matches!(self.state, State::Ended)
    }

    /// More content came than the head announces; nginx logs "upstream sent more data than specified in
    /// "Content-Length" header".
    pub const fn has_surplus(&self) -> bool {
        matches!(self.state, State::Surplus)
    }

    /// The end of the stream completes an answer whose length was announced and has arrived. Any other was cut, which
    /// nginx does not notice.
    pub const fn on_end_of_stream(&mut self) -> Result<(), FastcgiFault> {
        match self.content {
            Content::Length(0) if matches!(self.state, State::Open) => {
                self.state = State::Complete;
                Ok(())
            }
            _ if self.is_complete() => Ok(()),
            Content::Dropped => {
                self.state = State::Complete;
                Ok(())
            }
            _ => Err(FastcgiFault::Response(ResponseFault::EndedEarly)),
        }
    }

    /// What of the standard output is the client's.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        match &mut self.content {
            Content::UntilEnd => bytes,
            Content::Dropped => &[],
            Content::Length(rest) => {
                let len = usize::try_from(*rest).unwrap_or(usize::MAX);
                let content = bytes.get(..len).unwrap_or(bytes);
                *rest -= content.len() as u64;
                if content.len() < bytes.len() {
                    self.state = State::Surplus;
                }
                content
            }
        }
    }

    const fn check_length(&self, fault: FastcgiFault) -> Result<(), FastcgiFault> {
        match self.content {
            Content::Length(1..) => Err(fault),
            _ => Ok(()),
        }
    }
}
