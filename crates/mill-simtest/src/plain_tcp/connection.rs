//! One connection (RFC 9293 3.3): its variables, its timers, and what its application does.

use super::application::Application;
use super::examiner::{Examiner, PeerKnowledge};
use super::habits::Habits;
use super::header::{ACK, RST, Segment};
use super::host::Circumstances;
use super::inbound::Inbound;
use super::sequence::{before, len};
use mill_runtime::time::{Duration, Instant};
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: State,
    pub(super) habits: Habits,
    pub(super) iss: u32,
    /// SND.UNA.
    pub(super) una: u32,
    /// SND.NXT, which goes back when the timer expires.
    pub(super) next: u32,
    /// One behind the highest number that was ever sent.
    pub(super) sent: u32,
    /// SND.WND, SND.WL1, SND.WL2.
    pub(super) window: u32,
    pub(super) wl1: u32,
    pub(super) wl2: u32,
    /// What the application has said and the peer has not acknowledged.
    pub(super) outgoing: Vec<u8>,
    /// The number of the first of these bytes, and that behind the last, which is the FIN's.
    pub(super) base: u32,
    pub(super) end: u32,
    /// The application has said all.
    pub(super) closes: bool,
    /// A byte may be sent into the closed window.
    pub(super) may_probe: bool,
    pub(super) timer: Option<Instant>,
    pub(super) timeouts: u32,
    /// Bytes of the largest segment that the peer takes.
    pub(super) peer_mss: usize,
    /// `None` until the peer's SYN has come.
    pub(super) inbound: Option<Inbound>,
    pub(super) acks_now: bool,
    pub(super) ack_at: Option<Instant>,
    /// Segments that wait for an acknowledgement.
    pub(super) unacknowledged: u32,
    pub(super) told_edge: Option<u32>,
    pub(super) examiner: Examiner,
    pub(super) application: Application,
    /// When the application reads on.
    reads_at: Option<Instant>,
    has_slept: bool,
    pub(super) heard_at: Instant,
    pub(super) time_wait_ends: Option<Instant>,
    /// Resets that are to be sent before all else.
    pub(super) resets: Vec<Segment>,
    /// The first rule that the peer broke.
    pub(super) fault: Option<String>,
}

/// RFC 9293 3.3.2; LISTEN is the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

impl Connection {
    pub(super) fn new(
        (local, remote): (SocketAddr, SocketAddr),
        state: State,
        habits: Habits,
        application: Application,
        world: Circumstances,
        now: Instant,
    ) -> Self {
        let iss = habits.iss;
        let is_ipv6 = remote.is_ipv6();
        let mut connection = Self {
            local,
            remote,
            state,
            habits,
            iss,
            una: iss,
            next: iss,
            sent: iss,
            window: 0,
            wl1: 0,
            wl2: 0,
            outgoing: Vec::new(),
            base: iss.wrapping_add(1),
            end: iss.wrapping_add(1),
            closes: false,
            may_probe: false,
            timer: None,
            timeouts: 0,
            peer_mss: default_mss(&remote),
            inbound: None,
            acks_now: false,
            ack_at: None,
            unacknowledged: 0,
            told_edge: None,
            examiner: Examiner::new(habits.mss, is_ipv6, world),
            application,
            reads_at: None,
            has_slept: habits.sleeps.is_zero(),
            heard_at: now,
            time_wait_ends: None,
            resets: Vec::new(),
            fault: None,
        };
        connection.let_speak(&[], false);
        connection
    }

    pub(super) fn told(&self) -> PeerKnowledge {
        PeerKnowledge {
            iss: self.iss,
            sent: self.sent,
            edge: self.told_edge,
            is_established: self.state != State::SynReceived,
        }
    }

    /// Whether the FIN was acknowledged.
    pub(super) const fn is_fin_acknowledged(&self) -> bool {
        self.closes && self.una == self.end.wrapping_add(1)
    }

    /// The next moment at which something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        let idle = self.time_wait_ends.unwrap_or(self.heard_at + IDLE_MAX);
        let reads_at = self.reads_at.filter(|_| self.has_unread());
        let timers = [self.timer, self.ack_at, reads_at, Some(idle)];
        timers.into_iter().flatten().min()
    }

    /// Does what is due, and lets the application read.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.time_wait_ends.is_some_and(|at| at <= now) {
            self.close();
        }
        if self.state == State::Closed {
            return;
        }
        if self.time_wait_ends.is_none() && self.heard_at + IDLE_MAX <= now {
            self.abort("the peer was silent");
            return;
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.timeouts += 1;
            self.next = self.una;
            self.may_probe = self.window == 0;
            if self.timeouts >= TIMEOUTS_OF_NARROW_PATH {
                self.peer_mss = self.peer_mss.min(default_mss(&self.remote));
            }
            if self.timeouts > TIMEOUTS_MAX {
                self.abort("nothing was acknowledged");
                return;
            }
        }
        if self.ack_at.is_some_and(|at| at <= now) {
            self.acks_now = true;
        }
        self.let_read(now);
    }

    /// The retransmission timer, from now on.
    pub(super) fn arm(&mut self, now: Instant) {
        let doubled = self.habits.rto * (1 << self.timeouts.min(8));
        self.timer = Some(now + doubled.min(RTO_MAX));
    }

    fn has_unread(&self) -> bool {
        let inbound = self.inbound.as_ref();
        let is_told = self.application.is_finished();
        inbound.is_some_and(|it| !it.unread.is_empty() || it.is_finished() && !is_told)
    }

    /// As much as the habits say, when they say so.
    fn let_read(&mut self, now: Instant) {
        loop {
            let Some(inbound) = &self.inbound else {
                return;
            };
            if !self.has_slept && inbound.half_full() {
                self.has_slept = true;
                self.reads_at = Some(now + self.habits.sleeps);
            }
            if self.reads_at.is_some_and(|at| at > now) || !self.has_unread() {
                return;
            }
            let most = self.habits.reads.map_or(usize::MAX, |(bytes, _)| bytes);
            let lent = inbound.unread[..most.min(inbound.unread.len())].to_vec();
            let finished = inbound.is_finished() && lent.len() == inbound.unread.len();
            self.reads_at = self.habits.reads.map(|(_, pause)| now + pause);
            self.let_speak(&lent, finished);
            if self.state == State::Closed {
                return;
            }
            if let Some(inbound) = &mut self.inbound {
                // After a FIN no reader waits for a wider window.
                self.acks_now |= inbound.consume(lent.len()) && !inbound.is_finished();
            }
        }
    }

    /// Gives the application what came, and takes what it says to that.
    fn let_speak(&mut self, unread: &[u8], finished: bool) {
        let said = self.application.act(unread, finished);
        if said.resets {
            self.abort("the application left");
            return;
        }
        if self.closes {
            return;
        }
        self.outgoing.extend(&said.bytes);
        self.end = self.end.wrapping_add(len(said.bytes.len()));
        if said.closes {
            self.closes = true;
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
    }

    /// ABORT (RFC 9293 3.10.5).
    pub(super) fn abort(&mut self, why: &'static str) {
        if self.inbound.is_some() && self.state != State::TimeWait {
            let mut reset = self.segment(self.sendable_number(), RST | ACK, Vec::new());
            reset.window = 0;
            self.resets.push(reset);
        }
        self.end_as(why);
    }

    pub(super) fn end_as(&mut self, why: &'static str) {
        self.close();
        self.application.break_off(why);
    }

    /// The end of the connection. The application gets what is here if all is: however slowly it would have read it, and
    /// also if a late segment of ours was answered by a reset after the peer had done.
    pub(super) fn close(&mut self) {
        if let Some(inbound) = self.inbound.as_mut().filter(|it| it.is_finished())
            && !self.application.is_finished()
        {
            let unread = std::mem::take(&mut inbound.unread);
            self.application.act(&unread, true);
        }
        self.state = State::Closed;
        self.timer = None;
    }

    /// The number of a segment without text: the highest, unless that lies beyond the window, where the peer would not
    /// look at what it acknowledges.
    pub(super) const fn sendable_number(&self) -> u32 {
        let edge = self.una.wrapping_add(self.window);
        if before(edge, self.sent) {
            edge
        } else {
            self.sent
        }
    }

    /// A segment that acknowledges what came.
    pub(super) fn segment(&self, seq: u32, flags: u8, payload: Vec<u8>) -> Segment {
        let inbound = self.inbound.as_ref();
        let window = inbound.map_or(0, Inbound::window);
        Segment {
            source: self.local,
            target: self.remote,
            seq,
            ack: inbound.map_or(0, |it| it.next),
            flags,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            urgent: 0,
            reserved: 0,
            ecn: 0,
            options: Vec::new(),
            payload,
        }
    }
}

/// What every path takes (RFC 9293 3.7.1).
const fn default_mss(remote: &SocketAddr) -> usize {
    if remote.is_ipv6() { 1220 } else { 536 }
}

/// ICMP is not read; after so many timeouts segments become as small as every path takes them.
const TIMEOUTS_OF_NARROW_PATH: u32 = 2;

/// RFC 9293 3.8.3 leaves the number of retransmissions open; longer than any partition of a world.
const TIMEOUTS_MAX: u32 = 12;

/// RFC 6298 2.5 has 60 s as the least upper bound of the retransmission timer; here it is the bound.
const RTO_MAX: Duration = Duration::from_secs(60);

/// A connection that has heard nothing for so long gives up: the peer may have vanished while nothing was in flight.
const IDLE_MAX: Duration = Duration::from_secs(900);
