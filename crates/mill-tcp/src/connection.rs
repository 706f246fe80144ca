//! The connection: its variables, getters and commands.

use crate::congestion::{CongestionDetail, CongestionWindow};
use crate::ecn::accurate::MarkCounters;
use crate::env::Env;
use crate::fast_open_client::Handshake;
use crate::path_mtu::probe::PathSearch;
use crate::reassembly::Reassembly;
use crate::receive_space::ReceiveSpace;
use crate::recovery::Recovery;
use crate::rto::RttEstimator;
use crate::rto::timer::RetransmissionTimer;
use crate::scoreboard::Scoreboard;
use crate::send_space::SendSpace;
use crate::state::State;
use crate::time::Tick;
use crate::timestamps::TimestampState;
use crate::window_shifts::WindowShifts;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;

/// One connection, two cache lines. Names are those of RFC 9293 3.3.1 where it has one.
#[derive(Debug, Default)]
pub struct Connection {
    /// What was sent, what may be, and the peer's window.
    pub(crate) snd: SendSpace,
    /// What has come in order, and the window that is offered.
    pub(crate) rcv: ReceiveSpace,
    /// When a segment out of the window was answered last, ticks modulo 2^16 (`ConnectionFlags::INVALID_ANSWERED`).
    pub(crate) invalid_answered_at: u16,
    /// Both sides' timestamps; `heard_at` says how old the peer's is.
    pub(crate) ts: TimestampState,
    /// Congestion window and threshold (RFC 5681 2).
    pub(crate) congestion: CongestionWindow,
    /// How long a round trip takes (RFC 6298 2).
    pub(crate) rtt: RttEstimator,
    /// The retransmission timer, or what stands in its place: probe, reordering, persist.
    pub(crate) timer: RetransmissionTimer,
    /// When the delayed acknowledgement is due.
    pub(crate) delayed_ack_at: Tick,
    /// When keep-alive or FIN-WAIT-2 expires.
    pub(crate) idle_at: Tick,
    /// When the last acceptable segment came, and when the last data was sent.
    pub(crate) heard_at: Tick,
    pub(crate) sent_at: Tick,
    /// Payload bytes of a full segment to the peer, options of every segment taken off (RFC 6691).
    pub(crate) snd_mss: u16,
    pub(crate) flags: ConnectionFlags,
    pub(crate) state: State,
    /// The scales of both windows.
    pub(crate) shifts: WindowShifts,
    /// Marked packets in both directions, with accurate ECN.
    pub(crate) marks: MarkCounters,
    /// Acknowledgements that still go out at once.
    pub(crate) quick_acks: u8,
    /// Only while data is in flight or out of order.
    pub(crate) cold: Option<Box<Cold>>,
}

const _: () = assert!(size_of::<Connection>() == 128);

/// What is needed only while data is in flight or out of order.
#[derive(Debug, Default)]
pub struct Cold {
    pub(crate) scoreboard: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) congestion: CongestionDetail,
    /// Larger segments that are tried, or smaller ones.
    pub(crate) path: PathSearch,
    /// The end of the last segment that was sent smaller than a full one (Minshall's variant of Nagle's algorithm).
    pub(crate) small_end: Option<SeqNumber>,
    pub(crate) reassembly: Reassembly,
    /// Until the handshake is complete, if it is with Fast Open or both sides opened at once.
    pub(crate) handshake: Option<Box<Handshake>>,
    /// Behind the last byte of each message that is not sent whole (`MSG_EOR`), in order.
    pub(crate) message_ends: VecDeque<SeqNumber>,
}

impl Cold {
    /// Nothing is lost, no probe is due, and recovery waits for nothing.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        self.recovery.is_calm() && self.scoreboard.lost_bytes() == 0
    }

    /// An acknowledgement means something: there is something in flight, or to be found out.
    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        !self.scoreboard.is_empty() || !self.recovery.is_idle() || self.path.has_news()
    }

    /// Nothing in it has to be remembered.
    fn is_idle(&self) -> bool {
        !self.is_sending()
            && self.reassembly.is_idle()
            && self.handshake.is_none()
            && self.message_ends.is_empty()
            && self.congestion.bbr.is_none()
    }

    pub(crate) fn clear(&mut self) {
        self.scoreboard.clear();
        self.recovery = Recovery::default();
        self.congestion = CongestionDetail::default();
        self.path = PathSearch::default();
        self.small_end = None;
        self.reassembly.clear();
        self.handshake = None;
        self.message_ends.clear();
    }
}

/// Bits of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFlags(pub(crate) u32);

impl ConnectionFlags {
    pub(crate) const TIMESTAMPS: u32 = 1;
    pub(crate) const SACK: u32 = 1 << 1;
    pub(crate) const ECN: u32 = 1 << 2;
    pub(crate) const NODELAY: u32 = 1 << 3;
    /// Small segments wait, even with NODELAY, as `TCP_CORK`.
    pub(crate) const CORK: u32 = 1 << 4;
    /// The application has finished sending: FIN follows the queue.
    pub(crate) const FIN_QUEUED: u32 = 1 << 5;
    pub(crate) const FIN_SENT: u32 = 1 << 6;
    /// An acknowledgement goes out with the next `next_segment`.
    pub(crate) const ACK_NOW: u32 = 1 << 7;
    pub(crate) const DELAYED_ACK_ARMED: u32 = 1 << 8;
    pub(crate) const IDLE_ARMED: u32 = 1 << 10;
    /// Segments carry ECE until CWR comes (RFC 3168 6.1.3).
    pub(crate) const ECE_DUE: u32 = 1 << 11;
    /// The next new data carries CWR.
    pub(crate) const CWR_DUE: u32 = 1 << 12;
    /// The application has closed: nothing is read any more (RFC 9293 3.10.4).
    pub(crate) const ORPHAN: u32 = 1 << 13;
    /// The SYN has to be sent (again).
    pub(crate) const SYN_DUE: u32 = 1 << 14;
    /// The last `next_segment` found nothing because the application had no more (RFC 7661).
    pub(crate) const APP_LIMITED: u32 = 1 << 15;
    /// The SYN was retransmitted (RFC 6298 5.7).
    pub(crate) const SYN_RETRANSMITTED: u32 = 1 << 16;
    /// A window probe has to be sent (RFC 9293 3.8.6.1).
    pub(crate) const PROBE_DUE: u32 = 1 << 18;
    /// A RST with the number `SendSpace::reset_seq` has to be sent; see `reset.rs`.
    pub(crate) const RST_DUE: u32 = 1 << 19;
    /// A keep-alive probe has to be sent (RFC 9293 3.8.4).
    pub(crate) const KEEPALIVE_DUE: u32 = 1 << 20;
    /// Both SYNs carried the window scale option (RFC 7323 2.2).
    pub(crate) const SCALING: u32 = 1 << 21;
    /// `invalid_answered_at` means something.
    pub(crate) const INVALID_ANSWERED: u32 = 1 << 22;
    /// SYN-RECEIVED by Fast Open: data may be sent before our SYN is acknowledged (RFC 7413 4.2.2).
    pub(crate) const FAST_OPEN: u32 = 1 << 23;

    /// A segment arrived behind one that was sent later (RACK.reordering_seen, RFC 8985 5.2).
    pub(crate) const REORDERED: u32 = 1 << 24;
    /// Queued bytes are sent, however few they are, even with CORK.
    pub(crate) const PUSH_DUE: u32 = 1 << 25;
    /// Text in the SYN was taken by the other side (RFC 7413), all of it.
    pub(crate) const SYN_TEXT_TAKEN: u32 = 1 << 26;
    /// `Cold::message_ends` has to be looked at.
    pub(crate) const MESSAGES: u32 = 1 << 27;
    /// Accurate ECN is agreed (RFC 9768); then not `ECN`.
    pub(crate) const ACCURATE: u32 = 1 << 9;
    /// … but our data leaves as not capable of marks.
    pub(crate) const NOT_CAPABLE: u32 = 1 << 17;
    /// … and what the peer says of marks is not believed.
    pub(crate) const MARKS_IGNORED: u32 = 1 << 29;
    /// … and it has said something.
    pub(crate) const MARKS_TOLD: u32 = 1 << 30;
    /// What waits to be sent waits for its time (pacing.rs).
    pub(crate) const PACED: u32 = 1 << 28;

    pub(crate) const fn has_any(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    pub(crate) const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    pub(crate) const fn set(&mut self, bit: u32, on: bool) {
        if on {
            self.0 |= bit;
        } else {
            self.0 &= !bit;
        }
    }
}

/// What an active open is made with.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// ISS (RFC 6528).
    pub iss: SeqNumber,
    pub ts_offset: u32,
    /// The MSS to announce: the MTU less the fixed headers of IP and TCP.
    pub mss: u16,
}

impl Connection {
    pub const fn state(&self) -> State {
        self.state
    }

    /// Payload bytes of a full segment to the peer.
    pub const fn mss(&self) -> u16 {
        self.snd_mss
    }

    /// Delivered bytes that the reader has not consumed.
    pub const fn unread_bytes(&self) -> u32 {
        self.rcv.unread_bytes()
    }

    /// Bytes of the owner's queue that were sent and are not acknowledged; SYN and FIN may be among them.
    pub fn in_flight(&self) -> u32 {
        self.snd.in_flight()
    }

    /// Bytes of memory that hold what arrived out of order; part of what the host's budget counts.
    pub fn reassembly_bytes(&self) -> u32 {
        self.cold
            .as_ref()
            .map_or(0, |cold| cold.reassembly.memory_bytes())
    }

    /// Bytes that followed what was delivered last and were here already; each call gives one run of them, which
    /// belongs to the caller and counts as delivered.
    pub fn next_reassembled(&mut self) -> Option<Vec<u8>> {
        let run = self.cold.as_mut()?.reassembly.take_ready();
        // What the end of the connection left here for the reader was the last that it needed.
        if run.is_none() && self.state == State::Closed {
            self.cold = None;
        }
        run
    }

    /// Nagle's algorithm off or on (RFC 9293 3.7.4).
    pub fn set_nodelay(&mut self, on: bool) {
        self.flags.set(ConnectionFlags::NODELAY, on);
    }

    /// What waits to be sent leaves once, although it is small and CORK holds it; for the owner to call when there is
    /// something.
    pub fn push(&mut self) {
        self.flags.set(ConnectionFlags::PUSH_DUE, true);
    }

    /// While on, only full segments leave; `TCP_CORK`. Turning it off sends what waits.
    pub fn set_cork(&mut self, on: bool) {
        self.flags.set(ConnectionFlags::CORK, on);
    }

    /// The cold part, taken from the pool if there is none.
    pub(crate) fn cold_part(&mut self, env: &mut Env<'_>) -> &mut Cold {
        self.cold.get_or_insert_with(|| env.shared.pool.take())
    }

    /// Gives the cold part back when nothing is in flight, nothing is out of order and recovery has nothing to
    /// remember.
    pub(crate) fn release_cold(&mut self, env: &mut Env<'_>) {
        // What waits for its time needs the pacer's.
        let is_idle = !self.flags.has(ConnectionFlags::PACED)
            && self.cold.as_ref().is_some_and(|cold| cold.is_idle());
        // Bytes before the FIN that ended the connection may still have to be fetched.
        let is_over = self.state == State::Closed
            && self
                .cold
                .as_ref()
                .is_some_and(|cold| !cold.reassembly.has_ready());
        if (is_idle || is_over)
            && let Some(cold) = self.cold.take()
        {
            env.shared.pool.put(cold);
        }
    }
}
