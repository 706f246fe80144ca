//! A probe of one server (`health_check`): a request of our own with the location's settings, or a connection alone.
//!
//! It is spelled as a client's request would be, from a GET of `uri=` that has no client: variables that depend on one
//! are empty, and `$host` is `$proxy_host`. The answer must be whole, as far as it is looked at, within one
//! `proxy_read_timeout`.

use super::answer::AnswerHead;
use super::attempt::{Attempt, HeadReading};
use super::body::AnswerBody;
use super::content::PieceFraming;
use super::fault::{Fault, Step};
use super::http::{self, ContentFraming};
use super::scan::HeadScan;
use super::target::{Servers, Target};
use super::trace::{TriedServer, UpstreamTrace};
use super::{gateway, proxy_header, settings_of};
use crate::local::Local;
use crate::request::{Arrival, ConnectionFacts, Message, Request};
use crate::site::Site;
use crate::variables;
use mill_config::config::pass::{Pass, PassProtocol};
use mill_config::config::settings::PassSettings;
use mill_config::config::{HealthCheck, HealthCheckKind, ProbingLocation, Variable};
use mill_http::escape::{EscapeSet, escape_uri};
use mill_http::field::Field;
use mill_http::h1::parse::parse_request;
use mill_http::h1::response::RequestKind;
use mill_http::limits::HeadRules;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::Instant;
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use mill_upstream::probe::CONTENT_BYTES_MAX;
use mill_upstream::probe::examination::{Test, examine_content, examine_head};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// One check of one server, probe after probe.
pub(crate) struct Probe<E: Engine> {
    pub(crate) local: Rc<Local<E>>,
    pub(crate) site: Arc<Site>,
    pub(crate) place: ProbingLocation,
    pub(crate) pass: Arc<Pass>,
    pub(crate) check: HealthCheck,
    pub(crate) group: Arc<Group>,
    pub(crate) peer: Arc<Peer>,
    kept: Option<Connection<E>>,
}

/// How a probe has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeEnd {
    /// In the last step or test, in the words of the log.
    Passed(&'static str),
    Failed(ProbeFault),
    /// It says nothing about the server: this machine could not send it.
    NotSent(Fault),
}

/// Why a probe has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeFault {
    /// There is no answer, or it is not one.
    Fault(Fault),
    /// The answer is not what it must be.
    Test(Test),
}

impl ProbeFault {
    /// What follows `while` in the log.
    pub(crate) const fn during(self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.during(),
            Self::Test(test) => test.words(),
        }
    }
}

/// A connection of probes.
struct Connection<E: Engine> {
    stream: E::Stream,
    opened: Instant,
    /// Nothing was sent on it.
    is_new: bool,
}

impl<E: Engine> Probe<E> {
    /// `None` if the location passes nothing on.
    pub(crate) fn new(
        local: &Rc<Local<E>>,
        site: &Arc<Site>,
        place: &ProbingLocation,
        check: &HealthCheck,
        group: &Arc<Group>,
        peer: &Arc<Peer>,
    ) -> Option<Self> {
        Some(Self {
            local: Rc::clone(local),
            site: Arc::clone(site),
            pass: place.location.pass.clone()?,
            place: place.clone(),
            check: check.clone(),
            group: Arc::clone(group),
            peer: Arc::clone(peer),
            kept: None,
        })
    }

    /// Sends one probe, and judges what comes of it.
    pub(crate) async fn run(&mut self) -> ProbeEnd {
        match self.attempt().await {
            Ok(words) => ProbeEnd::Passed(words),
            Err(ProbeFault::Fault(fault)) if is_own(fault) => ProbeEnd::NotSent(fault),
            Err(fault) => ProbeEnd::Failed(fault),
        }
    }

    async fn attempt(&mut self) -> Result<&'static str, ProbeFault> {
        let settings = settings_of(&self.place.location, self.pass.protocol);
        if let Some(connection) = self.take_kept() {
            match self.exchange(connection, &settings).await {
                // The server may have closed a kept connection at any time.
                Err(ProbeFault::Fault(fault)) if fault.is_of_connection() => {}
                ended => return ended.map(Test::words),
            }
        }
        let connection = self.connect(&settings).await.map_err(ProbeFault::Fault)?;
        if self.check.kind == HealthCheckKind::Tcp {
            return Ok(Step::Connecting.words());
        }
        let ended = self.exchange(connection, &settings).await;
        ended.map(Test::words)
    }

    async fn connect(&self, settings: &PassSettings) -> Result<Connection<E>, Fault> {
        let scheduler = &self.local.scheduler;
        let (opened, task) = (scheduler.now(), scheduler.current());
        let address = match (self.peer.address(), self.check.port) {
            (Address::Ip(address), Some(port)) => Address::Ip(SocketAddr::new(address.ip(), port)),
            (address, _) => address,
        };
        let options = ConnectOptions::default();
        let stream = self.local.engine.connect(&address, &options, task);
        let stream = stream.map_err(|error| Fault::Failed(Step::Connecting, error))?;
        let trace = UpstreamTrace::default();
        let attempt = self.attempt_of(settings, &trace);
        attempt.establish(&stream, || false).await?;
        Ok(Connection {
            stream,
            opened,
            is_new: true,
        })
    }

    fn attempt_of<'a>(
        &'a self,
        settings: &'a PassSettings,
        trace: &'a UpstreamTrace,
    ) -> Attempt<'a, E> {
        Attempt {
            local: &self.local,
            settings,
            trace,
            kind: RequestKind::Other,
            passes_hints: false,
            pieces: PieceFraming::None,
            needs_client: false,
        }
    }

    /// The connection of the probe before, if it may carry another one.
    fn take_kept(&mut self) -> Option<Connection<E>> {
        let kept = self.kept.take()?;
        let is_young = self.may_be_kept(&kept);
        (is_young && matches!(kept.stream.poll_readable(1), Poll::Pending)).then_some(kept)
    }

    fn may_be_kept(&self, connection: &Connection<E>) -> bool {
        let age = self.local.scheduler.now().since(connection.opened);
        self.check.keepalive_time.is_some_and(|time| age < time)
    }

    /// Sends the request on a connection, and examines the answer. Returns the last test.
    async fn exchange(
        &mut self,
        connection: Connection<E>,
        settings: &PassSettings,
    ) -> Result<Test, ProbeFault> {
        let (local, stream) = (Rc::clone(&self.local), &connection.stream);
        let mut request = self.request();
        let trace = Rc::clone(request.upstream.get_or_insert_with(|| local.take_trace()));
        let server = TriedServer::Peer(Arc::clone(&self.peer));
        trace.begin(server, false, local.scheduler.now());
        trace.connected(local.scheduler.now());
        // No client is behind it: LOCAL, or UNKNOWN.
        let mut head = match connection.is_new {
            true => proxy_header::of(&request, self.pass.protocol),
            false => Vec::new(),
        };
        let spelled = self.emit_request(&mut request, &mut head);
        let scan = spelled.map_err(ProbeFault::Fault)?;
        stream.write(Payload::Copy(&head));
        let sent = self
            .attempt_of(settings, &trace)
            .drain(stream, 0, || false)
            .await;
        sent.map_err(ProbeFault::Fault)?;
        let deadline = local.scheduler.now() + settings.read_timeout;
        let mut reading = HeadReading::new(&*local, &trace, scan);
        let found = poll_fn(|_| reading.poll_head(stream, &request));
        let found = match local.scheduler.until(deadline, found).await {
            Ok(found) => found.map_err(ProbeFault::Fault)?,
            Err(_) => return Err(ProbeFault::Fault(Fault::TimedOut(Step::ReadingHead))),
        };
        let mut answer = reading.into_answer(found);
        trace.answered(answer.head.status, local.scheduler.now());
        let matching = self.check.matching.clone();
        let matching = matching.as_deref();
        let head = Rc::clone(&answer.bytes);
        let mut last = {
            let fields = trace.fields();
            let line = |field: &Field| (field.name.of(&head), field.value.of(&head));
            let lines: Vec<_> = fields.iter().map(line).collect();
            examine_head(matching, answer.head.status, &lines, |template| {
                variables::evaluate(template, &mut request, &local)
            })
            .map_err(ProbeFault::Test)?
        };
        let mut content = Vec::new();
        let looks_at_content = matching.is_some_and(|matching| matching.body.is_some());
        if looks_at_content || self.check.keepalive_time.is_some() {
            let whole = read_content(stream, &mut answer.body, &trace, &mut content);
            match local.scheduler.until(deadline, whole).await {
                Ok(read) => read.map_err(ProbeFault::Fault)?,
                Err(_) => return Err(ProbeFault::Fault(Fault::TimedOut(Step::Reading))),
            }
        }
        if let Some(matching) = matching {
            let value = |variable: &Variable| {
                let value = variables::value(variable, &mut request, &local);
                value.unwrap_or_default().into_owned()
            };
            let ended = examine_content(matching, &content, value).map_err(ProbeFault::Test)?;
            last = ended.unwrap_or(last);
        }
        self.keep(connection, &answer);
        Ok(last)
    }

    /// Keeps a connection whose answer was read to its end.
    fn keep(&mut self, connection: Connection<E>, answer: &AnswerHead) {
        let is_clean = answer.body.is_complete()
            && answer.body.allows_reuse()
            && connection.stream.read(|bytes| (0, bytes.is_empty()));
        if answer.head.keep_alive && is_clean && self.may_be_kept(&connection) {
            self.kept = Some(Connection {
                is_new: false,
                ..connection
            });
        }
    }

    /// The request that a client would have sent, had there been one.
    fn request(&self) -> Box<Request> {
        let connection = ConnectionFacts {
            number: 0,
            listener: 0,
            peer: Address::Unix(Rc::from(&b""[..])),
            local: Address::Ip(SocketAddr::from(([0; 4], 0))),
            transport: Cell::new(None),
            proxy_header: None,
            started: self.local.scheduler.now(),
        };
        let mut message = Message::default();
        self.emit_client_request(&mut message.bytes);
        parse_request(&message.bytes, &mut message.head, &HeadRules::default());
        let arrival = Arrival {
            connection: Rc::new(connection),
            listener: 0,
            connection_requests: 0,
            message,
            pipelined: false,
        };
        let mut request = Request::of_location(arrival, &self.place, &self.site, &self.local);
        let without_client = WITHOUT_CLIENT.iter().cloned();
        request.overrides = without_client.map(|name| (name, Vec::new())).collect();
        if let Some(Variable::User(key)) = self.pass.memcached_key
            && let Some(place) = request.variables.get_mut(key)
        {
            *place = Some(self.check.uri.as_bytes().to_vec());
        }
        request
    }

    fn emit_client_request(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"GET ");
        for &byte in self.check.uri.as_bytes() {
            if byte <= b' ' || byte == 0x7f {
                escape_uri(EscapeSet::Uri, &[byte], out);
            } else {
                out.push(byte);
            }
        }
        for part in [b" HTTP/1.1\r\nHost: ", &*self.pass.host, b"\r\n\r\n"] {
            out.extend_from_slice(part);
        }
    }

    /// Appends the head of the request in the protocol of the location; returns what reads its answer's.
    fn emit_request(&self, request: &mut Request, out: &mut Vec<u8>) -> Result<HeadScan, Fault> {
        let (protocol, location) = (self.pass.protocol, &self.place.location);
        let (mut kind, mut key) = (RequestKind::Other, 0..0);
        if protocol == PassProtocol::Http {
            let target = Target {
                pass: Arc::clone(&self.pass),
                servers: Servers::Group(Arc::clone(&self.group)),
                evaluated: None,
                whole_uri: Some(self.check.uri.as_bytes().to_vec()),
                key: Vec::new(),
            };
            http::emit_request(&target, ContentFraming::None, request, &self.local, out);
            kind = http::kind(request, &self.local);
        } else {
            let none = ContentFraming::None;
            key = gateway::emit_request(protocol, none, request, &self.local, out)?;
        }
        let key = out.get(key).unwrap_or_default();
        Ok(HeadScan::new(protocol, kind, location, key))
    }
}

/// Reads the content to its end, or as much of it as is looked at.
async fn read_content<S: Stream>(
    stream: &S,
    body: &mut AnswerBody,
    trace: &UpstreamTrace,
    content: &mut Vec<u8>,
) -> Result<(), Fault> {
    while !body.is_complete() && content.len() < CONTENT_BYTES_MAX {
        let readable = stream.readable(1).await;
        let readable = readable.map_err(|error| Fault::Failed(Step::Reading, error))?;
        if readable.unread == 0 {
            let is_whole = body.is_completed_by_end();
            return is_whole
                .then_some(())
                .ok_or(Fault::ClosedEarly(Step::Reading));
        }
        let step = stream.read(|bytes| {
            let step = body.on_bytes(
                bytes,
                |piece| content.extend_from_slice(piece),
                |_| {},
                |_| {},
            );
            (step.as_ref().map_or(0, |step| step.consumed), step)
        })?;
        trace.received(step.consumed as u64, step.content as u64);
    }
    content.truncate(CONTENT_BYTES_MAX);
    Ok(())
}

/// Errors of this machine alone: it has no descriptor, no memory or no port left, or the request cannot be spelled.
const fn is_own(fault: Fault) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const EADDRINUSE: i32 = 98;
    const EADDRNOTAVAIL: i32 = 99;
    const ENOBUFS: i32 = 105;
    matches!(
        fault,
        Fault::NotSpelled
            | Fault::Failed(
                Step::Connecting,
                StreamError::Other(ENOMEM | ENFILE | EMFILE | EADDRINUSE | EADDRNOTAVAIL | ENOBUFS)
            )
    )
}

/// Addresses that a probe does not have.
const WITHOUT_CLIENT: [Variable; 6] = [
    Variable::RemoteAddr,
    Variable::RealipRemoteAddr,
    Variable::BinaryRemoteAddr,
    Variable::ServerAddr,
    Variable::ServerPort,
    Variable::ProxyAddXForwardedFor,
];

impl<E: Engine> fmt::Debug for Probe<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Probe({})", self.peer.name.display())
    }
}
