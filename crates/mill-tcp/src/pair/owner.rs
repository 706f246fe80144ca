//! What the owner of a connection does with what arrives.

use super::{Pair, Peer};
use crate::arrived::{Arrived, Events};
use crate::listen::{HalfOpen, HalfOpenOutcome};
use crate::segment::Segment;
use crate::time_wait::TimeWaitOutcome;
use mill_wire::tcp::Flags;

impl Pair {
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

    pub(super) fn arrive(&mut self, to: usize, segment: &Segment<'_>) {
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
            Peer::TimeWait(wait) => match self.call(to, |_, env| wait.on_segment(segment, env)) {
                TimeWaitOutcome::Answer(ack) => answer = Some(ack),
                TimeWaitOutcome::Reset => peer = Peer::Gone,
                TimeWaitOutcome::Reopen { .. } | TimeWaitOutcome::Dropped(_) => {}
            },
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
}
