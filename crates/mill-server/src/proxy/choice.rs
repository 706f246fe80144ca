//! The choice of a server, and a connection to it: a kept one, or a new one.

use super::attempt::Attempt;
use super::connection::UpstreamConnection;
use super::trace::TriedServer;
use super::{FailedTry, Proxying};
use crate::exchange::Exchange;
use crate::request::Request;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_upstream::pool::Reuse;
use mill_upstream::select::{Selected, Selection};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

impl<E: Engine> Proxying<'_, E> {
    /// Chooses a server, and begins the try.
    pub(super) fn select(&mut self, request: &Request, follows_redirect: bool) -> Option<Selected> {
        let now = self.local.scheduler.now();
        let bound = self.bound_server(now);
        let selection = Selection {
            key: &self.target.key,
            client: client_ip(request),
            session: &bound,
            tried: &self.tried,
            now,
        };
        let selected = self.group.selector.borrow_mut().select(&selection);
        let server = match &selected {
            Ok(selected) => TriedServer::Peer(Arc::clone(selected.peer())),
            Err(_) => TriedServer::NoneOf(Arc::clone(&self.group.group)),
        };
        self.trace
            .set_url(|url| self.target.emit_url(server.name(), request, url));
        self.trace.begin(server, follows_redirect, now);
        let selected = selected.ok()?;
        self.tried.add(&selected);
        self.chosen(&selected);
        Some(selected)
    }

    /// A kept connection, or a new one. One that began with a header of the PROXY protocol is kept for requests which
    /// would send the same.
    pub(super) async fn connect<X: Exchange<Engine = E>>(
        &self,
        attempt: &Attempt<'_, E>,
        selected: Selected,
        exchange: &X,
        request: &Request,
    ) -> Result<UpstreamConnection<E>, FailedTry> {
        let (scheduler, group) = (&self.local.scheduler, &self.group);
        let (now, task) = (scheduler.now(), scheduler.current());
        let scope = self.scope.as_deref();
        if let Some((stream, reuse)) = group.take_idle(selected.peer(), scope, now) {
            stream.set_task(task);
            let group = Rc::clone(group);
            return Ok(UpstreamConnection::new(stream, reuse, selected, group));
        }
        let address = selected.peer().address();
        let options = self.connect_options();
        let opened = self.local.engine.connect(&address, &options, task);
        let stream = match opened {
            Ok(stream) => stream,
            Err(error) => {
                let fault = self.not_opened(error, request);
                return Err(FailedTry::before(fault, selected));
            }
        };
        let has_left = || attempt.needs_client && exchange.is_abandoned();
        match attempt.establish(&stream, has_left).await {
            Ok(()) => {
                if let Some(scope) = scope
                    && !scope.header.is_empty()
                {
                    stream.write(Payload::Copy(&scope.header));
                }
                let (group, reuse) = (Rc::clone(group), Reuse::new(self.scope.clone(), now));
                Ok(UpstreamConnection::new(stream, reuse, selected, group))
            }
            Err(fault) => Err(FailedTry::before(fault, selected)),
        }
    }
}

fn client_ip(request: &Request) -> Option<IpAddr> {
    match request.client() {
        Address::Ip(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}
