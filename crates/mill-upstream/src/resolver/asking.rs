//! The task of a look-up: questions over sockets, by datagram, and over TCP where the reply does not fit one.

use super::Resolver;
use super::addresses::{Addresses, Services};
use super::counters::Counted;
use super::error::ResolveError;
use super::lookup::{Found, Lookup, Wanted};
use super::message::{ALIASES_MAX, Question, RecordKind, Records, Reply};
use super::query::{Attempt, PERIOD_MAX, Query, Step, Verdict};
use mill_runtime::datagrams::{
    DatagramEngine, DatagramOptions, DatagramSocket, OutgoingDatagram, ReceivedDatagram,
};
use mill_runtime::engine::ConnectOptions;
use mill_runtime::payload::Payload;
use mill_runtime::race::both;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::time::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

/// One look-up over an engine.
pub(super) struct Asking<E> {
    engine: E,
    resolver: Rc<Resolver>,
    /// The number of the server that is asked first.
    first: usize,
}

impl<E: DatagramEngine> Asking<E> {
    pub(super) fn new(engine: &E, resolver: &Rc<Resolver>) -> Self {
        let first = resolver.next_server.get();
        resolver.next_server.set(first.wrapping_add(1));
        Self {
            engine: engine.clone(),
            resolver: Rc::clone(resolver),
            first,
        }
    }

    pub(super) async fn look_up(self, lookup: Rc<Lookup>) {
        let outcome = match lookup.wanted {
            Wanted::Addresses => {
                self.count(Counted::Name);
                self.addresses(&lookup).await.map(Found::Addresses)
            }
            Wanted::Services => {
                self.count(Counted::Service);
                self.services(&lookup).await.map(Found::Services)
            }
        };
        self.resolver.on_ended(&lookup, outcome);
    }

    /// As with nginx, an error for one family is an error for the name.
    async fn addresses(&self, lookup: &Lookup) -> Result<Addresses, ResolveError> {
        let options = &self.resolver.options;
        let (ipv4, ipv6) = both(
            self.family(lookup, RecordKind::A, options.ipv4),
            self.family(lookup, RecordKind::Aaaa, options.ipv6),
        )
        .await;
        let (ipv4, ipv6) = (ipv4?, ipv6?);
        let all = [ipv4.addresses, ipv6.addresses].concat();
        if all.is_empty() {
            return Err(ResolveError::NotFound);
        }
        let ttl = ipv4.ttl_seconds.into_iter().chain(ipv6.ttl_seconds).min();
        let valid_until = self.resolver.valid_until(ttl);
        Ok(Addresses::new(all.into(), valid_until))
    }

    async fn family(
        &self,
        lookup: &Lookup,
        kind: RecordKind,
        is_wanted: bool,
    ) -> Result<Records, ResolveError> {
        if !is_wanted {
            return Ok(Records::default());
        }
        self.records(lookup, kind).await
    }

    async fn services(&self, lookup: &Lookup) -> Result<Services, ResolveError> {
        let records = self.records(lookup, RecordKind::Srv).await?;
        if records.services.is_empty() {
            return Err(ResolveError::NotFound);
        }
        Ok(Services {
            valid_until: self.resolver.valid_until(records.ttl_seconds),
            all: records.services.into(),
        })
    }

    /// Asks, and where the name is an alias whose records the server does not add, asks for those.
    async fn records(&self, lookup: &Lookup, kind: RecordKind) -> Result<Records, ResolveError> {
        let name = lookup.name;
        let mut question = Question { name, kind };
        let mut ttl_seconds: Option<u32> = None;
        for _ in 0..=ALIASES_MAX {
            let mut records = self.ask(&question, lookup).await?;
            ttl_seconds = ttl_seconds.into_iter().chain(records.ttl_seconds).min();
            match records.alias.take() {
                Some(alias) => question.name = *alias,
                None => {
                    records.ttl_seconds = ttl_seconds;
                    return Ok(records);
                }
            }
        }
        Err(ResolveError::NotFound)
    }

    /// Asks one server after the other. It ends without an answer at the next pause once nothing waits for the look-up.
    async fn ask(&self, question: &Question, lookup: &Lookup) -> Result<Records, ResolveError> {
        let mut query = Query::new(&self.resolver.options.servers, self.first);
        loop {
            let reply = match query.next_step(self.scheduler().now()) {
                Step::Ask { server, until } => self.ask_server(question, server, until).await,
                Step::Wait { until } => {
                    let pause = until.since(self.scheduler().now());
                    self.scheduler().sleep(pause).await;
                    None
                }
            };
            match reply {
                Some(Reply::Records(records)) => {
                    self.count(Counted::Answer);
                    return Ok(records);
                }
                Some(Reply::Failed(error)) => return Err(self.resolver.failed(error)),
                Some(Reply::Truncated) | None => {}
            }
            if !lookup.is_waited_for() {
                return Err(ResolveError::TimedOut);
            }
        }
    }

    /// `None` if the server does not reply in time, or cannot be asked.
    async fn ask_server(
        &self,
        question: &Question,
        server: SocketAddr,
        until: Instant,
    ) -> Option<Reply> {
        let by_datagram = self.ask_by_datagram(question, server);
        let reply = self.scheduler().until(until, by_datagram).await.ok()??;
        if reply != Reply::Truncated {
            return Some(reply);
        }
        self.count(Counted::Truncated);
        let until = self.scheduler().now() + TCP_TIMEOUT;
        let over_tcp = self.ask_over_tcp(question, server);
        self.scheduler().until(until, over_tcp).await.ok()?
    }

    /// The system chooses a port for each attempt, at random; a socket with a peer receives from it alone.
    async fn ask_by_datagram(&self, question: &Question, server: SocketAddr) -> Option<Reply> {
        let options = DatagramOptions {
            remote: Some(server),
            ..DatagramOptions::new(any_port_towards(server))
        };
        let task = self.scheduler().current();
        let socket = self.engine.open_datagrams(&options, task).ok()?;
        let mut attempt = Attempt::new(server, self.random_id());
        let message = question.emit(attempt.id);
        let datagram = OutgoingDatagram::new(&message, server);
        socket.send(&[datagram]).await.ok()?;
        loop {
            let mut verdicts = Vec::new();
            let take = |datagram: ReceivedDatagram<'_>| {
                let judge = |bytes| attempt.on_datagram(question, datagram.remote, bytes);
                verdicts.extend(datagram.segments().map(judge));
            };
            socket.receive(1, take).await.ok()?;
            for verdict in verdicts {
                match verdict {
                    Verdict::Replied(reply) => return Some(reply),
                    Verdict::Ignore(event) => self.count(event),
                    Verdict::GiveUp(event) => {
                        self.count(event);
                        return None;
                    }
                }
            }
        }
    }

    /// RFC 7766 8: a message follows its length.
    async fn ask_over_tcp(&self, question: &Question, server: SocketAddr) -> Option<Reply> {
        let (options, task) = (ConnectOptions::default(), self.scheduler().current());
        let stream = self.engine.connect(&server.into(), &options, task).ok()?;
        stream.drained(0).await.ok()?;
        let id = self.random_id();
        let message = question.emit(id);
        let len = u16::try_from(message.len()).expect("a question has a few hundred bytes");
        let framed = [&len.to_be_bytes()[..], &message].concat();
        stream.write(Payload::Copy(&framed));
        let mut received = Vec::new();
        loop {
            let readable = stream.readable(1).await.ok()?;
            stream.read(|bytes| {
                let room = FRAMED_BYTES_MAX - received.len();
                let taken = bytes.len().min(room);
                received.extend_from_slice(&bytes[..taken]);
                (taken, ())
            });
            if let Some(message) = framed_message(&received) {
                let reply = question.parse(id, message);
                if reply.is_err() {
                    self.count(Counted::Mismatch);
                }
                return reply.ok();
            }
            if readable.finished {
                return None;
            }
        }
    }

    fn count(&self, event: Counted) {
        self.resolver.counters.count(event);
    }

    fn scheduler(&self) -> &Scheduler {
        &self.resolver.scheduler
    }

    fn random_id(&self) -> u16 {
        let [high, low, ..] = self.engine.random().to_be_bytes();
        u16::from_be_bytes([high, low])
    }
}

/// The message behind the length, once it is whole.
fn framed_message(bytes: &[u8]) -> Option<&[u8]> {
    let (len, behind) = bytes.split_first_chunk::<2>()?;
    behind.get(..usize::from(u16::from_be_bytes(*len)))
}

const fn any_port_towards(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// nginx's `tcp_timeout`.
const TCP_TIMEOUT: Duration = PERIOD_MAX;

/// Bytes of the longest message, with its length.
const FRAMED_BYTES_MAX: usize = 2 + u16::MAX as usize;
