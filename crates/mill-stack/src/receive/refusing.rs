//! Segments that nothing here stands for: another process may have their connection, a listener may be about to be there; the
//! others are rejected.

use super::segment::is_opening;
use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::host::Host;
use crate::link::{Link, Received, ReceivedChecksum, Stray};
use crate::process_group::Taker;
use crate::queue::SendQueue;
use crate::receive::Packet;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use mill_tcp::closed::reset_for;
use mill_tcp::segment::{Segment, SegmentOut};
use mill_wire::tcp::TcpHeader;

/// A segment that nothing stands for, and what it would be answered with.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(super) flow: Flow,
    /// It has a SYN, and no acknowledgement.
    pub(super) is_opening: bool,
    pub(super) answer: Answer,
    pub(super) reason: DropReason,
}

impl Refused {
    pub(crate) const fn flow(&self) -> &Flow {
        &self.flow
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    None,
    Reset(SegmentOut),
    /// Of a connection that waits for the end of its time.
    Acknowledgement(SegmentOut),
    /// A listener here takes it if the host that should does not get it.
    Open,
}

/// Whether a segment was given to a process of its group.
enum Given {
    Yes,
    No,
    /// It is a SYN, and there is no way yet to any of those that listen: one of them gets it when it is sent again.
    NoWay,
}

/// Where a listener for a flow may listen, the closest first.
fn listening_addresses(flow: &Flow) -> impl Iterator<Item = SocketAddr> + use<> {
    let v4 = flow.local.is_ipv4().then_some(Ipv4Addr::UNSPECIFIED.into());
    let v6 = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let port = flow.local_port;
    let addresses = [Some(flow.local), v4, Some(v6)].into_iter().flatten();
    addresses.map(move |address| SocketAddr::new(address, port))
}

impl<Q: SendQueue> Host<Q> {
    /// There is no connection or listener for a segment: it is rejected, unless another process takes it.
    pub(crate) fn refuse(&mut self, flow: &Flow, segment: &Segment<'_>, reason: DropReason) {
        self.refused = Some(Refused {
            flow: *flow,
            is_opening: is_opening(segment.flags),
            answer: reset_for(segment).map_or(Answer::None, Answer::Reset),
            reason,
        });
    }

    /// Whether a new connection is of another host that listens at the same address, or that has answered its first SYN: it is
    /// offered to that.
    #[cold]
    pub(super) fn leaves_to_another(&mut self, flow: &Flow, hash: u64) -> bool {
        let listener = self.listeners.find(flow.local(), hash);
        let Some(listener) = listener.and_then(|listener| self.listeners.at(listener)) else {
            return false;
        };
        let is_grouped = self.processes.as_mut().is_some_and(|processes| {
            let taker = processes.taker(listener.address, flow, true, &[]);
            if taker == Taker::This {
                processes.note_given(listener.address, flow, taker);
            }
            matches!(taker, Taker::Another(_))
        });
        let leaves = is_grouped || self.flows.is_elsewhere(flow);
        if leaves {
            self.refused = Some(Refused {
                flow: *flow,
                is_opening: true,
                answer: Answer::Open,
                reason: DropReason::NoListener,
            });
        }
        leaves
    }

    /// A segment without connection or listener here may belong to another process, which answers then.
    #[cold]
    pub(super) fn hand_over<L: Link>(
        &mut self,
        link: &mut L,
        packet: &Packet,
        mut refused: Refused,
    ) {
        let flow = refused.flow;
        let flow = &flow;
        let hash = self.flows.hash(flow);
        // Its connection is on the way to another host: no third one may reset it meanwhile. The peer sends it again. A SYN begins a new
        // one, unless the directory knows of a handshake.
        let has_just_left = !refused.is_opening && self.moved.has_just_left(hash, self.now.tick());
        if has_just_left && !self.flows.is_elsewhere(flow) {
            self.drop_frame(refused.reason);
            return;
        }
        let stray = match refused.is_opening {
            true => Stray::Opening(flow),
            false => Stray::Segment(flow),
        };
        let is_taken = !self.has_departed(flow) && link.hand_over(&received(packet), &stray);
        if is_taken {
            self.counters.handed_over += 1;
            return;
        }
        if has_just_left {
            self.drop_frame(refused.reason);
            return;
        }
        match self.give_to_group(link, packet, flow, refused.is_opening) {
            Given::Yes => {
                self.counters.handed_over += 1;
                return;
            }
            // The process that has given it to this one has a way: this one has listened until a moment ago.
            Given::NoWay
                if !matches!(refused.answer, Answer::Open) && link.give_back(&received(packet)) =>
            {
                self.counters.handed_over += 1;
                return;
            }
            // A listener may be about to be here; if none is, the SYN is not refused.
            Given::NoWay if !matches!(refused.answer, Answer::Open) => {
                refused.answer = Answer::None;
            }
            Given::NoWay | Given::No => {}
        }
        let frame = link.frame(packet.frame);
        let bytes = frame.get(packet.body.clone()).unwrap_or_default();
        if matches!(refused.answer, Answer::Open) {
            let bytes = bytes.to_vec();
            self.begin_anew(flow);
            return self.on_tcp_datagram(link, packet, &bytes);
        }
        if let Some(refused) = self.keep_unclaimed(packet, bytes, refused) {
            self.reject(refused);
        }
    }

    /// A new connection begins here, of a flow whose last one may have departed.
    pub(crate) fn begin_anew(&mut self, flow: &Flow) {
        if let Some(processes) = &mut self.processes {
            processes.forget_departed(flow);
        }
    }

    /// Whether the process that had the connection of a flow was killed.
    pub(super) fn has_departed(&self, flow: &Flow) -> bool {
        let processes = self.processes.as_deref();
        processes.is_some_and(|processes| processes.has_departed(flow))
    }

    /// Gives a segment that no process has a connection for to the one among those that listen there that takes it, if that is
    /// another one: it opens a connection, or is a cookie.
    fn give_to_group<L: Link>(
        &mut self,
        link: &mut L,
        packet: &Packet,
        flow: &Flow,
        is_opening: bool,
    ) -> Given {
        let Some(processes) = &mut self.processes else {
            return Given::No;
        };
        let mut is_listened = false;
        for address in listening_addresses(flow) {
            let mut unreachable = Vec::new();
            loop {
                match processes.taker(address, flow, is_opening, &unreachable) {
                    Taker::This => return Given::No,
                    Taker::None => break,
                    taker @ Taker::Another(process) if link.pass_to(&received(packet), process) => {
                        if is_opening {
                            processes.note_given(address, flow, taker);
                        }
                        return Given::Yes;
                    }
                    Taker::Another(process) => unreachable.push(process),
                }
            }
            is_listened |= !unreachable.is_empty();
        }
        match is_listened && is_opening {
            true => Given::NoWay,
            false => Given::No,
        }
    }

    /// The process that listens for connections of this flow, where no listener of this host does; it counts as having got this one.
    pub fn listening_process(&mut self, flow: &Flow) -> Option<u64> {
        let processes = self.processes.as_mut()?;
        for address in listening_addresses(flow) {
            let taker = processes.taker(address, flow, true, &[]);
            if let Taker::Another(process) = taker {
                processes.note_given(address, flow, taker);
                return Some(process);
            }
        }
        None
    }

    /// Keeps a SYN for a listener that may be about to be there, where the application says so; otherwise gives it back.
    fn keep_unclaimed(
        &mut self,
        packet: &Packet,
        bytes: &[u8],
        refused: Refused,
    ) -> Option<Refused> {
        let mut header = TcpHeader::default();
        let is_syn = header.read(bytes).is_ok() && is_opening(header.flags);
        if !is_syn || !self.unclaimed.is_on {
            return Some(refused);
        }
        let now = self.now;
        self.unclaimed.push(packet, bytes, refused, now)
    }

    /// SYNs to ports without listener wait from now on, until [`Self::settle_unclaimed`] says what becomes of them.
    pub const fn keep_unclaimed_syns(&mut self) {
        self.unclaimed.is_on = true;
    }

    /// Whether SYNs have come to ports without listener.
    pub fn has_unclaimed(&self) -> bool {
        self.unclaimed.has_news()
    }

    /// Gives SYNs that wait to the listeners that are there by now; they wait on where one is expected, and otherwise are
    /// refused. After a second they are forgotten: the peer has sent them again. Says whether any has waited.
    pub fn settle_unclaimed<L: Link>(
        &mut self,
        link: &mut L,
        mut is_expected: impl FnMut(SocketAddr) -> bool,
    ) -> bool {
        let waiting = self.unclaimed.take();
        let has_waited = !waiting.is_empty();
        for mut syn in waiting {
            let local = syn.refused.flow.local();
            let hash = self.flows.hash(&syn.refused.flow);
            if syn.is_over(self.now) {
                self.drop_frame(DropReason::NoListener);
            } else if self.listeners.find(local, hash).is_some() {
                self.on_tcp_datagram(link, &syn.packet, &syn.segment);
            } else if syn.is_expected || is_expected(local) {
                syn.is_expected = true;
                self.unclaimed.put_back(syn);
            } else {
                self.reject(syn.refused);
            }
        }
        has_waited
    }

    /// Answers with a reset, unless it was one: as far as the limit allows, or as long as the peer may not know that we
    /// have ended its connection.
    pub(super) fn reject(&mut self, refused: Refused) {
        let reset = match refused.answer {
            Answer::Acknowledgement(answer) => return self.answer(refused.flow, answer),
            Answer::None | Answer::Open => return self.drop_frame(refused.reason),
            Answer::Reset(reset) => reset,
        };
        self.drop_frame(refused.reason);
        let hash = self.flows.hash(&refused.flow);
        // It is on its way to the host that has the connection now, which gets the segment when it is sent again.
        if self.moved.has(hash, self.now.tick()) {
            return;
        }
        let per_second = self.limits.answers_per_second;
        let random = &mut self.tcp_context.shared.random;
        if self.recent_resets.has(hash, self.now.tick())
            || self.resets.take(per_second, random, self.now)
        {
            self.tcp_context.shared.counters.resets_out += 1;
            self.answer(refused.flow, reset);
        } else {
            self.drop_frame(DropReason::RateLimit);
        }
    }
}

/// The frame of a packet that nothing here stands for.
const fn received(packet: &Packet) -> Received {
    Received {
        id: packet.frame,
        // Nothing is refused before its checksum was verified.
        checksum: ReceivedChecksum::Verified,
        merged: packet.merged,
    }
}
