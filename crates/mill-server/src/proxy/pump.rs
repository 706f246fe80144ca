//! A request's content on its way to the server while the answer comes: both directions at once, as gRPC's streams need it.

use crate::exchange::ContentError;
use crate::h2::SharedContent;
use crate::local::Local;
use crate::request::Request;
use mill_multiplex::call::{Call, ContentWriter};
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_tls::transport::TransportOf;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Moves content until it ends, or either side is gone.
pub(super) struct Pump<E: Engine> {
    content: SharedContent<E>,
    writer: ContentWriter<TransportOf<E>>,
    scheduler: Rc<Scheduler>,
    /// Between two pieces of the client: `client_body_timeout`.
    timeout: Duration,
    /// Why it has ended early, for the request's task.
    fault: Rc<Cell<Option<ContentError>>>,
}

impl<E: Engine> Pump<E> {
    /// Begins in a task of its own; `None`: there can be no more tasks. What ends the content early is in the result.
    pub(super) fn start(
        content: SharedContent<E>,
        call: &Call<TransportOf<E>>,
        request: &Request,
        local: &Local<E>,
    ) -> Option<Rc<Cell<Option<ContentError>>>> {
        let fault = Rc::default();
        let pump = Self {
            fault: Rc::clone(&fault),
            writer: call.content_writer(),
            scheduler: Rc::clone(&local.scheduler),
            timeout: request.location.client_body.timeout,
            content,
        };
        let started = local.scheduler.spawn(Purpose::Background, pump.run());
        started.is_ok().then_some(fault)
    }

    async fn run(self) {
        let task = self.scheduler.current();
        self.content.set_task(task);
        self.writer.set_task(task);
        loop {
            if poll_fn(|_| self.writer.poll_room(QUEUED_MAX))
                .await
                .is_err()
            {
                break;
            }
            let deadline = self.scheduler.now() + self.timeout;
            let piece = poll_fn(|_| self.poll_piece());
            match self.scheduler.until(deadline, piece).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => {
                    self.writer.finish();
                    break;
                }
                failed => {
                    let fault = failed.map_or(Some(ContentError::TimedOut), Result::err);
                    self.fault.set(fault);
                    self.writer.fail();
                    break;
                }
            }
        }
        self.content.set_task(TaskId::NONE);
        self.writer.set_task(TaskId::NONE);
    }

    /// Ready when a piece was moved, or none follows.
    fn poll_piece(&self) -> Poll<Result<bool, ContentError>> {
        if let Poll::Ready(Err(_)) = self.writer.poll_room(QUEUED_MAX) {
            // The server has ended first: that is found next, and is no fault of the content.
            return Poll::Ready(Ok(true));
        }
        self.content
            .poll_take(PIECE_BYTES, |piece| self.writer.write(piece))
    }
}

/// Bytes that wait for the server before more are taken of the client.
const QUEUED_MAX: usize = 64 * 1024;

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 * 1024;
