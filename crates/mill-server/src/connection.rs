//! One connection: requests one after the other, until either side ends it.
//!
//! Most requests end here, in `answer_hot`: parsed, found, copied out. All others run in a pooled box (`cycle`), so
//! that an idle connection is small.

/// The header of the PROXY protocol.
pub(crate) mod proxy_header;

/// Lines of the error log.
mod log_lines;

/// Reading a head.
mod head;

/// Heads that are refused.
pub(crate) mod refused;

/// Requests that are answered at once.
mod hot_answers;

/// One request the whole way: head, phases, answer, rest of its content.
pub(crate) mod cycle;

/// Closing a connection so that the peer receives everything that was sent.
mod finish;

use crate::frang::account::Client;
use crate::frang::admission::{Admission, admit};
use crate::h2;
use crate::hot::HotAnswer;
use crate::listener_context::ListenerContext;
use crate::local::Local;
use crate::proxy::tunnel::Tunnel;
use crate::request::ConnectionFacts;
use crate::stream::{self, session};
use cycle::Stage;
use mill_acme::challenge::ALPN_PROTOCOL;
use mill_config::config::frang::FrangAction;
use mill_config::config::settings::{ConnectionSettings, LingeringClose};
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_runtime::time::{Duration, Instant};
use mill_tls::transport::{Transport, TransportOf};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A client's connection while its task runs.
pub struct Connection<E: Engine> {
    stream: TransportOf<E>,
    pub(crate) local: Rc<Local<E>>,
    pub(crate) listener: Rc<ListenerContext>,
    /// Made when a request first needs it.
    facts: Option<Rc<ConnectionFacts>>,
    number: u64,
    started: Instant,
    /// When it is closed if nothing arrives.
    deadline: Instant,
    requests: u32,
    /// The hot answer whose bytes may still be queued: its location's settings apply until the client has taken them.
    last: Option<Rc<HotAnswer>>,
    /// The next request arrived before the previous one was answered.
    pipelined: bool,
    /// The last answer was 101.
    tunnel: Option<Box<Tunnel<E>>>,
    /// The client that its requests count for, if `frang` limits it.
    pub(crate) client: Option<Arc<Client>>,
    standing: Standing,
    /// Its handshake is over, or does not count.
    is_shaken: bool,
}

/// What limits mean for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Usual,
    /// Its requests have no limits either.
    Free,
    /// Requests count for the clients that its peer tells, so each of them goes the whole way.
    Proxy,
    /// It is closed at once.
    Refused,
    /// The request that has begun is one too many: it gets 403.
    Limited,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A request has arrived, at least in part.
    Cycle,
    /// No further request, but a part of the last hot answer is still queued: wait until the client has taken it.
    Wait,
    /// The connection has become a tunnel.
    Tunnel,
    /// The client speaks HTTP/2.
    Http2,
    /// The listener is one of `stream`.
    Session,
    /// The last answer was a hot one: send the rest of it, and close.
    Finish,
    /// Nothing is left to send.
    End,
}

/// The task of an accepted connection.
pub fn serve<E: Engine>(
    stream: E::Stream,
    listener: Rc<ListenerContext>,
    local: Rc<Local<E>>,
) -> impl Future<Output = ()> {
    let number = local.next_connection_number();
    let admission = admit(&stream, &listener, &local);
    let choice = match &admission {
        Admission::Refused(_) => None,
        _ => listener.server_choice::<E>(&stream, number, &local),
    };
    let stream = match choice {
        None => Transport::Tcp(stream),
        Some(choice) => Transport::server(stream, choice, local.tls.clone()),
    };
    let mut connection = Connection::new(stream, number, listener, local);
    connection.enter(admission);
    async move {
        if connection.listener.is_stream() {
            session::log_accepted(&connection);
        }
        if connection.standing != Standing::Refused
            && connection.awaits_proxy_header()
            && let Err(unread) = poll_fn(|_| connection.poll_proxy_header()).await
        {
            if connection.listener.is_stream() {
                stream::refuse(&mut connection, unread);
            }
            return;
        }
        connection.stream.begin_tls();
        loop {
            match poll_fn(|_| connection.poll_next()).await {
                Next::End => return,
                Next::Tunnel => {
                    let pool = Rc::clone(&connection.local.tunnels);
                    return pool.start(carry(connection)).await;
                }
                Next::Http2 => {
                    let pool = Rc::clone(&connection.local.http2);
                    return pool.start(h2::serve(connection)).await;
                }
                Next::Session => {
                    let pool = Rc::clone(&connection.local.sessions);
                    return pool.start(stream::serve(connection)).await;
                }
                Next::Finish => {
                    let pool = Rc::clone(&connection.local.finishing);
                    return pool.start(finish::finish_behind_last(connection)).await;
                }
                Next::Wait => {
                    let pool = Rc::clone(&connection.local.waiting);
                    match pool.start(finish::wait_until_taken(connection)).await {
                        Some(kept) => connection = kept,
                        None => return,
                    }
                }
                Next::Cycle => {
                    let pool = Rc::clone(&connection.local.cycles);
                    match pool.start(cycle::cycle(connection)).await {
                        Some(kept) => connection = kept,
                        None => return,
                    }
                }
            }
        }
    }
}

/// The rest of a connection's life as a tunnel.
///
/// No `async fn`: that would hold the connection twice.
fn carry<E: Engine>(mut connection: Connection<E>) -> impl Future<Output = ()> {
    let mut tunnel = connection.tunnel.take().map(|boxed| *boxed);
    connection.facts = None;
    // It waits for no request, and makes no room.
    let mut stage = Stage::reading(&connection.local);
    stage.write();
    poll_fn(move |_| {
        let _ = &stage;
        match &mut tunnel {
            Some(tunnel) => tunnel.poll(&connection.stream, &connection.local),
            None => Poll::Ready(()),
        }
    })
}

impl<E: Engine> Connection<E> {
    fn new(
        stream: TransportOf<E>,
        number: u64,
        listener: Rc<ListenerContext>,
        local: Rc<Local<E>>,
    ) -> Self {
        let started = local.scheduler.now();
        let deadline = started + listener.header_timeout();
        let mut counters = local.counters.borrow_mut();
        counters.connections_accepted += 1;
        counters.connections_handled += 1;
        counters.connections_active += 1;
        counters.connections_waiting += 1;
        drop(counters);
        Self {
            stream,
            local,
            listener,
            facts: None,
            number,
            started,
            deadline,
            requests: 0,
            last: None,
            pipelined: false,
            tunnel: None,
            client: None,
            standing: Standing::Usual,
            is_shaken: true,
        }
    }

    /// What limits mean for it.
    fn enter(&mut self, admission: Admission) {
        match admission {
            Admission::Free => {}
            Admission::Marked => self.standing = Standing::Free,
            Admission::Proxy => self.standing = Standing::Proxy,
            Admission::Client(client) => {
                self.client = Some(client);
                self.is_shaken = matches!(self.stream, Transport::Tcp(_));
            }
            Admission::Refused(refusal) => {
                self.standing = Standing::Refused;
                self.refuse(&refusal);
            }
        }
    }

    /// Answers requests that have hot answers; ready when something else is to be done.
    fn poll_next(&mut self) -> Poll<Next> {
        if self.standing == Standing::Refused {
            return Poll::Ready(Next::End);
        }
        if self.listener.is_stream() {
            return Poll::Ready(Next::Session);
        }
        if self.tunnel.is_some() {
            return Poll::Ready(Next::Tunnel);
        }
        for _ in 0..HOT_PER_TURN {
            match self.stream.poll_readable(1) {
                Poll::Ready(Ok(_)) if !self.is_shaken && self.shake() => {
                    return Poll::Ready(Next::End);
                }
                Poll::Ready(Ok(_)) if self.requests == 0 && self.was_a_proof() => {
                    return Poll::Ready(Next::End);
                }
                Poll::Ready(Ok(_)) if self.requests == 0 && self.speaks_http2() => {
                    return Poll::Ready(Next::Http2);
                }
                Poll::Ready(Ok(readable)) if readable.unread > 0 => {
                    if let Some(action) = self.count_request() {
                        return Poll::Ready(self.limit(action));
                    }
                    if let Some(next) = self.answer_hot() {
                        return Poll::Ready(next);
                    }
                }
                // The client has sent FIN, and may still be reading its answers.
                Poll::Ready(Ok(_)) => {
                    self.log_end();
                    let is_taken = self.last.is_none() || self.is_drained();
                    return Poll::Ready(if is_taken { Next::End } else { Next::Finish });
                }
                Poll::Ready(Err(error)) => {
                    self.log_tls_fault(error);
                    return Poll::Ready(Next::End);
                }
                Poll::Pending if self.last.is_some() && self.stream.queued() > 0 => {
                    return Poll::Ready(Next::Wait);
                }
                Poll::Pending => {
                    // An idle connection holds no answer, and so no configuration.
                    self.last = None;
                    return self.poll_idle_end();
                }
            }
        }
        self.local.scheduler.wake(self.local.scheduler.current());
        Poll::Pending
    }

    /// The request that has begun is one too many.
    #[cold]
    fn limit(&mut self, action: FrangAction) -> Next {
        if action == FrangAction::Drop {
            return Next::End;
        }
        self.standing = Standing::Limited;
        Next::Cycle
    }

    /// The handshake is over: whether it is one too many.
    #[cold]
    fn shake(&mut self) -> bool {
        self.is_shaken = true;
        self.count_handshake()
    }

    /// Whether the handshake was all that an authority wanted (tls-alpn-01, RFC 8737 3).
    fn was_a_proof(&self) -> bool {
        let facts = self.stream.tls_facts();
        facts.is_some_and(|facts| facts.alpn.as_deref() == Some(ALPN_PROTOCOL))
    }

    /// Whether the client has agreed on HTTP/2, or begins so in clear.
    fn speaks_http2(&self) -> bool {
        if !self.listener.has_http2() {
            return false;
        }
        match self.stream.tls_facts() {
            Some(facts) => facts.alpn.as_deref() == Some(b"h2"),
            None => {
                self.stream.read(|bytes| (0, h2::has_preface(bytes)))
                    && !self.stream.is_clear_where_tls_was_due()
            }
        }
    }

    /// Its requests must not be answered with kept answers.
    pub(crate) fn needs_whole_way(&self) -> bool {
        let is_counted = !matches!(self.standing, Standing::Usual | Standing::Free);
        is_counted || self.looks_at_all()
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn stream(&self) -> &TransportOf<E> {
        &self.stream
    }

    /// Ready when an idle connection is to be closed.
    fn poll_idle_end(&self) -> Poll<Next> {
        if self.requests > 0 && self.listener.is_gone() {
            return Poll::Ready(Next::End);
        }
        if self.requests > 0 && self.local.draining.get() {
            let until = self.local.drain_grace_until.get().min(self.deadline);
            return self.local.scheduler.poll_deadline(until).map(|_| Next::End);
        }
        if self.local.is_asked_for_room() {
            return Poll::Ready(Next::End);
        }
        self.local.scheduler.poll_deadline(self.deadline).map(|_| {
            let mut counters = self.local.counters.borrow_mut();
            if self.requests > 0 {
                counters.timeout_keepalive += 1;
            } else {
                counters.timeout_header += 1;
                drop(counters);
                self.log_silence();
            }
            Next::End
        })
    }

    /// An answer was sent or queued: the idle timeout starts now.
    fn begin_idle(&mut self, keepalive_timeout: Duration) {
        self.deadline = self.local.scheduler.now() + keepalive_timeout;
    }

    /// The connection's last answer was written: whether there is more to do than to close.
    fn after_last_answer(&self, settings: &ConnectionSettings) -> Next {
        let unread = self.stream.read(|bytes| (0, bytes.len()));
        let lingers = settings.lingering_close == LingeringClose::Always;
        if unread == 0 && !lingers && !self.stream.is_early() && self.is_drained() {
            Next::End
        } else {
            Next::Finish
        }
    }

    /// The transport has taken everything, or accepts nothing more.
    fn is_drained(&self) -> bool {
        self.stream.poll_drained(0).is_ready()
    }

    /// The facts that do not change, made when first needed. Which of the machine's addresses the client has connected to
    /// costs a system call: it is asked for where a request without a host or the configuration needs it.
    pub(crate) fn facts(&mut self, has_host: bool) -> Rc<ConnectionFacts> {
        let facts = match &self.facts {
            Some(facts) => Rc::clone(facts),
            None => {
                let facts = self.new_facts(None);
                self.facts = Some(Rc::clone(&facts));
                facts
            }
        };
        if facts.tls.get().is_none() {
            // A header of the PROXY protocol has made the facts before the handshake.
            if let Some(tls) = self.stream.tls_facts() {
                facts.tls.get_or_init(|| tls);
            }
            facts
                .lacks_tls
                .set(self.stream.is_clear_where_tls_was_due());
        }
        let is_asked_for = !has_host || self.listener.needs_local_address();
        if is_asked_for && facts.is_local_unknown() {
            facts.reached.get_or_init(|| self.stream.local());
        }
        facts
    }

    fn new_facts(&self, proxy_header: Option<Box<[u8]>>) -> Rc<ConnectionFacts> {
        let peer = self.stream.peer();
        Rc::new(ConnectionFacts {
            proxy_header,
            is_free: self.standing == Standing::Free,
            ..ConnectionFacts::new(self.number, &self.listener, peer, self.started)
        })
    }
}

impl<E: Engine> Drop for Connection<E> {
    fn drop(&mut self) {
        if let Some(client) = &self.client {
            client.leave();
            if !self.is_shaken {
                self.count_broken_handshake();
            }
        }
        let mut counters = self.local.counters.borrow_mut();
        counters.connections_active -= 1;
        counters.connections_waiting -= 1;
    }
}

impl<E: Engine> fmt::Debug for Connection<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Connection(*{}, {} requests)",
            self.number, self.requests
        )
    }
}

/// Pipelined requests that are answered before other connections get their turn.
const HOT_PER_TURN: usize = 128;

/// With more than this many bytes waiting to be sent, a connection's next request waits.
const QUEUED_MAX: u64 = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sim::engine::SimEngine;

    const fn future_bytes<F: Future>(_: fn(Connection<SimEngine>) -> F) -> usize {
        size_of::<F>()
    }

    /// What a tunnel holds besides its task, two slots of the engine and what its log lines will say.
    #[test]
    fn a_tunnel_is_at_most_480_bytes() {
        let bytes = future_bytes(carry::<SimEngine>);
        assert!(bytes <= 480, "{bytes}");
    }
}
