//! The choice of a server, and a connection to it: a kept one, or a new one.

use super::attempt::Attempt;
use super::connection::UpstreamConnection;
use super::decision::Method;
use super::fault::Fault;
use super::trace::TriedServer;
use super::tries::FailedTry;
use super::{Proxying, http, tls};
use crate::exchange::Exchange;
use crate::log::Text;
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_multiplex::carrier::Carrier;
use mill_multiplex::{Multiplexed, Options};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_tls::transport::{Transport, TransportOf};
use mill_upstream::pool::Reuse;
use mill_upstream::select::{NoPeer, Selected, Selection};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

impl<E: Engine> Proxying<'_, E> {
    /// Chooses a server, and begins the try.
    pub(super) async fn select<X: Exchange<Engine = E>>(
        &mut self,
        exchange: &X,
        request: &Request,
        follows_redirect: bool,
    ) -> Result<Selected, Fault> {
        let entered = self.local.scheduler.now();
        let selected = match self.find_server(exchange, request).await {
            Ok(selected) => selected,
            Err(fault) => {
                self.local
                    .log_error(Some(request), fault.level(), format_args!("{fault}"));
                return Err(fault);
            }
        };
        let server = match &selected {
            Some(selected) => TriedServer::Peer(Arc::clone(selected.peer())),
            None => TriedServer::NoneOf(Arc::clone(&self.group.group)),
        };
        self.trace
            .set_url(|url| self.target.emit_url(server.name(), request, url));
        let now = self.local.scheduler.now();
        self.trace.begin(server, follows_redirect, now);
        if self.group.queue.is_some() {
            self.trace.queued(now.since(entered));
        }
        let selected = selected.ok_or(Fault::NoPeer)?;
        self.tried.add(&selected);
        self.chosen(&selected);
        Ok(selected)
    }

    /// A server that may be tried now.
    pub(super) fn ask_selector(&self, request: &Request) -> Result<Selected, NoPeer> {
        let now = self.local.scheduler.now();
        let bound = self.bound_server(now);
        let selection = Selection {
            key: &self.target.key,
            client: client_ip(request),
            session: &bound,
            tried: &self.tried,
            now,
        };
        let selected = self.group.selector.borrow_mut().select(&selection)?;
        let peer = selected.peer();
        let is_bound = !bound.is_empty() && peer.session_id().as_bytes() == &bound[..];
        let upstream = self.group.group.config();
        let text = format_args!(
            "server {} of \"{}\" chosen by {}",
            Text(&peer.name),
            Text(&upstream.name),
            Method { upstream, is_bound }
        );
        self.local.log_error(Some(request), LogLevel::Debug, text);
        Ok(selected)
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
        let is_http2 = http::is_http2(self.target.pass.protocol, request);
        if is_http2 {
            let is_begun = Cell::new(false);
            let shared = group.share(selected.peer(), scope, |known| {
                is_begun.set(known.is_begun());
                known.open()
            });
            if let Some(call) = shared {
                let reuse = Reuse::shared(is_begun.get(), now);
                let group = Rc::clone(group);
                let carrier = Carrier::Call(call);
                return Ok(UpstreamConnection::new(carrier, reuse, selected, group));
            }
        } else if let Some((stream, reuse)) = group.take_idle(selected.peer(), scope, now) {
            stream.set_task(task);
            let (group, carrier) = (Rc::clone(group), Carrier::Own(stream));
            return Ok(UpstreamConnection::new(carrier, reuse, selected, group));
        }
        let address = selected.peer().address();
        let options = self.connect_options();
        let opened = self.local.engine.connect(&address, &options, task);
        let stream = match opened {
            Ok(stream) => match &self.securing {
                None => Transport::Tcp(stream),
                Some(securing) => securing.wrap(stream, is_http2, self.local),
            },
            Err(error) => {
                let fault = self.not_opened(error, request);
                return Err(FailedTry::before(fault, selected));
            }
        };
        let has_left = || attempt.needs_client && exchange.is_abandoned();
        let header = scope.map_or(&[][..], |scope| &scope.header);
        if header.is_empty() {
            stream.begin_tls();
        }
        let mut established = attempt.establish(&stream, has_left).await;
        if established.is_ok() && !header.is_empty() {
            stream.write(Payload::Copy(header));
            if self.securing.is_some() {
                stream.begin_tls();
                established = attempt.establish(&stream, has_left).await;
            }
        }
        if let Err(Fault::Failed(..)) = established
            && tls::log_fault(&stream, Some(request), self.local)
        {
            established = Err(Fault::NotSecured);
        }
        match established {
            Ok(()) if is_http2 => self.share(stream, selected),
            Ok(()) => {
                let (group, reuse) = (Rc::clone(group), Reuse::new(self.scope.clone(), now));
                let carrier = Carrier::Own(stream);
                Ok(UpstreamConnection::new(carrier, reuse, selected, group))
            }
            Err(fault) => Err(FailedTry::before(fault, selected)),
        }
    }
}

impl<E: Engine> Proxying<'_, E> {
    /// The first request on a new connection that others may share.
    fn share(
        &self,
        stream: TransportOf<E>,
        selected: Selected,
    ) -> Result<UpstreamConnection<E>, FailedTry> {
        let group = &self.group;
        let options = Options {
            idle_timeout: group.group.config().keepalive.timeout,
            ..Options::default()
        };
        let (now, scheduler) = (self.local.scheduler.now(), &self.local.scheduler);
        let scheme: &[u8] = match self.securing {
            Some(_) => b"https",
            None => b"http",
        };
        let started = Multiplexed::start(stream, scheme, &options, scheduler);
        let Some((connection, call)) = started.and_then(|known| {
            let call = known.open()?;
            Some((known, call))
        }) else {
            return Err(FailedTry::before(
                Fault::NotConnected(StreamError::Refused),
                selected,
            ));
        };
        group.offer(selected.peer(), self.scope.clone(), &connection);
        let (group, carrier) = (Rc::clone(group), Carrier::Call(call));
        let reuse = Reuse::shared(false, now);
        Ok(UpstreamConnection::new(carrier, reuse, selected, group))
    }
}

fn client_ip(request: &Request) -> Option<IpAddr> {
    match request.client() {
        Address::Ip(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}
