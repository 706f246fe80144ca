//! A probe of one server (`health_check`): a request of our own with the location's settings, or a connection alone.
//!
//! It is spelled as a client's request would be, from a GET of `uri=` that has no client: variables that depend on one
//! are empty, and `$host` is `$proxy_host`. The answer must be whole, as far as it is looked at, within one
//! `proxy_read_timeout`.

/// What is sent.
mod request;

use super::answer::AnswerHead;
use super::attempt::{Attempt, HeadReading};
use super::body::AnswerBody;
use super::content::PieceFraming;
use super::fault::{Fault, Step};
use super::tls::{self, Securing};
use super::trace::{TriedServer, UpstreamTrace};
use super::{binding, http, proxy_header, settings_of, trailers};
use crate::local::Local;
use crate::request::Request;
use crate::site::Site;
use crate::variables;
use mill_config::config::pass::Pass;
use mill_config::config::settings::PassSettings;
use mill_config::config::{HealthCheck, HealthCheckKind, ProbingLocation, Variable};
use mill_http::field::Field;
use mill_http::h1::response::RequestKind;
use mill_multiplex::carrier::Carrier;
use mill_multiplex::{Multiplexed, Options};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use mill_tls::transport::{Transport, TransportOf};
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use mill_upstream::probe::CONTENT_BYTES_MAX;
use mill_upstream::probe::examination::{Test, examine_checksum, examine_content, examine_head};
use mill_upstream::probe::grpc;
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// One check of one server, probe after probe.
pub(crate) struct Probe<E: Engine> {
    pub(crate) local: Rc<Local<E>>,
    pub(crate) site: Arc<Site>,
    pub(crate) place: ProbingLocation,
    pub(crate) pass: Arc<Pass>,
    pub(crate) check: HealthCheck,
    pub(crate) group: Arc<Group>,
    pub(crate) peer: Arc<Peer>,
    kept: Option<Kept<E>>,
    /// The checksum of the first answer, for `crc32 auto`.
    first_sum: Cell<Option<u32>>,
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

/// What carries a probe.
struct Connection<E: Engine> {
    stream: Carrier<TransportOf<E>>,
    opened: Instant,
    /// The last request has said so.
    closes: bool,
}

/// A connection between two probes.
enum Kept<E: Engine> {
    Own(TransportOf<E>, Instant),
    /// Of HTTP/2, which has a task of its own.
    Shared(Rc<Multiplexed<TransportOf<E>>>, Instant),
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
            first_sum: Cell::new(None),
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
            let request = self.request();
            match self.exchange(connection, request, &settings).await {
                // The server may have closed a kept connection at any time.
                Err(ProbeFault::Fault(fault)) if fault.is_of_connection() => {}
                ended => return ended.map(Test::words),
            }
        }
        let mut request = self.request();
        let connection = self.connect(&mut request, &settings).await;
        let connection = connection.map_err(ProbeFault::Fault)?;
        if self.check.kind == HealthCheckKind::Tcp {
            return Ok(Step::Connecting.words());
        }
        let ended = self.exchange(connection, request, &settings).await;
        ended.map(Test::words)
    }

    async fn connect(
        &self,
        request: &mut Request,
        settings: &PassSettings,
    ) -> Result<Connection<E>, Fault> {
        let scheduler = &self.local.scheduler;
        let (opened, task) = (scheduler.now(), scheduler.current());
        let address = match (self.peer.address(), self.check.port) {
            (Address::Ip(address), Some(port)) => Address::Ip(SocketAddr::new(address.ip(), port)),
            (address, _) => address,
        };
        let source = binding::source(settings, request, &self.local);
        let options = binding::connect_options(settings, source);
        let stream = self.local.engine.connect(&address, &options, task);
        let stream = stream.map_err(|error| match error {
            StreamError::Other(code) if source.is_some() && binding::is_of_bind(code) => {
                Fault::NotBound
            }
            error => Fault::Failed(Step::Connecting, error),
        })?;
        let is_http2 = http::is_http2(self.pass.protocol, request);
        let securing = Securing::of_pass(&self.pass, request, &self.local);
        let stream = match &securing {
            None => Transport::Tcp(stream),
            Some(securing) => securing.wrap(stream, is_http2, &self.local),
        };
        self.establish(&stream, request, settings).await?;
        if is_http2 && self.check.kind != HealthCheckKind::Tcp {
            return self.share(stream, opened);
        }
        Ok(Connection {
            stream: Carrier::Own(stream),
            opened,
            closes: false,
        })
    }

    /// Waits until a connection is there, has told by the PROXY protocol that no client is behind it (LOCAL, or UNKNOWN), and
    /// is secured.
    async fn establish(
        &self,
        stream: &TransportOf<E>,
        request: &Request,
        settings: &PassSettings,
    ) -> Result<(), Fault> {
        let header = match self.check.kind {
            HealthCheckKind::Tcp => Vec::new(),
            _ => proxy_header::of(request, self.pass.protocol),
        };
        if header.is_empty() {
            stream.begin_tls();
        }
        let trace = UpstreamTrace::default();
        let attempt = self.attempt_of(settings, &trace);
        let mut established = attempt.establish(stream, || false).await;
        if established.is_ok() && !header.is_empty() {
            stream.write(Payload::Copy(&header));
            stream.begin_tls();
            established = attempt.establish(stream, || false).await;
        }
        if let Err(Fault::Failed(..)) = established
            && tls::log_fault(stream, None, &self.local)
        {
            return Err(Fault::NotSecured);
        }
        established
    }

    /// Has the connection carry HTTP/2, with a first stream for this probe.
    fn share(&self, stream: TransportOf<E>, opened: Instant) -> Result<Connection<E>, Fault> {
        let scheme: &[u8] = if self.pass.tls { b"https" } else { b"http" };
        let options = Options {
            idle_timeout: self.idle_timeout(),
            ..Options::default()
        };
        let started = Multiplexed::start(stream, scheme, &options, &self.local.scheduler);
        let call = started.and_then(|shared| shared.open());
        let call = call.ok_or(Fault::NotConnected(StreamError::Refused))?;
        Ok(Connection {
            stream: Carrier::Call(call),
            opened,
            closes: false,
        })
    }

    /// How long a connection of HTTP/2 waits for the next probe. One that is not kept waits for nothing.
    fn idle_timeout(&self) -> Duration {
        let next = self.check.interval + self.check.jitter + MARGIN;
        let kept = self.check.keepalive_time.unwrap_or_default();
        kept.min(next)
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
        let (stream, opened) = match self.kept.take()? {
            Kept::Own(stream, opened) => {
                let is_quiet = stream.poll_readable(1).is_pending();
                (Carrier::Own(is_quiet.then_some(stream)?), opened)
            }
            Kept::Shared(shared, opened) => (Carrier::Call(shared.open()?), opened),
        };
        self.may_be_kept(opened).then_some(Connection {
            stream,
            opened,
            closes: false,
        })
    }

    fn may_be_kept(&self, opened: Instant) -> bool {
        let age = self.local.scheduler.now().since(opened);
        self.check.keepalive_time.is_some_and(|time| age < time)
    }

    /// Sends the request on a connection, and examines the answer. Returns the last test.
    async fn exchange(
        &mut self,
        mut connection: Connection<E>,
        mut request: Box<Request>,
        settings: &PassSettings,
    ) -> Result<Test, ProbeFault> {
        let asked = self.ask(&mut connection, &mut request, settings).await;
        let (mut answer, deadline) = asked.map_err(ProbeFault::Fault)?;
        let (stream, request) = (&connection.stream, &mut request);
        let last = match self.check.kind {
            HealthCheckKind::Grpc => {
                self.examine_call(stream, &mut answer, deadline, request)
                    .await
            }
            _ => self.examine(stream, &mut answer, deadline, request).await,
        }?;
        self.keep(connection, &answer);
        Ok(last)
    }

    /// Sends the request, and waits for the head of its answer. Returns it, and when the rest must be here.
    async fn ask(
        &self,
        connection: &mut Connection<E>,
        request: &mut Request,
        settings: &PassSettings,
    ) -> Result<(AnswerHead, Instant), Fault> {
        let local = &*self.local;
        let trace = Rc::clone(request.upstream.get_or_insert_with(|| local.take_trace()));
        let server = TriedServer::Peer(Arc::clone(&self.peer));
        trace.begin(server, false, local.scheduler.now());
        trace.connected(local.scheduler.now());
        let mut head = Vec::new();
        let (scan, closes) = self.emit_request(request, &mut head)?;
        // In HTTP/2 the field does not exist.
        connection.closes = closes && matches!(connection.stream, Carrier::Own(_));
        let stream = &connection.stream;
        stream.write(Payload::Copy(&head));
        let attempt = self.attempt_of(settings, &trace);
        attempt.drain(stream, 0, || false).await?;
        let deadline = local.scheduler.now() + settings.read_timeout;
        let mut reading = HeadReading::new(local, &trace, scan);
        let found = poll_fn(|_| reading.poll_head(stream, request));
        match local.scheduler.until(deadline, found).await {
            Ok(found) => {
                let answer = reading.into_answer(found?);
                trace.answered(answer.head.status, local.scheduler.now());
                Ok((answer, deadline))
            }
            Err(_) => Err(Fault::TimedOut(Step::ReadingHead)),
        }
    }

    /// Tests an answer, and reads as much of its content as is needed for it.
    async fn examine(
        &self,
        stream: &impl Stream,
        answer: &mut AnswerHead,
        deadline: Instant,
        request: &mut Request,
    ) -> Result<Test, ProbeFault> {
        let local = &*self.local;
        let trace = request.upstream.clone().unwrap_or_default();
        let matching = self.check.matching.as_deref();
        let mut last = {
            let fields = trace.fields();
            let head = &answer.bytes;
            let line = |field: &Field| (field.name.of(head), field.value.of(head));
            let lines: Vec<_> = fields.iter().map(line).collect();
            examine_head(matching, answer.head.status, &lines, |template| {
                variables::evaluate(template, request, local)
            })
            .map_err(ProbeFault::Test)?
        };
        let mut content = Content::default();
        let looks_at_content =
            matching.is_some_and(|matching| matching.body.is_some() || matching.checksum.is_some());
        if looks_at_content || self.check.keepalive_time.is_some() {
            let whole = content.read(stream, &mut answer.body, &trace);
            match local.scheduler.until(deadline, whole).await {
                Ok(read) => read.map_err(ProbeFault::Fault)?,
                Err(_) => return Err(ProbeFault::Fault(Fault::TimedOut(Step::Reading))),
            }
        }
        if let Some(matching) = matching {
            let value = |variable: &Variable| {
                let value = variables::value(variable, request, local);
                value.unwrap_or_default().into_owned()
            };
            let ended =
                examine_content(matching, &content.bytes, value).map_err(ProbeFault::Test)?;
            last = ended.unwrap_or(last);
            let sum = examine_checksum(matching, &content.bytes, &self.first_sum);
            last = sum.map_err(ProbeFault::Test)?.unwrap_or(last);
        }
        Ok(last)
    }

    /// Tests the answer of gRPC's health service, whose status stands behind its content, or in its head if there is none.
    async fn examine_call(
        &self,
        stream: &impl Stream,
        answer: &mut AnswerHead,
        deadline: Instant,
        request: &Request,
    ) -> Result<Test, ProbeFault> {
        let trace = request.upstream.clone().unwrap_or_default();
        if answer.head.status != 200 {
            return Err(ProbeFault::Test(Test::Status));
        }
        let mut content = Content::default();
        let whole = content.read(stream, &mut answer.body, &trace);
        match self.local.scheduler.until(deadline, whole).await {
            Ok(read) => read.map_err(ProbeFault::Fault)?,
            Err(_) => return Err(ProbeFault::Fault(Fault::TimedOut(Step::Reading))),
        }
        let is_status = |name: &[u8]| name.eq_ignore_ascii_case(b"grpc-status");
        let behind = trailers::fields(&content.trailers).find(|(name, _)| is_status(name));
        let status = match behind {
            Some((_, value)) => Some(value.to_vec()),
            None => trace.field(is_status),
        };
        let judged = grpc::examine(&self.check.grpc, status.as_deref(), &content.bytes);
        judged.map_err(ProbeFault::Test)
    }

    /// Keeps a connection whose answer was read to its end.
    fn keep(&mut self, connection: Connection<E>, answer: &AnswerHead) {
        let is_clean = answer.body.is_complete()
            && answer.body.allows_reuse()
            && connection.stream.read(|bytes| (0, bytes.is_empty()));
        let is_open = answer.head.keep_alive && !connection.closes;
        if is_open && is_clean && self.may_be_kept(connection.opened) {
            self.kept = Some(match connection.stream {
                Carrier::Own(stream) => Kept::Own(stream, connection.opened),
                Carrier::Call(call) => {
                    Kept::Shared(Rc::clone(call.connection()), connection.opened)
                }
            });
        }
    }
}

/// What stands behind the head of an answer.
#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    trailers: Vec<u8>,
}

impl Content {
    /// Reads it to its end, or as much of it as is looked at.
    async fn read<S: Stream>(
        &mut self,
        stream: &S,
        body: &mut AnswerBody,
        trace: &UpstreamTrace,
    ) -> Result<(), Fault> {
        while !body.is_complete() && self.bytes.len() < CONTENT_BYTES_MAX {
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
                    |piece| self.bytes.extend_from_slice(piece),
                    |_| {},
                    |byte| self.trailers.push(byte),
                );
                (step.as_ref().map_or(0, |step| step.consumed), step)
            })?;
            trace.received(step.consumed as u64, step.content as u64);
        }
        self.bytes.truncate(CONTENT_BYTES_MAX);
        Ok(())
    }
}

/// A kept connection of HTTP/2 waits so much longer than the next probe is due.
const MARGIN: Duration = Duration::from_secs(1);

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
            | Fault::NotBound
            | Fault::Failed(
                Step::Connecting,
                StreamError::Other(ENOMEM | ENFILE | EMFILE | EADDRINUSE | EADDRNOTAVAIL | ENOBUFS)
            )
    )
}

impl<E: Engine> fmt::Debug for Probe<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Probe({})", self.peer.name.display())
    }
}
