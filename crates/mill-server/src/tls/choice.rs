//! Which server answers a handshake.

use crate::site::Site;
use mill_config::config::Captures;
use mill_tls::certificate_slot::CertificateSlot;
use mill_tls::client_hello::ClientHello;
use mill_tls::server_context::{Choice, ServerChoice, ServerContext};
use std::net::IpAddr;
use std::sync::Arc;

/// Chooses among the servers of the address that a client has connected to, by the name that it asks for.
#[derive(Debug)]
pub(crate) struct ServerOfName {
    pub(crate) site: Arc<Site>,
    /// Index into the listeners of the site.
    pub(crate) listener: usize,
    pub(crate) local: Option<IpAddr>,
}

impl ServerChoice for ServerOfName {
    fn choose(&self, hello: &ClientHello) -> Choice {
        let http = self.site.config.http.as_ref();
        let Some(listener) = http.and_then(|http| http.listeners.get(self.listener)) else {
            return Choice::Reject;
        };
        let hosts = listener.hosts_for(self.local);
        if let Some(context) = self.site.tls.acme.challenges().context(hello) {
            return Choice::Take(context);
        }
        let server = match &hello.server_name {
            Some(name) => hosts.find(name.as_bytes(), &mut Captures::default()),
            None => &hosts.default,
        };
        if server.location.tls.rejects_handshakes {
            return Choice::Reject;
        }
        // As with nginx, a server without a certificate is served under the default server's.
        let context = self
            .site
            .tls
            .of(server)
            .or_else(|| self.site.tls.of(&hosts.default));
        let http2 = hosts.http2_of_address || server.location.http2.enabled;
        context.map_or(Choice::Reject, |contexts| {
            if contexts
                .awaited
                .as_ref()
                .is_some_and(CertificateSlot::is_empty)
            {
                return Choice::NoCertificate;
            }
            let context = if http2 {
                &contexts.http2
            } else {
                &contexts.http1
            };
            Choice::Take(context.clone())
        })
    }
}

/// The only server of an address.
#[derive(Debug)]
pub(crate) struct OnlyServer(pub(crate) ServerContext);

impl ServerChoice for OnlyServer {
    fn choose(&self, _: &ClientHello) -> Choice {
        Choice::Take(self.0.clone())
    }
}
