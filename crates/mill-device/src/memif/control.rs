//! Listening and connecting, again and again, with one peer at a time.

use super::channel::{Channel, End, Pumped};
use super::connection::Connection;
use super::handshake::{Refusal, Terms};
use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::seqpacket;
use mill_sys::timerfd::Timer;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
        })
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
    }

    /// Disconnects a peer that violates the protocol.
    pub(crate) fn hang_up(&mut self, refusal: Refusal) {
        if let Some(mut peer) = self.serving.take() {
            peer.refuse(refusal);
        }
        self.retry();
    }

    /// Makes the connection's events part of this descriptor's readiness.
    pub(crate) fn watch(&self, connection: &Connection) -> io::Result<()> {
        for event in connection.events() {
            self.epoll.add(event, ON_CHANGE, RING)?;
        }
        Ok(())
    }

    /// Has to be called before the connection is dropped: the peer holds the same eventfds open, so that closing them
    /// here does not remove them from the epoll set.
    pub(crate) fn forget(&self, connection: &Connection) {
        for event in connection.events() {
            // An event that was never added is not found.
            let _ = self.epoll.remove(event);
        }
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
                Pumped::Up(connection) => {
                    let _ = self.timer.set(None);
                    self.serving = self.pending.take();
                    self.pause = PAUSE_MIN;
                    news.push(News::Up(connection));
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
        let interest = Interest {
            writable: true,
            ..ON_CHANGE
        };
        if self.epoll.add(channel.as_fd(), interest, CONTROL).is_err() {
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

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        for mut channel in self.serving.take().into_iter().chain(self.pending.take()) {
            channel.refuse(Refusal::Closing);
        }
    }
}

/// Edge-triggered: signals need not be read.
const ON_CHANGE: Interest = Interest {
    readable: true,
    writable: false,
    edge: true,
    exclusive: false,
};

// Tokens of the events.
const CONTROL: u64 = 0;
const TIMER: u64 = 1;
const RING: u64 = 2;

/// Events read by one call.
const EVENTS_MAX: usize = 16;

/// Handshakes that one poll completes; more wait for the next one.
const HANDSHAKES_MAX: usize = 8;

/// Time from connecting to connected. A handshake is some ten messages, each of which takes microseconds; a peer that
/// stops in between must not keep others out.
const HANDSHAKE_TIME: Duration = Duration::from_secs(1);

/// Pause before a slave tries again; an attempt without listener costs two system calls. It doubles after each refusal.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_millis(1600);
