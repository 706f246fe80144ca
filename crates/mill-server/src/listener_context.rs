//! The listener that a connection was accepted by.

use crate::frang::Frang;
use crate::frang::admission::is_trusted;
use crate::frang::head::HeadLimits;
use crate::local::Local;
use crate::request::ConnectionFacts;
use crate::site::Site;
use crate::tls::choice::{Awaited, OnlyServer, ServerOfName};
use mill_config::config::settings::Http2Settings;
use mill_config::config::{Http, ListenAddress, Listener, Server, StreamListener};
use mill_http::h2::frame::ID_MAX;
use mill_http::h2::settings::Settings;
use mill_http::limits::{HeadRules, NameRules};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;
use mill_tls::server_context::ServerChoice;
use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// A listener of a worker. It outlives configurations: each one that still has the listener updates it.
#[derive(Debug)]
pub struct ListenerContext {
    /// Distinguishes the listeners of a worker, in keys of the hot answers.
    pub id: u32,
    pub address: Address,
    rules: Cell<HeadRules>,
    header_timeout: Cell<Duration>,
    /// Connections to one of its addresses begin with a header of the PROXY protocol.
    proxy_protocol: Cell<bool>,
    /// Connections to one of its addresses begin with a handshake of TLS.
    ssl: Cell<bool>,
    /// HTTP/2 is spoken on one of its addresses.
    http2: Cell<bool>,
    http2_settings: Cell<Settings>,
    /// Requests depend on the address that the client has connected to.
    needs_local_address: Cell<bool>,
    /// The limits of its clients, if there are any.
    frang: RefCell<Option<Arc<Frang>>>,
    head_limits: Cell<HeadLimits>,
    /// The configuration of its requests: the one in force, or the last one that had the listener.
    site: RefCell<Arc<Site>>,
    /// Its place among the sockets of that configuration.
    listener: Cell<usize>,
    /// It is one of `stream`.
    stream: Cell<bool>,
    /// The configuration in force no longer has the listener: its connections get their answers, and close.
    gone: Cell<bool>,
}

impl ListenerContext {
    /// For the socket at place `listener` of the site's configuration ([`Config::sockets`](mill_config::Config::sockets)).
    pub fn new(id: u32, site: &Arc<Site>, listener: usize) -> Option<Self> {
        let address = address_of(site.config.sockets().nth(listener)?.address);
        let context = Self {
            id,
            address,
            rules: Cell::new(HeadRules::default()),
            header_timeout: Cell::new(Duration::from_secs(60)),
            proxy_protocol: Cell::new(false),
            ssl: Cell::new(false),
            http2: Cell::new(false),
            http2_settings: Cell::new(Settings::default()),
            needs_local_address: Cell::new(false),
            frang: RefCell::default(),
            head_limits: Cell::default(),
            site: RefCell::new(Arc::clone(site)),
            listener: Cell::new(listener),
            stream: Cell::new(false),
            gone: Cell::new(false),
        };
        context.set(site, listener);
        Some(context)
    }

    /// Applies a change of the configuration.
    pub fn set(&self, site: &Arc<Site>, listener: usize) {
        *self.site.borrow_mut() = Arc::clone(site);
        self.listener.set(listener);
        self.gone.set(false);
        self.stream
            .set(site.config.stream_listener(listener).is_some());
        let frang = site.frang.clone().filter(|_| !self.stream.get());
        let head_limits = frang.as_ref().map(|frang| HeadLimits::of(&frang.limits));
        self.head_limits.set(head_limits.unwrap_or_default());
        *self.frang.borrow_mut() = frang;
        if let Some(listener) = stream_listener(site, listener) {
            self.set_stream(listener);
        }
        if let Some(listener) = http(site).and_then(|http| http.listeners.get(listener)) {
            let of_others = listener.specific.iter().map(|(_, hosts)| hosts);
            let mut all = of_others.chain([&listener.hosts]);
            self.ssl.set(all.clone().any(|hosts| hosts.ssl));
            self.http2.set(all.clone().any(|hosts| hosts.http2));
            self.proxy_protocol
                .set(all.any(|hosts| hosts.proxy_protocol));
            let is_mentioned = site.mentions.local_address;
            self.needs_local_address
                .set(is_mentioned || !listener.specific.is_empty());
            let server = default_server(listener);
            self.rules.set(head_rules(server));
            self.http2_settings
                .set(http2_settings(&server.location.http2));
            self.header_timeout
                .set(server.location.client_header.timeout);
        }
    }

    fn set_stream(&self, listener: &StreamListener) {
        let of_others = listener.specific.iter().map(|(_, host)| host);
        let mut all = of_others.chain([&listener.host]);
        self.ssl.set(all.clone().any(|host| host.ssl));
        self.proxy_protocol.set(all.any(|host| host.proxy_protocol));
        self.http2.set(false);
        self.needs_local_address.set(true);
        let timeout = listener.host.server.settings.stream.proxy_header_timeout;
        self.header_timeout.set(timeout);
    }

    /// Whether its connections are passed on as they are.
    pub fn is_stream(&self) -> bool {
        self.stream.get()
    }

    /// The limits of its clients, if there are any.
    pub(crate) fn frang(&self) -> Option<Arc<Frang>> {
        self.frang.borrow().clone()
    }

    /// The same, lent: for each request, since workers would contend for the count of an `Arc`.
    pub(crate) fn borrow_frang(&self) -> Ref<'_, Option<Arc<Frang>>> {
        self.frang.borrow()
    }

    /// Limits of heads that hold for all of its requests.
    pub(crate) fn head_limits(&self) -> HeadLimits {
        self.head_limits.get()
    }

    /// Whether some of its connections begin with a handshake of TLS.
    pub(crate) fn may_have_tls(&self) -> bool {
        self.ssl.get()
    }

    /// Whether the default server trusts this peer to tell which client a request is from (`set_real_ip_from`).
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        let site = self.site.borrow();
        let listener = http(&site).and_then(|http| http.listeners.get(self.listener.get()));
        listener.is_some_and(|listener| {
            let from = &default_server(listener).location.real_ip.from;
            is_trusted(peer, from)
        })
    }

    /// The configuration in force no longer has the listener.
    pub fn retire(&self) {
        self.gone.set(true);
    }

    pub fn is_gone(&self) -> bool {
        self.gone.get()
    }

    pub fn rules(&self) -> HeadRules {
        self.rules.get()
    }

    /// `client_header_timeout` of the default server, for the server is known only after the head; for those of `stream`
    /// `proxy_protocol_timeout`.
    pub fn header_timeout(&self) -> Duration {
        self.header_timeout.get()
    }

    /// Whether connections to this local address begin with a header of the PROXY protocol. `local` is called only if
    /// some do.
    pub fn has_proxy_protocol(&self, local: impl FnOnce() -> Address) -> bool {
        if !self.proxy_protocol.get() {
            return false;
        }
        let site = self.site.borrow();
        let local = ip_of(&local()).map(|address| address.ip());
        if let Some(listener) = stream_listener(&site, self.listener.get()) {
            return listener.host_for(local).proxy_protocol;
        }
        let listener = http(&site).and_then(|http| http.listeners.get(self.listener.get()));
        listener.is_some_and(|listener| listener.hosts_for(local).proxy_protocol)
    }

    /// Whether connections may be HTTP/2: in clear they say so by their first bytes, under TLS by what was agreed on.
    pub fn has_http2(&self) -> bool {
        self.http2.get()
    }

    /// What connections of HTTP/2 announce.
    pub fn http2_settings(&self) -> Settings {
        self.http2_settings.get()
    }

    /// How handshakes are answered on this connection, which has this number; `None` if it is in clear. Asks for its
    /// addresses only if the answer depends on them.
    pub fn server_choice<E: Engine>(
        &self,
        stream: &E::Stream,
        number: u64,
        local: &Rc<Local<E>>,
    ) -> Option<Rc<dyn ServerChoice>> {
        if !self.ssl.get() {
            return None;
        }
        let site = self.site();
        let listener = self.listener.get();
        let address = stream.local();
        let at = ip_of(&address).map(|address| address.ip());
        let facts = site.tls.has_evaluated().then(|| ConnectionFacts {
            reached: OnceCell::from(address),
            ..ConnectionFacts::new(number, self, stream.peer(), local.scheduler.now())
        });
        let awaited = Awaited::new(local, facts, listener);
        if let Some(listener) = stream_listener(&site, listener) {
            let host = listener.host_for(at);
            let context = host.ssl.then(|| site.tls.of_stream(&host.server))??;
            return Some(Rc::new(OnlyServer {
                context: context.clone(),
                server: Arc::clone(&host.server),
                awaited,
                site,
            }));
        }
        let hosts = http(&site)?.listeners.get(listener)?.hosts_for(at);
        let is_ssl = hosts.ssl;
        is_ssl.then(|| -> Rc<dyn ServerChoice> {
            Rc::new(ServerOfName {
                site,
                listener,
                local: at,
                awaited,
            })
        })
    }

    /// Whether a request of the configuration may depend on the address that its client has connected to.
    pub fn needs_local_address(&self) -> bool {
        self.needs_local_address.get()
    }

    /// The configuration for the next request.
    pub fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site.borrow())
    }

    /// Its place among the sockets of [`ListenerContext::site`]; one of `http` has the same place among the listeners of
    /// that.
    pub fn listener(&self) -> usize {
        self.listener.get()
    }
}

/// The server for requests whose host matches no name, at the listener's own address.
fn default_server(listener: &Listener) -> &Arc<Server> {
    &listener.hosts_for(None).default
}

fn http2_settings(settings: &Http2Settings) -> Settings {
    let clamp = |value: u64, most: u32| u32::try_from(value).unwrap_or(most).clamp(1, most);
    Settings {
        max_concurrent_streams: clamp(settings.max_concurrent_streams, HTTP2_STREAMS_MAX),
        initial_window_size: clamp(settings.body_preread_size, ID_MAX),
        no_rfc7540_priorities: true,
        enable_connect_protocol: settings.extended_connect,
        ..Settings::default()
    }
}

/// More streams of one connection than tasks of a worker make no sense.
const HTTP2_STREAMS_MAX: u32 = 10_000;

fn head_rules(server: &Server) -> HeadRules {
    let settings = &server.location.client_header;
    let clamp = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let mut rules = HeadRules::of_buffers(
        clamp(settings.buffer_size),
        clamp(settings.large_buffers),
        clamp(settings.large_buffer_size),
    );
    rules.fields_max = u16::try_from(settings.max_headers).unwrap_or(u16::MAX);
    rules.accept_bare_lf = settings.accept_bare_lf;
    rules.names = name_rules(server);
    rules
}

/// Which fields with unusual names a server accepts.
pub fn name_rules(server: &Server) -> NameRules {
    NameRules {
        ignore_invalid_headers: server.location.client_header.ignore_invalid,
        underscores_in_headers: server.location.client_header.underscores,
    }
}

/// The runtime's address of a configured one.
pub fn address_of(address: &ListenAddress) -> Address {
    match address {
        ListenAddress::Inet(address) => Address::Ip(*address),
        ListenAddress::Unix(path) => Address::Unix(path.as_bytes().into()),
    }
}

fn stream_listener(site: &Site, place: usize) -> Option<&StreamListener> {
    let at = site.config.stream_listener(place)?;
    site.config.stream.as_ref()?.listeners.get(at)
}

fn http(site: &Site) -> Option<&Http> {
    site.config.http.as_ref()
}

/// The IP of an address, if it has one.
pub fn ip_of(address: &Address) -> Option<SocketAddr> {
    match address {
        Address::Ip(address) => Some(*address),
        Address::Unix(_) => None,
    }
}
