//! Which server answers a handshake, and with which certificates.

/// Certificates that a handshake waits for.
mod awaited;

use crate::request::Request;
use crate::site::Site;
use crate::stream::session::Session;
use crate::tls::{Contexts, StreamContext};
use crate::variables;
pub(crate) use awaited::Awaited;
use mill_config::config::{Captures, Server, StreamServer, VirtualHosts};
use mill_runtime::engine::Engine;
use mill_tls::certificate_slot::CertificateSlot;
use mill_tls::client_hello::ClientHello;
use mill_tls::handshake::Absence;
use mill_tls::server_context::{Choice, ServerChoice};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;

/// Chooses among the servers of the address that a client has connected to, by the name that it asks for.
pub(crate) struct ServerOfName<E: Engine> {
    pub(crate) site: Arc<Site>,
    /// Index into the listeners of the site.
    pub(crate) listener: usize,
    pub(crate) local: Option<IpAddr>,
    pub(crate) awaited: Awaited<E>,
}

/// A server that was found.
struct Found<'s> {
    hosts: &'s VirtualHosts,
    server: &'s Arc<Server>,
    /// Of the pattern among its names that the client's name matches.
    captures: Captures,
    contexts: &'s Contexts,
}

impl<E: Engine> ServerChoice for ServerOfName<E> {
    fn poll_choose(&self, hello: &ClientHello) -> Poll<Choice> {
        if let Some(choice) = self.awaited.poll() {
            return choice;
        }
        let found = match self.find(hello) {
            Ok(found) => found,
            Err(choice) => return Poll::Ready(choice),
        };
        let contexts = found.contexts;
        let is_awaited = |slot: &CertificateSlot| slot.is_empty();
        if contexts.awaited.as_ref().is_some_and(is_awaited) {
            return Poll::Ready(Choice::NoCertificate(Absence::Awaited));
        }
        let http2 = found.hosts.http2_of_address || found.server.location.http2.enabled;
        let context = match http2 {
            true => &contexts.http2,
            false => &contexts.http1,
        };
        let facts = self.awaited.facts_with(hello);
        let (Some(certificates), Some(facts)) = (&contexts.evaluated, facts) else {
            return Poll::Ready(Choice::Take(context.clone()));
        };
        let local = self.awaited.local();
        let mut request =
            Request::of_handshake(facts, self.listener, found.server, &self.site, local);
        let name = hello.server_name.as_deref().unwrap_or_default();
        request.adopt_server(found.server, name.as_bytes(), found.captures);
        let names =
            certificates.names(|template| variables::evaluate(template, &mut request, local));
        local.put_request(request);
        self.awaited.load(certificates, names, context)
    }
}

impl<E: Engine> ServerOfName<E> {
    /// The error is an answer that needs no server.
    fn find(&self, hello: &ClientHello) -> Result<Found<'_>, Choice> {
        let http = self.site.config.http.as_ref();
        let listener = http.and_then(|http| http.listeners.get(self.listener));
        let hosts = listener.ok_or(Choice::Reject)?.hosts_for(self.local);
        if let Some(context) = self.site.tls.acme.challenges().context(hello) {
            return Err(Choice::Take(context));
        }
        let mut captures = Captures::default();
        let server = match &hello.server_name {
            Some(name) => hosts.find(name.as_bytes(), &mut captures),
            None => &hosts.default,
        };
        if server.location.tls.rejects_handshakes {
            return Err(Choice::Reject);
        }
        // As with nginx, a server without a certificate is served under the default server's.
        let tls = &self.site.tls;
        let contexts = tls.of(server).or_else(|| tls.of(&hosts.default));
        Ok(Found {
            hosts,
            server,
            captures,
            contexts: contexts.ok_or(Choice::Reject)?,
        })
    }
}

/// The only server of an address, one of `stream`.
pub(crate) struct OnlyServer<E: Engine> {
    pub(crate) site: Arc<Site>,
    pub(crate) server: Arc<StreamServer>,
    pub(crate) context: StreamContext,
    pub(crate) awaited: Awaited<E>,
}

impl<E: Engine> ServerChoice for OnlyServer<E> {
    fn poll_choose(&self, hello: &ClientHello) -> Poll<Choice> {
        if let Some(choice) = self.awaited.poll() {
            return choice;
        }
        let context = &self.context.context;
        let facts = self.awaited.facts_with(hello);
        let (Some(certificates), Some(facts)) = (&self.context.evaluated, facts) else {
            return Poll::Ready(Choice::Take(context.clone()));
        };
        let local = self.awaited.local();
        let (site, server) = (Arc::clone(&self.site), Arc::clone(&self.server));
        let mut session = Session::new(site, server, facts);
        let names = certificates
            .names(|template| variables::session::evaluate(template, &mut session, local));
        self.awaited.load(certificates, names, context)
    }
}

impl<E: Engine> fmt::Debug for ServerOfName<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServerOfName(listener {})", self.listener)
    }
}

impl<E: Engine> fmt::Debug for OnlyServer<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OnlyServer({})", self.server.index)
    }
}
