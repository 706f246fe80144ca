//! Two connections, a wire between them that can be bad, and virtual time.
//!
//! ```
//! client: owner's queue -> next_segment -> wire (delay, loss, reordering, duplication) -> on_segment -> server's bytes
//! ```

use crate::arrived::{Arrived, Events};
use crate::config::Config;
use crate::connection::{Connection, ConnectionFlags, Opening};
use crate::env::{Env, Shared};
use crate::listen::{HalfOpen, HalfOpenOutcome};
use crate::random::Random;
use crate::segment::{Ecn, Segment, SegmentOut};
use crate::state::State;
use crate::time::{Duration, Instant};
use crate::time_wait::{TimeWait, TimeWaitOutcome};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{TcpOptions, Timestamps};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Where the clock of a pair begins: not at zero, so that nothing works by accident.
const START_NS: u64 = 5_000_000_000;

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) sides: [Side; 2],
    pub(crate) wire: Wire,
    /// Everything that was sent, with when and by whom, lost segments too.
    pub(crate) log: Vec<(Instant, usize, SegmentOut)>,
}

/// One end and the application that uses it.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) config: Config,
    pub(crate) shared: Shared,
    pub(crate) mss: u16,
    /// More than the MSS where the device segments.
    pub(crate) segment_bytes_max: u32,
    pub(crate) memory_left_bytes: u64,
    pub(crate) iss: SeqNumber,
    pub(crate) peer: Peer,
    /// What the application has written and the peer not acknowledged.
    pub(crate) queue: VecDeque<u8>,
    pub(crate) received: Vec<u8>,
    /// Whether the application consumes at once what is delivered.
    pub(crate) reads: bool,
    pub(crate) events: Events,
    /// The right edge of the window as it went over the wire.
    edge: Option<SeqNumber>,
}

/// What a side is at present.
#[derive(Debug)]
pub(crate) enum Peer {
    Listening,
    HalfOpen(HalfOpen),
    Open(Connection),
    TimeWait(TimeWait),
    Gone,
}

/// What happens on the way.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Duration,
    /// Segments lost, late and doubled, of a thousand.
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) doubled: u64,
    /// Marked as congested instead of lost, of a thousand that can be.
    pub(crate) marked: u64,
    /// How late a late one is.
    pub(crate) lateness: Duration,
    pub(crate) random: Random,
    /// Numbers of segments (as in `log`) that are lost in any case.
    pub(crate) lose: Vec<usize>,
    packets: Vec<Packet>,
}

#[derive(Debug)]
struct Packet {
    at: Instant,
    number: usize,
    to: usize,
    segment: SegmentOut,
    payload: Vec<u8>,
}

/// A segment written by a test.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) seq: SeqNumber,
    pub(crate) ack: SeqNumber,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) options: TcpOptions,
    pub(crate) payload: Vec<u8>,
    pub(crate) ecn: Ecn,
    pub(crate) merged: u16,
}

impl Draft {
    pub(crate) fn segment(&self) -> Segment<'_> {
        Segment {
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            urgent: 0,
            options: &self.options,
            payload: &self.payload,
            ecn: self.ecn,
            merged: self.merged,
        }
    }

    pub(crate) fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// Moved by so many numbers.
    pub(crate) fn shifted(mut self, by: i32) -> Self {
        self.seq = SeqNumber(self.seq.0.wrapping_add_signed(by));
        self
    }

    pub(crate) fn with_payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }
}

impl Pair {
    /// The acknowledgement that the peer of `to` could send now: right in every field.
    pub(crate) fn draft(&self, to: usize) -> Draft {
        let Peer::Open(connection) = &self.sides[to].peer else {
            panic!("no connection: {:?}", self.sides[to].peer);
        };
        let timestamps = connection
            .flags
            .has(ConnectionFlags::TIMESTAMPS)
            .then(|| Timestamps {
                value: connection.ts_recent,
                echo: connection.timestamp_at(self.now),
            });
        Draft {
            seq: connection.rcv_nxt,
            ack: connection.snd_nxt,
            flags: Flags::ACK,
            window: u16::try_from(connection.snd_wnd >> connection.snd_wind_shift).unwrap(),
            options: TcpOptions {
                timestamps,
                ..TcpOptions::default()
            },
            payload: Vec::new(),
            ecn: Ecn::NotCapable,
            merged: 1,
        }
    }

    /// Gives the draft to a side, and what the side sends then.
    pub(crate) fn give(&mut self, to: usize, draft: &Draft) -> (Arrived, Vec<SegmentOut>) {
        let before = self.log.len();
        let arrived = self.inject(to, &draft.segment());
        self.flush();
        (arrived, self.sent_since(before, to))
    }

    pub(crate) fn new(config: &Config) -> Self {
        Self::with_seed(config, 1)
    }

    pub(crate) fn with_seed(config: &Config, seed: u64) -> Self {
        let side = |iss, seed| Side {
            config: config.clone(),
            shared: Shared::new(seed),
            mss: 1460,
            segment_bytes_max: 1460,
            memory_left_bytes: 1 << 30,
            iss: SeqNumber(iss),
            peer: Peer::Listening,
            queue: VecDeque::new(),
            received: Vec::new(),
            reads: true,
            events: Events::default(),
            edge: None,
        };
        Self {
            now: Instant::from_nanos(START_NS),
            // The client's numbers wrap soon, the server's do not.
            sides: [side(u32::MAX - 3000, seed), side(7000, seed + 1)],
            wire: Wire {
                delay: Duration::from_millis(10),
                lost: 0,
                late: 0,
                doubled: 0,
                marked: 0,
                lateness: Duration::from_millis(3),
                random: Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                lose: Vec::new(),
                packets: Vec::new(),
            },
            log: Vec::new(),
        }
    }

    /// The client opens.
    pub(crate) fn connect(&mut self) {
        self.open(CLIENT);
        self.flush();
    }

    /// An active open by either side.
    pub(crate) fn open(&mut self, who: usize) {
        let opening = Opening {
            iss: self.sides[who].iss,
            ts_offset: 1_000_000 * u32::try_from(who + 1).unwrap(),
            mss: self.sides[who].mss,
        };
        let connection = self.call(who, |_, env| Connection::connect(&opening, env));
        self.sides[who].peer = Peer::Open(connection);
    }

    /// Opens and waits until both sides are ESTABLISHED.
    pub(crate) fn established(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.connect();
        pair.run_for(Duration::from_millis(50));
        assert_eq!(pair.state(CLIENT), State::Established);
        assert_eq!(pair.state(SERVER), State::Established);
        pair
    }

    /// As `established`, and from now on whatever is sent is lost: what the other side does disturbs no test.
    pub(crate) fn alone(config: &Config) -> Self {
        let mut pair = Self::established(config);
        pair.wire.lost = 1000;
        pair
    }

    pub(crate) fn write(&mut self, who: usize, bytes: &[u8]) {
        self.sides[who].queue.extend(bytes);
    }

    pub(crate) fn connection(&mut self, who: usize) -> &mut Connection {
        match &mut self.sides[who].peer {
            Peer::Open(connection) => connection,
            other => panic!("no connection: {other:?}"),
        }
    }

    pub(crate) fn state(&self, who: usize) -> State {
        match &self.sides[who].peer {
            Peer::Open(connection) => connection.state(),
            Peer::HalfOpen(_) => State::SynReceived,
            _ => State::Closed,
        }
    }

    /// A command of the application to its connection.
    pub(crate) fn command<T>(
        &mut self,
        who: usize,
        command: impl FnOnce(&mut Connection, &mut Env<'_>) -> T,
    ) -> T {
        let mut peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
        let Peer::Open(connection) = &mut peer else {
            panic!("no connection: {peer:?}");
        };
        let result = self.call(who, |_, env| command(connection, env));
        self.sides[who].peer = peer;
        result
    }

    /// Closes, and sends the RST that this may give.
    pub(crate) fn close(&mut self, who: usize) {
        if let Some(reset) = self.command(who, |connection, env| connection.close(env)) {
            self.transmit(who, reset);
            self.sides[who].peer = Peer::Gone;
        }
    }

    /// Sends what is to be sent now.
    pub(crate) fn flush(&mut self) {
        for who in [CLIENT, SERVER] {
            loop {
                let queued = self.sides[who].queue.len() as u64;
                let mut peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
                let next = match &mut peer {
                    Peer::Open(connection) => {
                        self.call(who, |_, env| connection.next_segment(queued, env))
                    }
                    _ => None,
                };
                self.sides[who].peer = peer;
                match next {
                    Some(segment) => self.transmit(who, segment),
                    None => break,
                }
            }
            self.forget_closed(who);
        }
    }

    /// Advances to the next thing that happens, or to `end`; says whether there was one.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        self.flush();
        let next_packet = self
            .wire
            .packets
            .iter()
            .map(|packet| (packet.at, packet.number))
            .min();
        let next_timer = [CLIENT, SERVER]
            .into_iter()
            .filter_map(|who| self.next_timer(who))
            .min();
        let next = match (next_packet, next_timer) {
            (Some((packet, _)), Some(timer)) => packet.min(timer),
            (Some((packet, _)), None) => packet,
            (None, Some(timer)) => timer,
            (None, None) => end,
        };
        if next >= end {
            self.now = self.now.max(end);
            return false;
        }
        self.now = self.now.max(next);
        match next_packet {
            Some((at, number)) if at <= self.now => self.deliver(number),
            _ => self.expire(),
        }
        self.flush();
        true
    }

    pub(crate) fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.step(end) {}
    }

    /// Runs until nothing is queued or on the way and no application waits, or fails after `limit`.
    pub(crate) fn run_until(&mut self, limit: Duration, is_done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !is_done(self) {
            assert!(
                self.step(end),
                "not done after {limit:?}: {}",
                self.ladder(30)
            );
        }
    }

    /// Gives a segment to a side as if it came from the wire; what it caused.
    pub(crate) fn inject(&mut self, to: usize, segment: &Segment<'_>) -> Arrived {
        let mut peer = core::mem::replace(&mut self.sides[to].peer, Peer::Gone);
        let Peer::Open(connection) = &mut peer else {
            panic!("no connection: {peer:?}");
        };
        let arrived = self.call(to, |_, env| connection.on_segment(segment, env));
        self.sides[to].peer = peer;
        self.take(to, segment, &arrived);
        arrived
    }

    /// Everything that one side has sent since the log had `from` entries.
    pub(crate) fn sent_since(&self, from: usize, who: usize) -> Vec<SegmentOut> {
        self.log
            .iter()
            .skip(from)
            .filter(|entry| entry.1 == who)
            .map(|entry| entry.2)
            .collect()
    }

    /// The last lines of the exchange, for messages.
    pub(crate) fn ladder(&self, lines: usize) -> alloc::string::String {
        use core::fmt::Write as _;
        let mut text = alloc::string::String::new();
        for (at, who, segment) in self.log.iter().skip(self.log.len().saturating_sub(lines)) {
            let name = if *who == CLIENT { "client" } else { "server" };
            let _ = writeln!(
                text,
                "\n{:>9} {name} seq {} len {} ack {} flags {:#x} win {} {:?}",
                at.as_micros(),
                segment.seq.0,
                segment.len,
                segment.ack.0,
                segment.flags.0,
                segment.window,
                segment.options.sack.as_slice()
            );
        }
        for who in [CLIENT, SERVER] {
            let _ = writeln!(text, "{:?} {:?}", self.state(who), self.sides[who].events);
        }
        text
    }

    fn call<T>(&mut self, who: usize, call: impl FnOnce(Instant, &mut Env<'_>) -> T) -> T {
        let now = self.now;
        let side = &mut self.sides[who];
        let mut env = Env {
            now,
            config: &side.config,
            shared: &mut side.shared,
            segment_bytes_max: side.segment_bytes_max,
            memory_left_bytes: side.memory_left_bytes,
        };
        call(now, &mut env)
    }

    fn next_timer(&self, who: usize) -> Option<Instant> {
        let tick = match &self.sides[who].peer {
            Peer::HalfOpen(half) => Some(half.retransmit_at),
            Peer::Open(connection) => connection.next_timer(),
            Peer::TimeWait(wait) => Some(wait.ends_at),
            Peer::Listening | Peer::Gone => None,
        }?;
        let wait_ms = u64::try_from(tick.since(self.now.tick())).unwrap_or(0);
        let at_ms = self.now.as_millis() + wait_ms;
        Some(Instant::from_nanos(at_ms * 1_000_000).max(self.now))
    }

    fn expire(&mut self) {
        for who in [CLIENT, SERVER] {
            let is_due = self.next_timer(who).is_some_and(|at| at <= self.now);
            if !is_due {
                continue;
            }
            let mut peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
            match &mut peer {
                Peer::Open(connection) => {
                    let events = self.call(who, |_, env| connection.on_timer(env));
                    self.sides[who].events |= events;
                }
                Peer::HalfOpen(half) => match self.call(who, |_, env| half.on_timer(env)) {
                    Some(again) => self.transmit(who, again),
                    None => peer = Peer::Listening,
                },
                Peer::TimeWait(_) => peer = Peer::Gone,
                Peer::Listening | Peer::Gone => {}
            }
            self.sides[who].peer = peer;
        }
    }

    /// A connection that said it is Closed, and has nothing more to send.
    fn forget_closed(&mut self, who: usize) {
        let Peer::Open(connection) = &self.sides[who].peer else {
            return;
        };
        if connection.state() != State::Closed {
            return;
        }
        let peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
        if let Peer::Open(connection) = peer
            && self.sides[who].events.has_any(Events::TIME_WAIT)
        {
            let wait = self.call(who, |_, env| TimeWait::new(&connection, env));
            self.sides[who].peer = Peer::TimeWait(wait);
        }
    }

    /// Cuts the segment as a device would and puts it on the wire.
    pub(crate) fn transmit(&mut self, from: usize, whole: SegmentOut) {
        self.check_window(from, &whole);
        let mut done = 0;
        loop {
            let mss = u32::from(whole.mss).max(1);
            let len = (whole.len - done).min(mss);
            let is_last = done + len == whole.len;
            let offset = whole.offset + done;
            let mut segment = SegmentOut {
                seq: whole.seq + done,
                offset,
                len,
                ..whole
            };
            if !is_last {
                segment.flags = segment.flags & !(Flags::FIN | Flags::PSH);
            }
            let payload = self.sides[from]
                .queue
                .iter()
                .copied()
                .skip(offset as usize)
                .take(len as usize)
                .collect::<Vec<_>>();
            assert_eq!(payload.len(), len as usize, "beyond the queue: {segment:?}");
            assert!(
                segment.options.len() + payload.len() <= usize::from(self.sides[from].mss)
                    || len == 0,
                "too large: {segment:?}"
            );
            self.put_on_wire(from, segment, payload);
            done += len;
            if is_last {
                break;
            }
        }
    }

    fn put_on_wire(&mut self, from: usize, mut segment: SegmentOut, payload: Vec<u8>) {
        let number = self.log.len();
        self.log.push((self.now, from, segment));
        let wire = &mut self.wire;
        let mut happens = |share: u64| wire.random.below(1000) < share;
        let (lost, late, doubled, marked) = (
            happens(wire.lost),
            happens(wire.late),
            happens(wire.doubled),
            happens(wire.marked),
        );
        if lost || wire.lose.contains(&number) {
            return;
        }
        if marked && segment.ecn != Ecn::NotCapable {
            segment.ecn = Ecn::Congested;
        }
        let mut at = self.now + wire.delay;
        if late {
            at = at + wire.lateness;
        }
        let to = 1 - from;
        for copy in 0..=u32::from(doubled) {
            wire.packets.push(Packet {
                at: at + wire.delay * copy,
                number,
                to,
                segment,
                payload: payload.clone(),
            });
        }
    }

    fn deliver(&mut self, number: usize) {
        let index = self
            .wire
            .packets
            .iter()
            .enumerate()
            .filter(|(_, packet)| packet.number == number)
            .min_by_key(|(_, packet)| packet.at)
            .map(|(index, _)| index)
            .unwrap();
        let packet = self.wire.packets.swap_remove(index);
        let segment = Segment {
            seq: packet.segment.seq,
            ack: packet.segment.ack,
            flags: packet.segment.flags,
            window: packet.segment.window,
            urgent: packet.segment.urgent,
            options: &packet.segment.options,
            payload: &packet.payload,
            ecn: packet.segment.ecn,
            merged: 1,
        };
        self.arrive(packet.to, &segment);
    }

    fn arrive(&mut self, to: usize, segment: &Segment<'_>) {
        let mut peer = core::mem::replace(&mut self.sides[to].peer, Peer::Gone);
        let mut answer = None;
        match &mut peer {
            Peer::Listening
                if segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN =>
            {
                let (iss, mss) = (self.sides[to].iss, self.sides[to].mss);
                let half = self.call(to, |_, env| {
                    HalfOpen::on_syn(segment, iss, 2_000_000, mss, env)
                });
                answer = Some(self.call(to, |_, env| half.syn_ack(env)));
                peer = Peer::HalfOpen(half);
            }
            Peer::HalfOpen(half) => match self.call(to, |_, env| half.on_segment(segment, env)) {
                HalfOpenOutcome::Established(connection) => {
                    self.sides[to].events |= Events::ESTABLISHED;
                    self.sides[to].peer = Peer::Open(connection);
                    self.inject(to, segment);
                    return;
                }
                HalfOpenOutcome::Answer(segment) => answer = Some(segment),
                HalfOpenOutcome::Reset => peer = Peer::Listening,
                HalfOpenOutcome::Dropped(_) => {}
            },
            Peer::Open(_) => {
                self.sides[to].peer = peer;
                self.inject(to, segment);
                return;
            }
            Peer::TimeWait(wait) => {
                if let TimeWaitOutcome::Answer(ack) =
                    self.call(to, |_, env| wait.on_segment(segment, env))
                {
                    answer = Some(ack);
                }
            }
            Peer::Listening | Peer::Gone => answer = crate::closed::reset_for(segment),
        }
        self.sides[to].peer = peer;
        if let Some(answer) = answer {
            self.transmit(to, answer);
        }
    }

    /// What the owner does with what arrived.
    fn take(&mut self, who: usize, segment: &Segment<'_>, arrived: &Arrived) {
        let side = &mut self.sides[who];
        side.events |= arrived.events;
        side.queue.drain(..arrived.acked as usize);
        let before = side.received.len();
        side.received
            .extend_from_slice(&segment.payload[arrived.deliver.clone()]);
        if let Peer::Open(connection) = &mut side.peer {
            while let Some(run) = connection.next_reassembled() {
                assert!(!run.is_empty());
                side.received.extend_from_slice(&run);
            }
        }
        let delivered = u32::try_from(side.received.len() - before).unwrap();
        if side.reads && delivered > 0 && matches!(side.peer, Peer::Open(_)) {
            self.command(who, |connection, env| connection.consumed(delivered, env));
        }
    }

    /// The edge that the peer sees never moves left (RFC 9293 3.8.6).
    fn check_window(&mut self, from: usize, segment: &SegmentOut) {
        let shift = match &self.sides[from].peer {
            Peer::Open(connection) if !segment.flags.has(Flags::SYN) => connection.rcv_wind_shift,
            _ => 0,
        };
        if segment.flags.has(Flags::RST)
            || !segment.flags.has(Flags::ACK)
            || !matches!(self.sides[from].peer, Peer::Open(_))
        {
            return;
        }
        let edge = segment.ack + (u32::from(segment.window) << shift);
        if let Some(before) = self.sides[from].edge {
            assert!(
                edge.is_at_or_after(before),
                "the window shrank: {segment:?}"
            );
        }
        self.sides[from].edge = Some(edge);
    }
}

/// Bytes that differ from their neighbours, also a page or a window away.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    core::iter::repeat_with(|| random.next().to_le_bytes())
        .flatten()
        .take(len)
        .collect()
}

mod tests;
