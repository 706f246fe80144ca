//! The rest of a request's content, and taking it from the stream's bytes.

use mill_http::h1::body::{BodyKind, ChunkedBody, ChunkedEvent, LengthBody};
use mill_http::head::RequestHead;
use mill_http::limits::ChunkedRules;
use mill_runtime::received::Received;
use mill_runtime::stream::Stream;

/// The state of one request's content.
#[derive(Debug)]
pub(super) struct Incoming {
    rest: Rest,
    /// Bytes that were taken, with their framing.
    pub(super) taken_bytes: u64,
    /// The client expects 100 before it sends its content.
    pub(super) continue_due: bool,
}

#[derive(Debug)]
enum Rest {
    Length(LengthBody),
    Chunked(ChunkedBody),
    Ended,
}

/// The result of looking at the unread bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Content,
    /// All bytes that have arrived are consumed.
    NeedMore,
    Ended,
    Malformed,
}

impl Incoming {
    pub(super) fn of(head: &RequestHead) -> Self {
        let rest = match BodyKind::of(head) {
            BodyKind::Empty => Rest::Ended,
            BodyKind::Length(length) => Rest::Length(LengthBody::new(length)),
            BodyKind::Chunked => Rest::Chunked(ChunkedBody::new(ChunkedRules::default())),
        };
        Self {
            rest,
            taken_bytes: 0,
            continue_due: head.expect_continue,
        }
    }

    /// Where the content begins is uncertain: there is none to take.
    pub(super) const fn unknown() -> Self {
        Self {
            rest: Rest::Ended,
            taken_bytes: 0,
            continue_due: false,
        }
    }

    pub(super) const fn has_ended(&self) -> bool {
        match &self.rest {
            Rest::Length(body) => body.is_complete(),
            Rest::Chunked(_) => false,
            Rest::Ended => true,
        }
    }

    /// Bytes of chunked content that have arrived, or that the current chunk will bring.
    pub(super) const fn chunked_bytes(&self) -> u64 {
        match &self.rest {
            Rest::Chunked(body) => body.announced_bytes(),
            Rest::Length(_) | Rest::Ended => 0,
        }
    }

    /// The unread bytes with their memory, if they are many but not more than `most`, and all of them content of this
    /// request.
    pub(super) fn take_given<S: Stream>(&mut self, stream: &S, most: usize) -> Option<Received> {
        let Rest::Length(body) = &mut self.rest else {
            return None;
        };
        let most = usize::try_from(body.remaining()).map_or(most, |rest| rest.min(most));
        let given = stream.take_received(GIVEN_BYTES_MIN..=most)?;
        body.on_bytes(&given);
        self.taken_bytes += given.len() as u64;
        Some(given)
    }

    /// Looks at the unread bytes, and passes at most `most` bytes of content to `take`.
    pub(super) fn take<S: Stream>(
        &mut self,
        stream: &S,
        most: usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Taken {
        let (rest, taken_bytes) = (&mut self.rest, &mut self.taken_bytes);
        let mut look = |bytes: &[u8]| match rest {
            Rest::Ended => (0, Taken::Ended),
            Rest::Length(body) => {
                let content = body.on_bytes(bytes.get(..most).unwrap_or(bytes));
                let taken = match (body.is_complete(), content.is_empty()) {
                    (_, false) => {
                        take(content);
                        Taken::Content
                    }
                    (true, true) => Taken::Ended,
                    (false, true) => Taken::NeedMore,
                };
                (content.len(), taken)
            }
            Rest::Chunked(body) => take_chunked(body, bytes, most, take),
        };
        let taken = stream.read(|bytes| {
            let (count, taken) = look(bytes);
            *taken_bytes += count as u64;
            (count, taken)
        });
        if taken == Taken::Ended {
            self.rest = Rest::Ended;
        }
        taken
    }
}

/// Bytes that are taken with their memory, at least: half of a receive buffer, so that most of it is used.
const GIVEN_BYTES_MIN: usize = 32 * 1024;

/// The decoder gives no more content than it gets bytes, so it gets `most` at a time; if those were framing only, the
/// next ones follow. Small chunks that have come together are taken together.
fn take_chunked(
    body: &mut ChunkedBody,
    bytes: &[u8],
    most: usize,
    take: &mut impl FnMut(&[u8]),
) -> (usize, Taken) {
    let (mut consumed, mut left) = (0, most);
    loop {
        let rest = bytes.get(consumed..).unwrap_or_default();
        let (count, event) = body.on_bytes(rest.get(..left).unwrap_or(rest));
        consumed += count;
        match event {
            ChunkedEvent::Content(content) => {
                take(content);
                left -= content.len();
                if left == 0 {
                    return (consumed, Taken::Content);
                }
            }
            ChunkedEvent::NeedMore if consumed < bytes.len() => {}
            // The decoder says it again.
            _ if left < most => return (consumed, Taken::Content),
            ChunkedEvent::NeedMore => return (consumed, Taken::NeedMore),
            ChunkedEvent::End => return (consumed, Taken::Ended),
            ChunkedEvent::Invalid => return (consumed, Taken::Malformed),
        }
    }
}
