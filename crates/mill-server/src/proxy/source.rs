//! The content of an upstream server's answer, on its way to the client.

use super::body::AnswerBody;
use super::connection::UpstreamConnection;
use super::fault::{Fault, Step};
use super::read_pace::ReadPace;
use super::scan::Stderr;
use super::store::FileCopy;
use super::trace::UpstreamTrace;
use super::trailers;
use crate::content::source::Source;
use crate::exchange::SendError;
use crate::response::FieldLine;
use mill_config::config::LogLevel;
use mill_config::config::settings::PassSettings;
use mill_http::h1::emit::LAST_CHUNK;
use mill_http::h1::response::BodyStep;
use mill_http::range::ByteRange;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Content that is read from a connection to a server. Once it is whole the connection is free for another request; if
/// it is dropped before, the connection is closed.
pub(super) struct UpstreamContent<E: Engine> {
    /// `None` once the content is whole, or has failed.
    connection: Option<UpstreamConnection<E>>,
    scheduler: Rc<Scheduler>,
    trace: Rc<UpstreamTrace>,
    body: AnswerBody,
    /// Bytes that are still to be given out, if the head has said how many.
    len: Option<u64>,
    /// Between two reads: `proxy_read_timeout`.
    read_timeout: Duration,
    /// While it waits for the server: until when.
    deadline: Option<Instant>,
    /// `…_limit_rate`.
    pace: Option<Box<ReadPace>>,
    /// The trailer section, of which the client gets what the settings let pass, if it takes trailers.
    trailers: Option<(Vec<u8>, Option<Arc<PassSettings>>)>,
    /// `…_store`.
    copy: Option<Box<FileCopy<E>>>,
    /// The part of the content that is given out, where it is not all of it.
    part: Option<Part>,
    /// FIN is an end also where TLS has not said so.
    trusts_fin: bool,
}

/// A range of the content.
#[derive(Clone, Copy)]
struct Part {
    /// Bytes before it that are yet to come.
    skip: u64,
    /// Bytes of it that are yet to come.
    len: u64,
}

impl<E: Engine> UpstreamContent<E> {
    /// Of an answer whose head was read from `connection`. A client that asked with HEAD (`is_head`) gets no content,
    /// and what follows the head is not looked at.
    pub(super) fn new(
        connection: UpstreamConnection<E>,
        scheduler: Rc<Scheduler>,
        trace: Rc<UpstreamTrace>,
        body: AnswerBody,
        len: Option<u64>,
        read_timeout: Duration,
        is_head: bool,
    ) -> Self {
        let mut content = Self {
            connection: Some(connection),
            scheduler,
            trace,
            body,
            len,
            read_timeout,
            deadline: None,
            pace: None,
            trailers: None,
            copy: None,
            part: None,
            trusts_fin: false,
        };
        if content.body.is_complete() {
            content.complete(is_head);
        }
        content
    }

    /// Servers of uwsgi end connections under TLS without `close_notify`, and their answers with the connection.
    pub(super) const fn trust_fin(&mut self) {
        self.trusts_fin = true;
    }

    /// Reads no faster than this from now on.
    pub(super) fn limit(&mut self, pace: ReadPace) {
        self.pace = Some(Box::new(pace));
    }

    /// Writes a copy from now on.
    pub(super) fn copy_to(&mut self, copy: Box<FileCopy<E>>) {
        if self.connection.is_none() {
            return copy.publish();
        }
        self.copy = Some(copy);
    }

    /// This task reads it from now on.
    pub(super) fn set_task(&self, task: TaskId) {
        if let Some(connection) = &self.connection {
            connection.stream().set_task(task);
        }
    }

    /// Closes the connection, unless there is no content that might come: none of it is wanted.
    pub(super) fn leave(&mut self, buffer_size: u64) {
        if let Some(connection) = &self.connection {
            self.trace.arrived(connection.unread(), buffer_size);
            self.close();
        }
    }

    /// Keeps the trailers from now on, for variables, and for the client if it `wants` them.
    pub(super) fn keep_trailers(&mut self, settings: &Arc<PassSettings>, wants: bool) {
        self.trailers = Some((Vec::new(), wants.then(|| Arc::clone(settings))));
    }

    /// Appends what has arrived with the head to `out`, if that may be all of the content and is not much. Returns whether
    /// it is all.
    pub(super) fn take_arrived(&mut self, out: &mut Vec<u8>) -> Result<bool, SendError> {
        let len = self.len;
        let may_be_whole = |bytes: &[u8]| {
            bytes.len() <= ARRIVED_BYTES_MAX
                && len.map_or_else(
                    || bytes.ends_with(LAST_CHUNK),
                    |len| len <= bytes.len() as u64,
                )
        };
        if let Some(connection) = &self.connection
            && self.pace.is_none()
            && self.trailers.is_none()
            && self.copy.is_none()
            && connection.stream().read(|bytes| (0, may_be_whole(bytes)))
            && let Poll::Ready(taken) = self.poll_piece(ARRIVED_BYTES_MAX, out)
        {
            taken?;
        }
        Ok(self.is_exhausted())
    }

    /// Receives up to `most` bytes of content into `out`; ready when there are some, or no more follow.
    fn poll_receive(&mut self, most: usize, out: &mut Vec<u8>) -> Poll<Result<(), Fault>> {
        let start = out.len();
        let mut share_left = SHARE_PER_TURN;
        while let Some(connection) = &self.connection {
            let most = match &mut self.pace {
                None => most,
                Some(pace) => {
                    let Poll::Ready(room) = pace.poll_room(&self.scheduler) else {
                        // It does not wait for the server.
                        self.deadline = None;
                        return Poll::Pending;
                    };
                    most.min(room)
                }
            };
            let stream = connection.stream();
            match stream.poll_readable(1) {
                Poll::Pending => return self.poll_deadline(),
                Poll::Ready(Err(StreamError::Unfinished))
                    if self.trusts_fin && self.body.is_completed_by_end() =>
                {
                    self.complete(false);
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(Fault::Failed(Step::Reading, error)));
                }
                Poll::Ready(Ok(readable)) if readable.unread == 0 => {
                    return Poll::Ready(if self.body.is_completed_by_end() {
                        self.complete(false);
                        Ok(())
                    } else {
                        Err(Fault::ClosedEarly(Step::Reading))
                    });
                }
                Poll::Ready(Ok(_)) => {}
            }
            self.deadline = None;
            let (body, trace) = (&mut self.body, &self.trace);
            let (trailers, before) = (&mut self.trailers, out.len());
            let step = stream.read(|bytes| {
                let bytes = bytes.get(..most).unwrap_or(bytes);
                let step = body.on_bytes(
                    bytes,
                    |content| out.extend_from_slice(content),
                    |text| trace.note(format_args!("{}", Stderr(text)), LogLevel::Error),
                    |byte| trailers.iter_mut().for_each(|(kept, _)| kept.push(byte)),
                );
                (step.as_ref().map_or(0, |step| step.consumed), step)
            });
            if let Some(copy) = &mut self.copy {
                copy.append(out.get(before..).unwrap_or_default());
            }
            let consumed = step.as_ref().map_or(0, |step| step.consumed);
            if let Err(fault) = self.count(step) {
                return Poll::Ready(Err(fault));
            }
            if out.len() > start {
                break;
            }
            share_left = share_left.saturating_sub(consumed);
            if share_left == 0 && self.connection.is_some() {
                // What brings no content, as standard error, is no wait for the server.
                self.scheduler.wake(self.scheduler.current());
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn count(&mut self, step: Result<BodyStep, Fault>) -> Result<(), Fault> {
        let step = step?;
        if let Some(pace) = &mut self.pace {
            pace.count(step.consumed, self.scheduler.now());
        }
        self.trace
            .received(step.consumed as u64, self.body.length_of(&step) as u64);
        if step.complete {
            self.complete(false);
        }
        Ok(())
    }

    /// Waits for the server, but not longer than its timeout.
    fn poll_deadline(&mut self) -> Poll<Result<(), Fault>> {
        let timeout = self.read_timeout;
        let deadline = *self
            .deadline
            .get_or_insert_with(|| self.scheduler.now() + timeout);
        self.scheduler
            .poll_deadline(deadline)
            .map(|_| Err(Fault::TimedOut(Step::Reading)))
    }

    /// All of it is here: the connection is free.
    fn complete(&mut self, is_head: bool) {
        if let Some(mut connection) = self.connection.take() {
            self.trace
                .ended(None, connection.sent(), self.scheduler.now());
            connection.may_be_kept &= self.body.allows_reuse();
            let unread = connection.unread();
            if let Some((surplus, level)) = self.body.surplus(unread) {
                if !is_head {
                    self.trace.note(format_args!("{surplus}"), level);
                }
                self.trace.received(unread as u64, unread as u64);
            }
            connection.release(self.scheduler.now());
            if let Some((bytes, _)) = &self.trailers {
                self.trace.keep_trailers(bytes);
            }
            if let Some(copy) = self.copy.take() {
                copy.publish();
            }
        }
    }

    /// Takes what lies outside the part off the end of `piece`, which begins at `start`. Once the part is whole the rest
    /// is not waited for: the connection is closed.
    fn keep_part(&mut self, start: usize, piece: &mut Vec<u8>) {
        let Some(part) = &mut self.part else { return };
        let skipped = (piece.len() - start).min(usize::try_from(part.skip).unwrap_or(usize::MAX));
        piece.drain(start..start + skipped);
        part.skip -= skipped as u64;
        let kept = (piece.len() - start).min(usize::try_from(part.len).unwrap_or(usize::MAX));
        piece.truncate(start + kept);
        part.len -= kept as u64;
        if part.len == 0 {
            self.close();
        }
    }

    fn has_whole_part(&self) -> bool {
        self.part.is_some_and(|part| part.len == 0)
    }

    /// Closes the connection, before all of it is here.
    fn close(&mut self) {
        self.copy = None;
        if let Some(connection) = self.connection.take() {
            self.trace
                .ended(None, connection.sent(), self.scheduler.now());
        }
    }

    fn fail(&mut self, fault: Fault) -> SendError {
        self.close();
        self.trace.cut.set(Some(fault));
        SendError::Incomplete
    }
}

impl<E: Engine> Source for UpstreamContent<E> {
    fn poll_piece(&mut self, most: usize, piece: &mut Vec<u8>) -> Poll<Result<bool, SendError>> {
        if self.trace.cut.get().is_some() {
            return Poll::Ready(Err(SendError::Incomplete));
        }
        let start = piece.len();
        let mut skipped = 0;
        loop {
            let Poll::Ready(received) = self.poll_receive(most, piece) else {
                return Poll::Pending;
            };
            let arrived = piece.len() - start;
            self.keep_part(start, piece);
            if let Err(fault) = received
                && !self.has_whole_part()
            {
                let error = self.fail(fault);
                if piece.len() == start {
                    return Poll::Ready(Err(error));
                }
                // What came before the fault is given out; the next call fails.
                break;
            }
            if self.part.is_none() || piece.len() > start || self.connection.is_none() {
                break;
            }
            skipped += arrived;
            if skipped >= SHARE_PER_TURN {
                // Others are to have their turn.
                self.scheduler.wake(self.scheduler.current());
                return Poll::Pending;
            }
        }
        let count = piece.len() - start;
        self.len = self.len.map(|len| len.saturating_sub(count as u64));
        Poll::Ready(Ok(count > 0))
    }

    fn pause(&mut self) {
        self.deadline = None;
    }

    fn trailers(&self) -> Vec<FieldLine> {
        let kept = self.trailers.as_ref();
        kept.and_then(|(bytes, settings)| Some(trailers::lines(bytes, settings.as_deref()?)))
            .unwrap_or_default()
    }

    fn cut(&mut self, range: ByteRange) {
        self.part = Some(Part {
            skip: range.start,
            len: range.len(),
        });
        self.len = Some(range.len());
    }

    fn remaining(&self) -> Option<u64> {
        self.len
    }

    fn is_exhausted(&self) -> bool {
        self.connection.is_none() && self.trace.cut.get().is_none()
    }

    fn note(&self, line: fmt::Arguments<'_>, level: LogLevel) {
        self.trace.note(line, level);
    }
}

impl<E: Engine> Drop for UpstreamContent<E> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Bytes that bring nothing to give out and are passed over in one turn, at least.
const SHARE_PER_TURN: usize = 2 * 1024 * 1024;

/// Bytes of an answer behind its head up to which all of them are taken at once.
const ARRIVED_BYTES_MAX: usize = 16 * 1024;

impl<E: Engine> fmt::Debug for UpstreamContent<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UpstreamContent({:?} bytes to come)", self.len)
    }
}
