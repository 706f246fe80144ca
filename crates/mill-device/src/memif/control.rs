//! Listening and connecting, again and again, with one peer at a time.

use super::agreement::Agreement;
use super::channel::{Channel, Connected, End, Pumped};
use super::connection::Connection;
use super::dispatch::Whole;
use super::handshake::{Refusal, Terms};
use super::leader::{Leader, Left};
use super::share::Share;
use mill_sys::clock;
use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::seqpacket;
use mill_sys::timerfd::Timer;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A link's control channels, and the descriptor that is readable while there is something to do.
#[derive(Debug)]
pub(crate) struct Control {
    side: Side,
    terms: Terms,
    buffer_bytes: u32,
    epoll: Epoll,
    timer: Timer,
    /// The channel whose handshake is under way.
    pending: Option<Channel>,
    /// The channel of the connected peer.
    serving: Option<Channel>,
    /// How long to wait before the next attempt to connect.
    pause: Duration,
    /// The other workers and processes.
    leader: Leader,
    /// What the connected peer has agreed on, and the connection's number.
    current: Option<(u64, Agreement)>,
    /// It is kept for the next process.
    is_kept: bool,
}

#[derive(Debug)]
pub(crate) enum Side {
    Master {
        listener: OwnedFd,
    },
    Slave {
        name: Vec<u8>,
        /// The socket's file, where the name is that of this descriptor.
        file: Option<OwnedFd>,
    },
}

/// Events of a link's control channels.
#[derive(Debug)]
pub(crate) enum News {
    Up(Box<Connection>),
    /// The connected peer is gone.
    Down(End),
    /// A handshake has failed.
    Failed(End),
    /// No process listens at the path.
    Absent(io::Error),
    /// The peer has fewer rings than there are workers here.
    FewRings {
        rings: usize,
        workers: usize,
    },
}

impl Control {
    pub(crate) fn new(side: Side, terms: Terms, buffer_bytes: u32) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let timer = Timer::new()?;
        epoll.add(timer.as_fd(), ON_CHANGE, TIMER)?;
        match &side {
            Side::Master { listener } => epoll.add(listener.as_fd(), ON_CHANGE, CONTROL)?,
            // The timer asks for the first attempt, which is made by the first poll.
            Side::Slave { file: None, .. } => timer.set(Some(Duration::ZERO))?,
            // The slave before may have left just now, and DPDK's master (22.11) may end if it notices that later than the
            // next one's coming.
            Side::Slave { .. } => timer.set(Some(PAUSE_MIN))?,
        }
        Ok(Self {
            side,
            terms,
            buffer_bytes,
            epoll,
            timer,
            pending: None,
            serving: None,
            pause: PAUSE_MIN,
            leader: Leader::default(),
            current: None,
            is_kept: false,
        })
    }

    /// Makes it the control channel of several workers, or of one process after the other. What the process before has left is
    /// returned.
    pub(crate) fn lead(&mut self, leader: Leader) -> io::Result<Option<Connection>> {
        for channel in leader.channels() {
            self.epoll.add(channel, ON_CHANGE, CONTROL)?;
        }
        self.leader = leader;
        let found = self.leader.take_left().and_then(|left| self.go_on(left));
        if found.is_none() {
            // Whatever the other workers have is of a process that has ended.
            self.leader.down(now());
        }
        Ok(found)
    }

    /// Goes on with a connection that the process before has left; without it, if that is not possible.
    fn go_on(&mut self, left: Left) -> Option<Connection> {
        let Left { whole, is_in_order } = left;
        let Whole {
            number,
            agreement,
            socket,
        } = whole;
        let mut channel = Channel::of_connected(socket, self.terms.clone());
        let connection = Connection::resume(&agreement, self.share());
        let is_watched = self.epoll.add(channel.as_fd(), ON_CHANNEL, CONTROL).is_ok();
        match connection {
            Ok(mut connection) if is_watched => {
                if !is_in_order {
                    connection.pass_over();
                    self.leader.begin_anew();
                }
                self.serve_as(number, agreement, channel);
                Some(connection)
            }
            _ => {
                channel.refuse(Refusal::NoMemory);
                None
            }
        }
    }

    /// The connection of this link from now on.
    fn serve_as(&mut self, number: u64, agreement: Agreement, channel: Channel) {
        self.is_kept = self.leader.keep((number, &agreement), channel.as_fd());
        self.current = Some((number, agreement));
        self.serving = Some(channel);
    }

    /// Leaves the connection to the next process, if that is possible. Otherwise it ends with this link.
    pub(crate) fn leave(&mut self) {
        if core::mem::take(&mut self.is_kept) {
            self.leader.leave();
            self.serving = None;
            self.current = None;
        }
    }

    /// The rings of this worker.
    fn share(&self) -> Share {
        Share {
            worker: 0,
            workers: u32::try_from(self.leader.workers()).unwrap_or(u32::MAX),
        }
    }

    /// Handles all events and clears the edge-triggered ones. One system call if there are none.
    pub(crate) fn look(&mut self, news: &mut Vec<News>) {
        let (is_control, is_timer) = self.events();
        if is_timer && let Some(mut late) = self.pending.take() {
            late.refuse(Refusal::TooSlow);
            self.failed(End::Refused(Refusal::TooSlow), news);
        } else if is_timer {
            self.connect(news);
        }
        if is_control || is_timer {
            self.serve(news);
            self.shake_hands(news);
        }
        if is_control {
            self.read_workers(news);
        }
    }

    /// Disconnects a peer that violates the protocol.
    pub(crate) fn hang_up(&mut self, refusal: Refusal) {
        if let Some(mut peer) = self.serving.take() {
            peer.refuse(refusal);
        }
        self.over();
        self.retry();
    }

    /// Reads what the other workers say.
    fn read_workers(&mut self, news: &mut Vec<News>) {
        let current = self.current.as_ref();
        let current = current.map(|(number, agreement)| (*number, agreement));
        if self.leader.read(current) {
            self.hang_up(Refusal::Ring);
            news.push(News::Down(End::Refused(Refusal::Ring)));
        }
    }

    /// There is no connection any more.
    fn over(&mut self) {
        if core::mem::take(&mut self.is_kept) {
            self.leader.withdraw();
        }
        if let Some((number, _)) = self.current.take() {
            self.leader.down(number);
        }
    }

    /// Readable while there is something to do.
    pub(super) fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    fn events(&self) -> (bool, bool) {
        let mut buffer = [Event::EMPTY; EVENTS_MAX];
        let (mut is_control, mut is_timer) = (false, false);
        // Edges are reported once, so all of them are read.
        while let Ok(events) = self.epoll.wait(&mut buffer, Some(Duration::ZERO)) {
            for event in events {
                is_control |= event.token() == CONTROL;
                is_timer |= event.token() == TIMER;
            }
            if events.len() < EVENTS_MAX {
                break;
            }
        }
        (is_control, is_timer)
    }

    /// Reads the connected peer's channel: the only valid message is a disconnect.
    fn serve(&mut self, news: &mut Vec<News>) {
        let Some(peer) = &mut self.serving else {
            return;
        };
        if let Pumped::Over(end) = peer.pump(true) {
            self.serving = None;
            self.over();
            news.push(News::Down(end));
            self.retry();
        }
    }

    fn shake_hands(&mut self, news: &mut Vec<News>) {
        for _ in 0..HANDSHAKES_MAX {
            if self.pending.is_none() && !self.accept() {
                return;
            }
            let Some(channel) = &mut self.pending else {
                return;
            };
            match channel.pump(self.serving.is_some()) {
                Pumped::Waits => return,
                Pumped::Up(connected) => {
                    let _ = self.timer.set(None);
                    self.pause = PAUSE_MIN;
                    if let Some(channel) = self.pending.take() {
                        self.begun(*connected, channel, news);
                    }
                    // What follows in the socket has no event of its own: the peer may have left already.
                    self.serve(news);
                }
                Pumped::Over(end) => {
                    self.pending = None;
                    self.failed(end, news);
                }
            }
        }
        // There may be more to do: have the timer report at once.
        let _ = self.timer.set(Some(Duration::ZERO));
    }

    /// Gives each worker its rings of a new connection.
    fn begun(&mut self, connected: Connected, channel: Channel, news: &mut Vec<News>) {
        let Connected {
            mut connection,
            agreement,
        } = connected;
        connection.keep(self.share());
        let workers = self.leader.workers();
        let rings = agreement.ring_counts().into_iter().min().unwrap_or(0);
        if rings < workers {
            news.push(News::FewRings { rings, workers });
        }
        let number = now();
        self.leader.up(number, &agreement);
        self.serve_as(number, agreement, channel);
        news.push(News::Up(Box::new(connection)));
    }

    fn failed(&mut self, end: End, news: &mut Vec<News>) {
        news.push(News::Failed(end));
        if let Side::Slave { .. } = self.side {
            // Memory was perhaps made and released for it: retry less and less often.
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            self.retry();
        } else {
            let _ = self.timer.set(None);
        }
    }

    /// As master: accepts the next connection; false if there is none.
    fn accept(&mut self) -> bool {
        let Side::Master { listener } = &self.side else {
            return false;
        };
        let Ok(socket) = seqpacket::accept(listener.as_fd()) else {
            return false;
        };
        let channel = Channel::master(socket, self.terms.clone());
        self.begin(channel)
    }

    /// As slave: connects, or waits until it is time to try again.
    fn connect(&mut self, news: &mut Vec<News>) {
        let Side::Slave { name, .. } = &self.side else {
            return;
        };
        if self.serving.is_some() || self.pending.is_some() {
            return;
        }
        let begun = match seqpacket::connect(name) {
            Ok(socket) => {
                let channel = Channel::slave(socket, self.terms.clone(), self.buffer_bytes);
                self.begin(channel)
            }
            Err(error) => {
                news.push(News::Absent(error));
                false
            }
        };
        if !begun {
            self.retry();
        }
    }

    fn begin(&mut self, channel: Channel) -> bool {
        if self
            .epoll
            .add(channel.as_fd(), ON_CHANNEL, CONTROL)
            .is_err()
        {
            return false;
        }
        let _ = self.timer.set(Some(HANDSHAKE_TIME));
        self.pending = Some(channel);
        true
    }

    /// As slave: tries again after a pause. If the timer cannot be set, the slave does not retry.
    fn retry(&mut self) {
        if let Side::Slave { .. } = self.side {
            let _ = self.timer.set(Some(self.pause));
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        for mut channel in self.serving.take().into_iter().chain(self.pending.take()) {
            channel.refuse(Refusal::Closing);
        }
        self.over();
    }
}

/// The number of a connection that begins now.
fn now() -> u64 {
    u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX)
}

/// Edge-triggered: signals need not be read.
pub(super) const ON_CHANGE: Interest = Interest {
    readable: true,
    writable: false,
    edge: true,
    exclusive: false,
};

/// The same of a control channel, which may have had no room.
const ON_CHANNEL: Interest = Interest {
    writable: true,
    ..ON_CHANGE
};

// Tokens of the events.
const CONTROL: u64 = 0;
const TIMER: u64 = 1;
pub(super) const RING: u64 = 2;

/// Events read by one call.
pub(super) const EVENTS_MAX: usize = 16;

/// Handshakes that one poll completes; more wait for the next one.
const HANDSHAKES_MAX: usize = 8;

/// Time from connecting to connected. A handshake is some ten messages, each of which takes microseconds; a peer that
/// stops in between must not keep others out.
const HANDSHAKE_TIME: Duration = Duration::from_secs(1);

/// Pause before a slave tries again; an attempt without listener costs two system calls. It doubles after each refusal.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_millis(1600);
