//! The host's tables, row by row, for status reports. Long tables are read in slices.

use crate::config::Prefix;
use crate::flow::Flow;
use crate::host::Host;
use crate::host::status::ConnectionStatus;
use crate::neighbor::NeighborStatus;
use crate::queue::SendQueue;
use crate::route::RouteStatus;
use crate::slot::SlotFlags;
use core::net::SocketAddr;
use mill_tcp::time::Instant;
use mill_wire::seq::SeqNumber;

/// A listener, as `ss -l` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    pub address: SocketAddr,
    /// Connections that wait to be accepted.
    pub waiting: usize,
    pub backlog: u32,
    /// Handshakes under way.
    pub half_open: u32,
    pub half_open_max: u32,
    /// A cookie was sent so recently that it may come back.
    pub sends_cookies: bool,
}

/// The next numbers of a connection (RFC 9293 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextNumbers {
    pub flow: Flow,
    pub snd_nxt: SeqNumber,
    pub rcv_nxt: SeqNumber,
}

/// A kind of timer: how many are armed, and when the first expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerStatus {
    pub name: &'static str,
    /// `None` if they are not counted.
    pub armed: Option<usize>,
    pub next: Option<Instant>,
}

impl<Q: SendQueue> Host<Q> {
    /// Connections in slots from `from` on, at most `look_max` of them looked at; and the slot to go on with.
    pub fn connections_from(
        &self,
        from: u32,
        look_max: u32,
    ) -> (impl Iterator<Item = ConnectionStatus>, Option<u32>) {
        let places = self.slots.places();
        let to = from.saturating_add(look_max).min(places);
        let found = (from..to).filter_map(|index| self.connection_at(index));
        (found, (to < places).then_some(to))
    }

    /// What a reset of each connection would need: its slot, its flow, SND.NXT and RCV.NXT; in slices as above. Slots without
    /// connection are there, too.
    pub fn next_numbers_from(
        &self,
        from: u32,
        look_max: u32,
    ) -> (
        impl Iterator<Item = (u32, Option<NextNumbers>)>,
        Option<u32>,
    ) {
        let places = self.slots.places();
        let to = from.saturating_add(look_max).min(places);
        let found = (from..to).map(|index| (index, self.next_numbers(index)));
        (found, (to < places).then_some(to))
    }

    /// Lists connections from now on as they begin, for [`Self::note_young`], or no more.
    pub fn list_young(&mut self, on: bool) {
        self.slots.list_young(on);
    }

    /// The same of slots whose connections have begun, or gone to another host, since the last call.
    #[inline]
    pub fn note_young(&mut self, mut note: impl FnMut(u32, Option<NextNumbers>)) {
        let mut young = self.slots.take_young();
        for index in young.drain(..) {
            note(index, self.next_numbers(index));
        }
        self.slots.put_young(young);
    }

    fn next_numbers(&self, index: u32) -> Option<NextNumbers> {
        let slot = self.slots.at(index)?;
        let is_open = slot.flags.has(SlotFlags::IN_USE) && !slot.flags.has(SlotFlags::ENDED);
        let (snd_nxt, rcv_nxt) = slot.connection.next_numbers();
        is_open.then_some(NextNumbers {
            flow: slot.flow,
            snd_nxt,
            rcv_nxt,
        })
    }

    /// Handshakes of listeners, in slices as above.
    pub fn half_open_from(
        &self,
        from: u32,
        look_max: u32,
    ) -> (impl Iterator<Item = Flow>, Option<u32>) {
        let places = self.flows.syn_cache().places();
        let to = from.saturating_add(look_max).min(places);
        let found = (from..to).filter_map(|index| Some(self.flows.syn_cache().at(index)?.flow));
        (found, (to < places).then_some(to))
    }

    /// Connections in TIME-WAIT, in slices as above; places are counted from the oldest.
    pub fn time_wait_from(
        &self,
        from: u32,
        look_max: u32,
    ) -> (impl Iterator<Item = Flow>, Option<u32>) {
        let places = u32::try_from(self.flows.time_wait().places()).unwrap_or(u32::MAX);
        let to = from.saturating_add(look_max).min(places);
        let found =
            (from..to).filter_map(|place| self.flows.time_wait().flow_at_place(place as usize));
        (found, (to < places).then_some(to))
    }

    pub fn listening(&self) -> impl Iterator<Item = ListenerStatus> {
        let now = self.now;
        self.listeners.iter().map(move |listener| ListenerStatus {
            address: listener.address,
            waiting: listener.waiting().len(),
            backlog: listener.options.backlog,
            half_open: listener.half_open(),
            half_open_max: listener.half_open_max(),
            sends_cookies: listener.takes_cookies(now),
        })
    }

    pub fn neighbors(&self) -> impl Iterator<Item = NeighborStatus> {
        self.next_hops.neighbors.iter()
    }

    /// How many neighbours there are.
    pub fn neighbors_count(&self) -> usize {
        self.next_hops.neighbors.len()
    }

    pub fn routes(&self) -> impl Iterator<Item = RouteStatus> {
        self.next_hops.routes.iter()
    }

    /// The host's own addresses.
    pub fn addresses(&self) -> &[Prefix] {
        self.next_hops.routes.addresses()
    }

    /// Kinds of timers.
    pub fn timer_kinds(&self) -> [TimerStatus; 5] {
        let kind = |name, armed, next| TimerStatus { name, armed, next };
        [
            kind(
                "connections",
                Some(self.timers.len()),
                self.timers.next_expiry(),
            ),
            kind(
                "handshakes",
                Some(self.flows.syn_cache().timers.len()),
                self.flows.syn_cache().timers.next_expiry(),
            ),
            kind(
                "time_wait",
                Some(self.flows.time_wait().len()),
                self.flows.time_wait().next_expiry(self.now),
            ),
            kind("neighbors", None, self.next_hops.next_expiry()),
            kind("fragments", None, self.datagrams.fragments.next_expiry()),
        ]
    }

    /// The time of the last packet call.
    pub const fn now(&self) -> Instant {
        self.now
    }
}
