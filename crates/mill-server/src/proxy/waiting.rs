//! A server for a request, waited for where the group has a queue.

use super::Proxying;
use super::fault::{Fault, Step};
use crate::exchange::Exchange;
use crate::request::Request;
use crate::upstreams::queue::{PERIOD, Queue};
use mill_runtime::engine::Engine;
use mill_runtime::time::Duration;
use mill_upstream::select::{NoPeer, Selected};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

impl<E: Engine> Proxying<'_, E> {
    /// The server for the next try; `None` if there is none. The client may leave while the request waits for one.
    pub(super) async fn find_server<X: Exchange<Engine = E>>(
        &self,
        exchange: &X,
        request: &Request,
    ) -> Result<Option<Selected>, Fault> {
        let (Some(queue), Some(settings)) = (&self.group.queue, &self.group.group.config().queue)
        else {
            return Ok(self.ask_selector(request).ok());
        };
        if queue.is_empty() {
            match self.ask_selector(request) {
                Err(NoPeer::Busy) => {}
                answer => return Ok(answer.ok()),
            }
        }
        self.wait_in_turn(queue, settings.timeout, exchange, request)
            .await
    }

    /// Waits behind the requests that came before.
    async fn wait_in_turn<X: Exchange<Engine = E>>(
        &self,
        queue: &Rc<Queue>,
        timeout: Duration,
        exchange: &X,
        request: &Request,
    ) -> Result<Option<Selected>, Fault> {
        let scheduler = &self.local.scheduler;
        let deadline = scheduler.now() + timeout;
        let Some(place) = queue.enter() else {
            return Ok(None);
        };
        poll_fn(|_| {
            let is_first = place.is_first();
            if is_first && let Ok(selected) = self.ask_selector(request) {
                return Poll::Ready(Ok(Some(selected)));
            }
            if self.needs_client() && exchange.is_abandoned() {
                return Poll::Ready(Err(Fault::ClientGone(Step::Connecting)));
            }
            if is_first {
                let _ = scheduler.poll_deadline(scheduler.now() + PERIOD);
            }
            scheduler.poll_deadline(deadline).map(|_| Ok(None))
        })
        .await
    }
}
