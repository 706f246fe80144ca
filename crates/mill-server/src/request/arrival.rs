//! Makes a request from a head, and finds the server of its host.

use crate::answer::Answer;
use crate::challenge::Challenged;
use crate::listener_context::name_rules;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::request::{CaptureSet, ConnectionFacts, Message, Phase, Request, Sent};
use crate::site::Site;
use crate::zones;
use mill_config::config::settings::VerifyClient;
use mill_config::config::{Captures, LogLevel, ProbingLocation, Server, ServerName, VirtualHosts};
use mill_http::field::KnownField;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::head::{RequestHead, TargetForm};
use mill_http::limits::HeadRules;
use mill_http::method::Method;
use mill_http::refusal::emit_ignored_field;
use mill_http::status::Status;
use mill_http::target;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_tls::client_check::Verified;
use std::cell::Cell;
use std::fmt;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// A request's head, with the connection's state when it arrived.
#[derive(Debug)]
pub struct Arrival {
    pub connection: Rc<ConnectionFacts>,
    /// Index into the listeners of the configuration that answers it.
    pub listener: usize,
    /// Requests that the connection has carried, this one included.
    pub connection_requests: u64,
    pub message: Message,
    /// It arrived before the previous request was answered.
    pub pipelined: bool,
}

impl Request {
    /// A request of the configuration in force, with the server of its host. A refused head may have no host; it gets
    /// the default server. `None`: the configuration has no such listener.
    pub fn new<E: Engine>(arrival: Arrival, local: &Local<E>) -> Option<Box<Self>> {
        Self::of_site(arrival, local.site(), local)
    }

    /// The same for a configuration that may not be in force any more.
    pub fn of_site<E: Engine>(
        arrival: Arrival,
        site: Arc<Site>,
        local: &Local<E>,
    ) -> Option<Box<Self>> {
        let http = site.config.http.as_ref()?;
        let listener = http.listeners.get(arrival.listener)?;
        let peer_reached = ip(arrival.connection.local());
        let hosts = listener.hosts_for(peer_reached);
        let mut request = Self::begin(arrival, &hosts.default, &site, local);
        // If some addresses have servers of their own, the server depends on the local address.
        request.pure = listener.specific.is_empty();
        request.read_target();
        log_ignored_fields(&request, false, local);
        if !request.path_is_invalid {
            request.find_server(hosts);
            request.is_misdirected = is_misdirected(&request, hosts);
            request
                .message
                .head
                .judge_names(name_rules(&request.server));
            log_ignored_fields(&request, true, local);
        }
        zones::begin(&mut request, local);
        Some(request)
    }

    /// A request that no client has sent, for a location without its phases: a probe.
    pub(crate) fn of_location<E: Engine>(
        arrival: Arrival,
        place: &ProbingLocation,
        site: &Arc<Site>,
        local: &Local<E>,
    ) -> Box<Self> {
        let mut request = Self::begin(arrival, &place.server, site, local);
        request.read_target();
        request.location = Arc::clone(&place.location);
        request
    }

    /// The same request, where it is, for a server to be asked without its client.
    pub(crate) fn without_client<E: Engine>(&self, local: &Local<E>) -> Box<Self> {
        let arrival = Arrival {
            connection: Rc::clone(&self.connection),
            listener: 0,
            connection_requests: self.connection_requests,
            message: Message {
                bytes: self.message.bytes.clone(),
                head: self.message.head.clone(),
            },
            pipelined: false,
        };
        let mut own = Self::begin(arrival, &self.server, &self.site, local);
        own.told_client.clone_from(&self.told_client);
        own.location = Arc::clone(&self.location);
        own.method = self.method;
        own.uri.clone_from(&self.uri);
        own.args.clone_from(&self.args);
        own.captures = self.captures.clone();
        own.variables.clone_from(&self.variables);
        own.overrides.clone_from(&self.overrides);
        own.internal = self.internal;
        own.uri_is_as_sent = self.uri_is_as_sent;
        own.valid_location = self.valid_location;
        own
    }

    /// A GET of another target of the same host, for the keys of what is kept; `None` if that is no target.
    pub(crate) fn for_target<E: Engine>(
        &self,
        target: &[u8],
        local: &Local<E>,
    ) -> Option<Box<Self>> {
        let known = &self.message;
        let host = known.head.value(KnownField::Host);
        let host = host.map_or(&[][..], |host| host.of(&known.bytes));
        let bytes = [b"GET ", target, b" HTTP/1.1\r\nHost: ", host, b"\r\n\r\n"].concat();
        let mut head = RequestHead::default();
        let Parsed::Complete { .. } = parse_request(&bytes, &mut head, &HeadRules::default())
        else {
            return None;
        };
        let mut other = self.without_client(local);
        other.method = head.method;
        other.message = Message { bytes, head };
        other.uri.clear();
        other.args.clear();
        other.uri_is_as_sent = true;
        other.read_target();
        (!other.path_is_invalid).then_some(other)
    }

    /// What the names of certificates are evaluated for, before there is a request.
    pub(crate) fn of_handshake<E: Engine>(
        connection: Rc<ConnectionFacts>,
        listener: usize,
        server: &Arc<Server>,
        site: &Arc<Site>,
        local: &Local<E>,
    ) -> Box<Self> {
        let arrival = Arrival {
            connection,
            listener,
            connection_requests: 0,
            message: Message::default(),
            pipelined: false,
        };
        Self::begin(arrival, server, site, local)
    }

    fn begin<E: Engine>(
        arrival: Arrival,
        server: &Arc<Server>,
        site: &Arc<Site>,
        local: &Local<E>,
    ) -> Box<Self> {
        let http = site.config.http.as_ref();
        let mut over = local.take_request();
        let (uri, args, mut variables) = match over.as_deref_mut() {
            Some(over) => (
                std::mem::take(&mut over.uri),
                std::mem::take(&mut over.args),
                std::mem::take(&mut over.variables),
            ),
            None => Default::default(),
        };
        variables.resize(http.map_or(0, |http| http.user_variables.len()), None);
        let request = Self {
            told_client: None,
            location: Arc::clone(&server.location),
            server: Arc::clone(server),
            connection: arrival.connection,
            connection_requests: arrival.connection_requests,
            method: arrival.message.head.method,
            message: arrival.message,
            started: local.scheduler.now(),
            started_wall_clock: local.scheduler.wall_clock(),
            uri,
            args,
            captures: CaptureSet::default(),
            variables,
            overrides: Vec::new(),
            internal: false,
            uri_is_as_sent: true,
            redirects: 0,
            error_page_used: false,
            valid_location: true,
            alias_takes_uri: false,
            content_refused: false,
            broke_limit: false,
            challenged: Challenged::No,
            closing: false,
            redirect_target: None,
            path_is_invalid: false,
            is_misdirected: false,
            pipelined: arrival.pipelined,
            id: None,
            real_root: None,
            variable_depth: 0,
            error_status: None,
            limit_rate: None,
            limit_rate_after: None,
            pure: false,
            freshness: None,
            varies_by_encoding: false,
            carried_fields: Vec::new(),
            stored_content: None,
            content_taken: false,
            kept_content: None,
            upstream: None,
            cached: None,
            slice: None,
            slice_under_way: None,
            limited: None,
            visit: None,
            content_received: Cell::new(0),
            sent: Sent::default(),
            site: Arc::clone(site),
        };
        match over {
            Some(mut over) => {
                *over = request;
                over
            }
            None => Box::new(request),
        }
    }

    /// The server of the host. Without a host it is the default server, or, once the head is complete, the server for
    /// requests without a host.
    fn find_server(&mut self, hosts: &VirtualHosts) {
        let mut captures = Vec::new();
        let server = match &*self.host() {
            [] if !self.message.head.is_whole => return,
            [] => match hosts.find(b"", &mut captures) {
                nameless if is_nameless(nameless) => Arc::clone(nameless),
                _ => return,
            },
            host => Arc::clone(hosts.find(host, &mut captures)),
        };
        let host = match captures.is_empty() {
            true => Vec::new(),
            false => self.host().into_owned(),
        };
        self.adopt_server(&server, &host, captures);
    }

    /// Is for this server from now on. `captures` are those of the pattern among its names that `host` matches, if one does.
    pub(crate) fn adopt_server(&mut self, server: &Arc<Server>, host: &[u8], captures: Captures) {
        if !captures.is_empty() {
            let decisive = server.names.iter().find_map(|name| match name {
                ServerName::Pattern(pattern) if pattern.is_match(host) => Some(pattern),
                _ => None,
            });
            self.keep_captures(decisive.map(|pattern| &**pattern), host, captures);
        }
        self.location = Arc::clone(&server.location);
        self.server = Arc::clone(server);
    }

    /// Path and arguments of the request line. A path that cannot be normalised stays empty. The server is not known
    /// yet, so `merge_slashes` is the default server's, as in nginx.
    fn read_target(&mut self) {
        let target = &self.message.head.target;
        let bytes = &self.message.bytes;
        self.args.extend_from_slice(target.query.of(bytes));
        let merge_slashes = self.server.location.client_header.merge_slashes;
        let mut buffer = Vec::new();
        if let Ok(path) = target::normalize(target, bytes, merge_slashes, &mut buffer) {
            self.uri.extend_from_slice(path);
        }
        self.path_is_invalid = self.uri.is_empty() && !target.path.is_empty();
    }
}

/// Logs in the error log which fields are ignored because of their names.
fn log_ignored_fields<E: Engine>(request: &Request, behind_server: bool, local: &Local<E>) {
    let message = &request.message;
    let is_silent = !message.head.has_odd_names;
    if is_silent || !local.logs_errors_at(Some(request), LogLevel::Info) {
        return;
    }
    let mut text = local.take_buffer();
    for field in message.head.ignored_fields(behind_server) {
        text.clear();
        emit_ignored_field(&message.bytes, field, &mut text);
        log(request, local, format_args!("{}", Text(&text)));
    }
    local.put_buffer(text);
}

/// `server_name ""`: for requests without a host.
fn is_nameless(server: &Server) -> bool {
    let is_empty = |name: &ServerName| matches!(name, ServerName::Exact(name) if name.is_empty());
    server.names.iter().any(is_empty)
}

/// Refuses what nginx refuses between the head and the first phase.
pub(super) fn check<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    if request.connection.lacks_tls.get() {
        let text =
            "client sent plain HTTP request to HTTPS port while reading client request headers";
        log(request, local, format_args!("{text}"));
        return ControlFlow::Break(Answer::Status(Status::TO_HTTPS));
    }
    check_certificate(request, local)?;
    if request.path_is_invalid {
        let text = "client sent invalid request while reading client request line";
        log(request, local, format_args!("{text}"));
        local.counters.borrow_mut().refused_target += 1;
        return ControlFlow::Break(Answer::Status(Status::BAD_REQUEST));
    }
    note_overruled_host(request, local);
    let refused = match request.method {
        Method::Trace => "client sent TRACE method while reading client request headers",
        Method::Connect => "client sent CONNECT method while reading client request headers",
        _ => return ControlFlow::Continue(()),
    };
    log(request, local, format_args!("{refused}"));
    request.closing = true;
    ControlFlow::Break(Answer::method_not_allowed(local))
}

/// RFC 9112 3.2.2: the host of an absolute target holds. A `Host` that names another one is told: it is how an answer for
/// one host is asked for under the name of another.
fn note_overruled_host<E: Engine>(request: &Request, local: &Local<E>) {
    let Message { bytes, head } = &request.message;
    let (TargetForm::Absolute, Some(sent)) = (head.target.form, head.value(KnownField::Host))
    else {
        return;
    };
    let (sent, holds) = (sent.of(bytes), head.host.of(bytes));
    if sent.is_empty() || is_same_host(sent, holds) {
        return;
    }
    local.counters.borrow_mut().overruled_host += 1;
    let (sent, holds) = (Text(sent), Text(holds));
    let text = format_args!(
        "client sent host header \"{sent}\" with a target of \"{holds}\", which holds, \
         while reading client request headers"
    );
    log(request, local, text);
}

/// Whether a value of `Host` names this host, which has neither port nor final dot.
fn is_same_host(sent: &[u8], host: &[u8]) -> bool {
    let Some((name, rest)) = sent.split_at_checked(host.len()) else {
        return false;
    };
    let rest = rest.strip_prefix(b".").unwrap_or(rest);
    name.eq_ignore_ascii_case(host) && (rest.is_empty() || rest.starts_with(b":"))
}

/// What a server with `ssl_verify_client` asks for. Such a server's answers are never kept: others could get them without a
/// certificate.
fn check_certificate<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    let verify = request.server.location.tls.verify_client;
    if verify == VerifyClient::Off {
        return ControlFlow::Continue(());
    }
    request.pure = false;
    let connection = Rc::clone(&request.connection);
    let Some(facts) = connection.tls.get() else {
        return ControlFlow::Continue(());
    };
    if request.is_misdirected {
        let text = "client attempted to request the server name different from the one that was \
                    negotiated while reading client request headers";
        log(request, local, format_args!("{text}"));
        return ControlFlow::Break(Answer::Status(Status::MISDIRECTED_REQUEST));
    }
    match &facts.verified {
        Verified::Failed {
            is_untrusted: true, ..
        } if verify == VerifyClient::OptionalNoCa => ControlFlow::Continue(()),
        Verified::Failed { code, reason, .. } => {
            log(
                request,
                local,
                format_args!(
                    "client SSL certificate verify error: ({code}:{reason}) while reading client request headers"
                ),
            );
            ControlFlow::Break(Answer::Status(Status::CERTIFICATE_ERROR))
        }
        Verified::None if verify == VerifyClient::On => {
            let text =
                "client sent no required SSL certificate while reading client request headers";
            log(request, local, format_args!("{text}"));
            ControlFlow::Break(Answer::Status(Status::NO_CERTIFICATE))
        }
        Verified::None | Verified::Success => ControlFlow::Continue(()),
    }
}

/// Whether the request is for another server with `ssl_verify_client` than the one whose settings answered the handshake.
fn is_misdirected(request: &Request, hosts: &VirtualHosts) -> bool {
    let facts = request.connection.tls.get();
    let Some(asked_for) = facts.and_then(|facts| facts.server_name.as_deref()) else {
        return false;
    };
    let verify = request.server.location.tls.verify_client;
    let asked_for = asked_for.as_bytes();
    verify != VerifyClient::Off && asked_for != &*request.host() && hosts.is_choice(asked_for)
}

fn log<E: Engine>(request: &Request, local: &Local<E>, message: fmt::Arguments<'_>) {
    local.log_error(Some(request), LogLevel::Info, message);
}

/// The IP address of a connection's end; `None` for a UNIX-domain socket.
pub(crate) fn ip(address: &Address) -> Option<IpAddr> {
    match address {
        Address::Ip(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}
