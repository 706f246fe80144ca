//! Questions over sockets: by datagram, and over TCP where the reply does not fit one.

use super::Resolver;
use super::counters::Counted;
use super::error::ResolveError;
use super::message::{ALIASES_MAX, Question, Records, Reply};
use super::query::{Attempt, Query, RESEND_AFTER, Step, Verdict};
use mill_runtime::datagrams::{
    DatagramEngine, DatagramOptions, DatagramSocket, OutgoingDatagram, ReceivedDatagram,
};
use mill_runtime::engine::ConnectOptions;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_runtime::time::{Duration, Instant};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

impl<E: DatagramEngine> Resolver<E> {
    /// Asks the server of number `first`, then the others; and where the name is an alias whose records the server does
    /// not add, asks for those. It ends without an answer at the next pause once nothing `is_waited_for`.
    pub(super) async fn ask_through(
        &self,
        mut question: Question,
        first: usize,
        is_waited_for: impl Fn() -> bool,
    ) -> Result<Records, ResolveError> {
        let mut ttl_seconds: Option<u32> = None;
        for _ in 0..=ALIASES_MAX {
            let mut records = self.ask(&question, first, &is_waited_for).await?;
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

    async fn ask(
        &self,
        question: &Question,
        first: usize,
        is_waited_for: &impl Fn() -> bool,
    ) -> Result<Records, ResolveError> {
        let mut query = Query::new(&self.options.servers, first);
        loop {
            let reply = match query.next_step(self.scheduler.now()) {
                Step::Ask { server, until } => self.ask_server(question, server, until).await,
                Step::Wait { until } => {
                    let pause = until.since(self.scheduler.now());
                    self.scheduler.sleep(pause).await;
                    None
                }
            };
            match reply {
                Some(Reply::Records(records)) => {
                    self.counters.count(Counted::Answer);
                    return Ok(records);
                }
                Some(Reply::Failed(error)) => return Err(self.failed(error)),
                Some(Reply::Truncated) | None => {}
            }
            if !is_waited_for() {
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
        let reply = self.scheduler.until(until, by_datagram).await.ok()??;
        if reply != Reply::Truncated {
            return Some(reply);
        }
        self.counters.count(Counted::Truncated);
        let until = self.scheduler.now() + TCP_TIMEOUT;
        let over_tcp = self.ask_over_tcp(question, server);
        self.scheduler.until(until, over_tcp).await.ok()?
    }

    /// The system chooses a port for each attempt, at random; a socket with a peer receives from it alone.
    async fn ask_by_datagram(&self, question: &Question, server: SocketAddr) -> Option<Reply> {
        let options = DatagramOptions {
            remote: Some(server),
            ..DatagramOptions::new(any_port_towards(server))
        };
        let task = self.scheduler.current();
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
                    Verdict::Ignore(event) => self.counters.count(event),
                    Verdict::GiveUp(event) => {
                        self.counters.count(event);
                        return None;
                    }
                }
            }
        }
    }

    /// RFC 7766 8: a message follows its length.
    async fn ask_over_tcp(&self, question: &Question, server: SocketAddr) -> Option<Reply> {
        let (options, task) = (ConnectOptions::default(), self.scheduler.current());
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
                    self.counters.count(Counted::Mismatch);
                }
                return reply.ok();
            }
            if readable.finished {
                return None;
            }
        }
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
        SocketAddr::V4(_) => SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// nginx's `tcp_timeout`.
const TCP_TIMEOUT: Duration = RESEND_AFTER;

/// Bytes of the longest message, with its length.
const FRAMED_BYTES_MAX: usize = 2 + u16::MAX as usize;
