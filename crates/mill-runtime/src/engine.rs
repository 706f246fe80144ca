//! The traits of what carries connections: kernel sockets, the simulation, our own stack beside either.
//!
//! None of their methods has a default: an engine around another forwards all of them, or does not compile.

use crate::address::Address;
use crate::files::Files;
use crate::stream::{Stream, StreamError};
use crate::tasks::TaskId;
use crate::time::{Duration, Instant, UnixTime};
use alloc::vec::Vec;
use core::net::IpAddr;

/// An engine: a cheap handle (`Clone`) on one worker's connections.
///
/// The worker calls `poll` once a turn, and `settle` at its end; everything else is called by tasks in between. What only
/// the end of a listener or of an engine needs is in [`DrainListener`] and [`Orphans`].
pub trait Engine: Clone + 'static {
    type Stream: Stream<File = <Self::Files as Files>::File>;
    type Files: Files;

    fn files(&self) -> &Self::Files;

    /// The clocks as of now. A worker reads them before its first turn; afterwards [`Engine::poll`] gives them.
    fn clock(&self) -> (Instant, UnixTime);

    /// The monotonic clock alone, as of now: for timing parts of a turn, whose own time does not change
    /// ([`crate::scheduler::Scheduler::now`]). Never earlier than what it or [`Engine::clock`] returned before. On
    /// kernel sockets it costs one reading of the clock, some tens of nanoseconds and no system call; in the
    /// simulation it is virtual time.
    fn now(&self) -> Instant;

    /// A random number, for seeds and identifiers; the same sequence again in a replayed simulation.
    fn random(&self) -> u64;

    /// Starts to listen. Options that the engine lacks come back in [`Listening::unsupported`].
    fn listen(&self, options: &ListenOptions) -> Result<Listening, ListenError>;

    /// Stops listening. Connections that still wait to be accepted are lost: accept them first.
    fn close_listener(&self, listener: ListenerId);

    /// Pauses or resumes the reports of connections that wait at a listener.
    fn set_accepting(&self, listener: ListenerId, accepting: bool);

    /// Takes one waiting connection, whose events will be reported to `task`. Called for a listener that was
    /// reported.
    fn accept(&self, listener: ListenerId, task: TaskId) -> Accept<Self::Stream>;

    /// Whether [`Self::accept`] costs next to nothing, no system call, also when nothing waits at this listener. Then it is
    /// called until nothing does, up to a turn's share.
    fn accepts_freely(&self, listener: ListenerId) -> bool;

    /// Opens a connection for `task`; the stream is writable (and drained) once it is established.
    ///
    /// An error known at once is returned by this call, and nothing stays open: [`StreamError::Other`] with EMFILE or
    /// ENFILE where no descriptor is left, with EADDRNOTAVAIL where the source is not an address of this machine or
    /// has no port left for this target, with EADDRINUSE where its port is in use; [`StreamError::Unreachable`] where
    /// there is no route. A later error is reported to `task`, and from then on both [`Stream::poll_drained`] and
    /// [`Stream::poll_readable`] return it at each call: [`StreamError::Refused`], `Unreachable` (also when no answer
    /// came for as long as the system tries) or `Reset`. Which of the two ways a refusal by this machine itself takes
    /// is up to the engine.
    fn connect(
        &self,
        target: &Address,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<Self::Stream, StreamError>;

    /// Waits, as `park` says, for events and appends them to `events`. Returns the clocks after
    /// the wait, which are the turn's.
    fn poll(&self, park: Park, events: &mut Events) -> (Instant, UnixTime);

    /// Drops what these addresses send, and no others', before it is a connection. An engine without a stack of its own
    /// cannot: its user closes what it accepts.
    fn set_blocked(&self, _addresses: &[IpAddr]) {}

    /// Whether [`Self::set_blocked`] has an effect.
    fn can_block(&self) -> bool {
        false
    }

    /// Ends a turn: sends what is still gathered, copies unread bytes out of receive buffers.
    fn settle(&self);
}

/// Closing a listener without losing a connection, for engines that serve.
pub trait DrainListener: Engine {
    /// Prepares to close a listener: no new handshake begins there, those under way may complete, and
    /// [`Engine::accept`] finds all connections that wait, also those not reported yet. Returns whether no more are about
    /// to come, so that it may be closed once all are accepted; if not, call it again in a later turn.
    fn drain_listener(&self, listener: ListenerId) -> bool;

    /// Undoes [`Self::drain_listener`]: the listener is not closed after all.
    fn keep_listener(&self, listener: ListenerId);
}

/// Connections that are not over although their streams were dropped, and which end with the engine. Kernel sockets have
/// none: there the system completes them after the process.
pub trait Orphans: Engine {
    /// Whether some of them have bytes or a FIN under way that a peer is still there to acknowledge: an engine that ends
    /// before loses them. Costs a look at every connection.
    fn has_lingering_orphans(&self) -> bool;

    /// How many there are, also those that only wait for their peers' FIN.
    fn orphans(&self) -> usize;

    /// Whether frames of other workers' connections may come to this engine, which passes them on as long as it turns.
    fn carries_for_others(&self) -> bool {
        false
    }

    /// Resets some of them, for an engine that is about to end; returns whether there may be more. Each call needs turns
    /// after it (`settle`, `poll`), so that the RST segments leave.
    fn abort_orphans(&self) -> bool;
}

/// How long [`Engine::poll`] may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Park {
    /// Not at all: there is other work.
    No,
    /// Until this instant at the latest.
    Until(Instant),
    /// Until an event.
    Forever,
}

/// All sources of a worker's work except its timers.
#[derive(Debug, Default)]
pub struct Events {
    /// Listeners with connections to accept.
    pub acceptable: Vec<ListenerId>,
    /// Tasks one of whose streams changed.
    pub ready: Vec<TaskId>,
    /// Another thread has a message for the worker.
    pub mail: bool,
}

impl Events {
    pub fn clear(&mut self) {
        self.acceptable.clear();
        self.ready.clear();
        self.mail = false;
    }
}

/// A listener within one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// What [`Engine::accept`] found.
#[derive(Debug)]
pub enum Accept<S> {
    Stream(S),
    /// No connection waits.
    Empty,
    /// The connection was closed before it was accepted; there may be more.
    Aborted,
    /// No descriptor or memory for one more connection; the operating system's error number.
    Exhausted(i32),
}

/// A started listener.
#[derive(Debug)]
pub struct Listening {
    pub id: ListenerId,
    /// Options that were requested and that this engine does not have.
    pub unsupported: Vec<ListenOption>,
}

/// Why a listener could not be started: the operating system's call and error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenError {
    pub call: &'static str,
    pub code: i32,
}

/// The options of a listener, as values. Two listeners with equal address and different `share` are
/// different sockets on one port (`SO_REUSEPORT`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    pub address: Address,
    /// Which of the sockets that share the port this is; `None` if the port has one socket for all workers.
    pub share: Option<u32>,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Report a connection only when its first bytes are here.
    pub deferred: bool,
    /// The queue length of TCP Fast Open (RFC 7413).
    pub fastopen: Option<u32>,
    pub receive_buffer_bytes: Option<usize>,
    pub send_buffer_bytes: Option<usize>,
    pub keepalive: Keepalive,
    /// `None` leaves it to the system.
    pub ipv6only: Option<bool>,
    /// Inherited by the accepted connections.
    pub nodelay: bool,
}

impl ListenOptions {
    /// nginx's default backlog on Linux.
    pub const BACKLOG: u32 = 511;

    pub fn new(address: Address) -> Self {
        Self {
            address,
            share: None,
            backlog: Self::BACKLOG,
            deferred: false,
            fastopen: None,
            receive_buffer_bytes: None,
            send_buffer_bytes: None,
            keepalive: Keepalive::System,
            ipv6only: None,
            nodelay: true,
        }
    }
}

/// One optional feature of a listener, named when an engine lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenOption {
    Reuseport,
    Deferred,
    Fastopen,
    ReceiveBuffer,
    SendBuffer,
    Keepalive,
    Ipv6only,
}

/// TCP keep-alive probes (RFC 9293 3.8.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keepalive {
    /// The system's default.
    #[default]
    System,
    Off,
    /// On; `None` leaves a value to the system.
    On {
        idle: Option<Duration>,
        interval: Option<Duration>,
        count: Option<u32>,
    },
}

/// The options of an outgoing connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The address to connect from; `None` leaves it to the system. With port 0 the system chooses the port when
    /// it connects, so that it has to be unique only together with the target: each source address gives tens of
    /// thousands of connections to each target. Any other port is used exactly, also while an earlier connection
    /// from it waits for its last segments (TIME-WAIT).
    pub source: Option<Address>,
    /// The source may be an address that is not this machine's (`IP_TRANSPARENT`); without the right to do that the error
    /// is [`StreamError::Other`] with EPERM. An engine that lacks it takes addresses of its own alone: EADDRNOTAVAIL.
    pub transparent: bool,
    /// Send small segments at once (RFC 9293 3.7.4).
    pub nodelay: bool,
    /// Probe an idle connection (RFC 9293 3.8.4), with the system's times.
    pub keepalive: bool,
    pub receive_buffer_bytes: Option<usize>,
    pub send_buffer_bytes: Option<usize>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            source: None,
            transparent: false,
            nodelay: true,
            keepalive: false,
            receive_buffer_bytes: None,
            send_buffer_bytes: None,
        }
    }
}
