//! Which answer a client wants first: RFC 9218, and the rest of what RFC 9113 has instead.

use super::receiving::{connection_fault, protocol_error};
use super::{Connection, Event, Fault, Malformed, Role};
use crate::h2::abuse::Cost;
use crate::h2::error::ErrorCode;
use crate::h2::frame::{FrameHeader, ID_MAX, StreamId};
use crate::h2::priority::Priority;

impl Connection {
    pub(super) fn on_priority(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Event, Fault> {
        if header.stream == 0 {
            return Err(protocol_error("PRIORITY without a stream"));
        }
        self.count(Cost::Priority, "PRIORITY")?;
        let stream = header.stream;
        let (code, words) = match payload.try_into() {
            Err(_) => (ErrorCode::FRAME_SIZE_ERROR, "PRIORITY"),
            Ok(priority) if depends_on(priority) == stream => {
                (ErrorCode::PROTOCOL_ERROR, "a stream that depends on itself")
            }
            Ok(_) => return Ok(Event::Handled),
        };
        // RFC 9113 6.4: a stream that was not begun is not reset.
        self.check_known(stream, words)
            .map_err(|_| connection_fault(code, words))?;
        Err(Fault::Stream(stream, code, Malformed(words)))
    }

    pub(super) fn on_priority_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Event, Fault> {
        if header.stream != 0 {
            return Err(protocol_error("PRIORITY_UPDATE on a stream"));
        }
        if self.role == Role::Client {
            return Err(protocol_error("PRIORITY_UPDATE of a server"));
        }
        self.count(Cost::Priority, "PRIORITY_UPDATE")?;
        let Some((stream, value)) = payload.split_first_chunk::<4>() else {
            return Err(connection_fault(
                ErrorCode::FRAME_SIZE_ERROR,
                "PRIORITY_UPDATE",
            ));
        };
        let stream = u32::from_be_bytes(*stream) & ID_MAX;
        if stream.is_multiple_of(2) {
            // Nothing is pushed, so such a stream is never more than idle.
            return Err(protocol_error("PRIORITY_UPDATE of no request"));
        }
        let priority = Priority::parse(value);
        if stream > self.last_of_peer {
            return self.keep_priority(stream, priority);
        }
        if let Some(known) = self.stream(stream) {
            (known.priority, known.is_priority_updated) = (priority, true);
        }
        Ok(Event::Sendable)
    }

    /// RFC 9218 7, 7.1: what is said of a stream before it begins is kept for it, within the number of streams.
    fn keep_priority(&mut self, stream: StreamId, priority: Priority) -> Result<Event, Fault> {
        let mut kept = self.early_priorities.iter_mut();
        if let Some((_, former)) = kept.find(|(known, _)| *known == stream) {
            *former = priority;
            return Ok(Event::Handled);
        }
        let used = self.streams.len() + self.early_priorities.len();
        if used >= self.ours.max_concurrent_streams as usize {
            return Err(protocol_error("PRIORITY_UPDATE of too many streams"));
        }
        self.early_priorities.push((stream, priority));
        Ok(Event::Handled)
    }

    /// What was said of the stream that begins now. Those of lower numbers never will.
    pub(super) fn take_early_priority(&mut self, stream: StreamId) -> Option<Priority> {
        let kept = &mut self.early_priorities;
        let of_stream = kept.iter().find(|(known, _)| *known == stream);
        let priority = of_stream.map(|(_, priority)| *priority);
        kept.retain(|(known, _)| *known > stream);
        priority
    }
}

/// The stream that a signal of RFC 7540 puts before another one; it has no other effect.
pub(super) fn depends_on(priority: &[u8; 5]) -> StreamId {
    let [a, b, c, d, _] = *priority;
    u32::from_be_bytes([a, b, c, d]) & ID_MAX
}
