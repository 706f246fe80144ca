//! The content of a response, counted or passed on, until it is complete.

use crate::h1::body::{ChunkedBody, ChunkedEvent, LengthBody};
use crate::h1::response::{Framing, ResponseFault};
use crate::limits::ResponseRules;

/// Follows one response's content to its end, without storing it.
#[derive(Clone, Copy, Debug)]
pub struct ResponseBody {
    kind: Kind,
    is_complete: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Length(LengthBody),
    Chunked(ChunkedBody),
    UntilClose,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyStep {
    /// Bytes that belong to this response. Only when it is complete there may be further bytes, which are the next
    /// response's.
    pub consumed: usize,
    /// Bytes of content among them; the rest frames chunks.
    pub content: usize,
    pub complete: bool,
}

impl ResponseBody {
    pub const fn new(framing: Framing, rules: &ResponseRules) -> Self {
        let (kind, is_complete) = match framing {
            Framing::None => (Kind::Length(LengthBody::new(0)), true),
            Framing::Length(bytes) => (Kind::Length(LengthBody::new(bytes)), bytes == 0),
            Framing::Chunked => (Kind::Chunked(ChunkedBody::new(rules.chunked)), false),
            Framing::UntilClose => (Kind::UntilClose, false),
        };
        Self { kind, is_complete }
    }

    pub const fn is_chunked(&self) -> bool {
        matches!(self.kind, Kind::Chunked(_))
    }

    /// The response is complete: at once if it has no content, after the last byte or chunk, or at the end of the
    /// stream.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes the bytes after the head, each once, and counts them.
    pub fn on_bytes(&mut self, bytes: &[u8]) -> Result<BodyStep, ResponseFault> {
        self.on_bytes_with(bytes, |_| {})
    }

    /// As `on_bytes`, and passes the content on, in pieces as they lie in `bytes`. Content before a fault is passed on.
    pub fn on_bytes_with(
        &mut self,
        bytes: &[u8],
        on_content: impl FnMut(&[u8]),
    ) -> Result<BodyStep, ResponseFault> {
        self.on_bytes_and_trailers(bytes, on_content, |_| {})
    }

    /// As `on_bytes_with`, and passes on each byte of the trailers behind chunks, the line ends included.
    pub fn on_bytes_and_trailers(
        &mut self,
        bytes: &[u8],
        mut on_content: impl FnMut(&[u8]),
        mut on_trailer: impl FnMut(u8),
    ) -> Result<BodyStep, ResponseFault> {
        let mut step = BodyStep::default();
        match &mut self.kind {
            Kind::Length(body) => {
                let content = body.on_bytes(bytes);
                step.take(content, content.len(), &mut on_content);
                self.is_complete = body.is_complete();
            }
            Kind::UntilClose if self.is_complete => {}
            Kind::UntilClose => step.take(bytes, bytes.len(), &mut on_content),
            Kind::Chunked(body) => loop {
                let rest = bytes.get(step.consumed..).unwrap_or(&[]);
                match body.on_bytes_with(rest, &mut on_trailer) {
                    (consumed, ChunkedEvent::Content(content)) => {
                        step.take(content, consumed, &mut on_content);
                    }
                    (consumed, ChunkedEvent::NeedMore) => {
                        step.consumed += consumed;
                        break;
                    }
                    (consumed, ChunkedEvent::End) => {
                        step.consumed += consumed;
                        self.is_complete = true;
                        break;
                    }
                    (_, ChunkedEvent::Invalid) => return Err(ResponseFault::ChunkedContent),
                }
            },
        }
        step.complete = self.is_complete;
        Ok(step)
    }

    /// RFC 9112 8: the end of the stream completes a response that lasts until then, and no other. Not to be called
    /// after a reset, which completes nothing.
    pub const fn on_end_of_stream(&mut self) -> Result<(), ResponseFault> {
        if matches!(self.kind, Kind::UntilClose) {
            self.is_complete = true;
        }
        if self.is_complete {
            Ok(())
        } else {
            Err(ResponseFault::EndedEarly)
        }
    }
}

impl BodyStep {
    fn take(&mut self, content: &[u8], consumed: usize, on_content: &mut impl FnMut(&[u8])) {
        self.consumed += consumed;
        self.content += content.len();
        if !content.is_empty() {
            on_content(content);
        }
    }
}

const _: () = assert!(size_of::<ResponseBody>() <= 72);
