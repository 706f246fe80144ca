//! Routes and next hops: their Ethernet addresses; and the connections and replies that wait for one.

use crate::config::{HostConfig, Neighboring};
use crate::drop_reason::DropReason;
use crate::host::Host;
use crate::host::path::headers;
use crate::link::LinkProperties;
use crate::neighbor::{Neighbors, Resolution};
use crate::path_mtu::PathMtus;
use crate::queue::SendQueue;
use crate::reply_queue::Answer;
use crate::route::Routes;
use crate::secrets::Secrets;
use crate::slot::SlotFlags;
use crate::socket::SocketError;
use alloc::vec::Vec;
use core::net::IpAddr;
use mill_tcp::state::State;
use mill_tcp::time::Instant;
use mill_wire::ethernet::MacAddress;

/// The next hop of replies.
mod reply;

/// The host's knowledge of the network around it.
#[derive(Debug)]
pub(crate) struct NextHops {
    pub(crate) mac: MacAddress,
    pub(crate) neighbors: Neighbors,
    pub(crate) routes: Routes,
    pub(crate) paths: PathMtus,
    /// Connections and answers that wait for a neighbour, and for which.
    parked: Vec<(IpAddr, Parked)>,
    parked_max: usize,
    /// The Ethernet address that the current frame came from.
    heard_from: MacAddress,
    /// Next hops that were found lately, by a few bits of the target.
    recent: [Recent; RECENT_COUNT],
    /// The last target that a source address was chosen for, and that address, while addresses and routes are the same.
    recent_source: Option<(IpAddr, IpAddr)>,
    /// Memory for lists that are needed for a moment.
    scratch: Vec<IpAddr>,
}

/// A next hop that was found while the neighbours had this version.
#[derive(Clone, Copy, Debug)]
struct Recent {
    target: IpAddr,
    mac: MacAddress,
    version: u32,
    source: Source,
}

/// What tells the Ethernet address of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A neighbour's answer; the frame of a request where the kernel resolves neighbours.
    Found,
    /// The frame of a SYN, while the neighbour is asked.
    Frame,
}

/// The connections and replies that wait.
#[derive(Clone, Copy, Debug)]
enum Parked {
    Slot(u32),
    Answer(Answer),
}

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    To(MacAddress),
    /// The neighbour is being resolved.
    Asking(IpAddr),
    /// It does not answer.
    Failed,
    NoRoute,
}

impl NextHops {
    pub(crate) fn new(config: &HostConfig, link: &LinkProperties, now: Instant) -> Self {
        let mac = MacAddress(link.address);
        let seed = Secrets::seed(config.secret);
        let (addresses, limits) = (&config.addresses, &config.limits);
        let (neighbors, routes) = match config.neighbors {
            Neighboring::Own => (
                Neighbors::new(mac, addresses, false, limits, seed, now),
                Routes::new(mac, addresses, &config.routes),
            ),
            Neighboring::Kernel => (
                Neighbors::of_kernel(mac, addresses, limits, seed, now),
                Routes::of_kernel(addresses, &config.routes),
            ),
        };
        Self {
            mac,
            neighbors,
            routes,
            paths: PathMtus::new(link.mtu, config.limits.paths_max as usize),
            parked: Vec::new(),
            parked_max: config.limits.neighbor_queue_max as usize,
            heard_from: MacAddress::UNSPECIFIED,
            recent: [Recent::NONE; RECENT_COUNT],
            recent_source: None,
            scratch: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn way(&mut self, target: IpAddr, now: Instant) -> Way {
        let place = recent_place(target);
        if let Some(recent) = self.recent.get(place)
            && recent.target == target
            && recent.version == self.version()
        {
            return Way::To(recent.mac);
        }
        let way = self.look_up(target, now);
        if let Way::To(mac) = way {
            self.set_recent(target, mac, Source::Found);
        }
        way
    }

    /// The same for a connection that is opened here: it is not sent to where a SYN claimed to come from.
    fn way_to_open(&mut self, target: IpAddr, now: Instant) -> Way {
        let recent = self.recent.get(recent_place(target));
        match recent.is_some_and(|recent| recent.source == Source::Frame) {
            true => self.look_up(target, now),
            false => self.way(target, now),
        }
    }

    /// Our address for packets to `target`; `None` if no route leads there. Openings often go to one target, one after
    /// the other.
    pub(crate) fn source_for(&mut self, target: IpAddr) -> Option<IpAddr> {
        match self.recent_source {
            Some((recent, source)) if recent == target => Some(source),
            _ => {
                let source = self.routes.route(target)?.source;
                self.recent_source = Some((target, source));
                Some(source)
            }
        }
    }

    /// Addresses or routes have changed.
    pub(crate) const fn outdate(&mut self) {
        self.recent_source = None;
        self.neighbors.outdate();
    }

    fn look_up(&mut self, target: IpAddr, now: Instant) -> Way {
        let Some(next_hop) = self.routes.next_hop(target) else {
            return Way::NoRoute;
        };
        match self.neighbors.resolve(next_hop, now) {
            Resolution::Known(mac) => Way::To(mac),
            Resolution::Asking => Way::Asking(next_hop),
            Resolution::Failed => Way::Failed,
        }
    }

    /// A number that changes when cached next hops are to be looked up again; never 0.
    pub(crate) const fn version(&self) -> u32 {
        self.neighbors.epoch() | 1 << 31
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.neighbors.next_expiry()
    }

    pub(crate) const fn parked_count(&self) -> usize {
        self.parked.len()
    }

    /// Whether one more may wait for `next_hop`.
    fn has_room(&self, next_hop: IpAddr) -> bool {
        let waiting = self.parked.iter().filter(|(hop, _)| *hop == next_hop);
        waiting.count() < self.parked_max
    }
}

impl Recent {
    const NONE: Self = Self {
        target: IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
        mac: MacAddress::UNSPECIFIED,
        version: 0,
        source: Source::Found,
    };
}

fn recent_place(target: IpAddr) -> usize {
    let last = match target {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    usize::from(last) % RECENT_COUNT
}

/// As many as peers that are active at once without routers between; behind a router they displace each other, which
/// costs a look-up of the routes. 2 KiB.
const RECENT_COUNT: usize = 64;

impl<Q: SendQueue> Host<Q> {
    /// The Ethernet address for a connection's frames; `None` if it has to wait, or has been told that there is none.
    #[inline]
    pub(crate) fn next_hop_of(&mut self, index: u32) -> Option<MacAddress> {
        let slot = self.slots.at(index)?;
        if slot.next_hop_version == self.next_hops.version() {
            return Some(MacAddress(slot.next_hop));
        }
        self.look_up_next_hop(index)
    }

    fn look_up_next_hop(&mut self, index: u32) -> Option<MacAddress> {
        self.fit_to_path(index);
        let slot = self.slots.at_mut(index)?;
        if !self.next_hops.routes.is_own(slot.flow.local) {
            // As Linux: the connection goes on if the address comes back in time.
            self.send_into_the_void(index, DropReason::NoRoute);
            return None;
        }
        if slot.flags.has(SlotFlags::REPLIES) {
            let known = self.next_hops.neighbors.known(slot.flow.remote);
            let mac = known.unwrap_or(MacAddress(slot.next_hop));
            slot.next_hop = mac.0;
            slot.next_hop_version = self.next_hops.version();
            return Some(mac);
        }
        let is_opening = slot.connection.state() == State::SynSent;
        let way = match is_opening {
            true => self.next_hops.way_to_open(slot.flow.remote, self.now),
            false => self.next_hops.way(slot.flow.remote, self.now),
        };
        match way {
            Way::To(mac) => {
                slot.next_hop = mac.0;
                slot.next_hop_version = self.next_hops.version();
                return Some(mac);
            }
            Way::Asking(next_hop) if slot.flags.has(SlotFlags::PARKED) => {
                debug_assert!(
                    !self.next_hops.parked.is_empty(),
                    "{next_hop} is waited for"
                );
            }
            Way::Asking(next_hop) if self.next_hops.has_room(next_hop) => {
                slot.flags.set(SlotFlags::PARKED);
                self.next_hops.parked.push((next_hop, Parked::Slot(index)));
            }
            Way::Asking(_) => self.send_into_the_void(index, DropReason::Unresolved),
            Way::Failed => self.on_unresolved(index, DropReason::Unresolved),
            Way::NoRoute => self.on_unresolved(index, DropReason::NoRoute),
        }
        None
    }

    /// The next hop does not answer: an opening fails, as Linux's does; TCP's timers go on for the others.
    fn on_unresolved(&mut self, index: u32, reason: DropReason) {
        let state = self.slots.at(index).map(|slot| slot.connection.state());
        if state == Some(State::SynSent) {
            self.fail(index, SocketError::Unreachable);
        } else {
            self.send_into_the_void(index, reason);
        }
    }

    /// Takes the next segments of the connection and drops them, as a network would: its timers decide what comes
    /// next.
    fn send_into_the_void(&mut self, index: u32, reason: DropReason) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let queued = slot.queue.as_ref().map_or(0, |queue| queue.len());
        let env = &mut self.tcp_context.env(slot.config, self.now);
        while slot.connection.next_segment(queued, env).is_some() {
            self.counters.count_drop(reason);
        }
        self.arm(index);
    }

    /// Has a reply wait for its next hop, if there is room.
    pub(crate) fn park_answer(&mut self, next_hop: IpAddr, answer: Answer) {
        if self.next_hops.has_room(next_hop) {
            self.next_hops
                .parked
                .push((next_hop, Parked::Answer(answer)));
        } else {
            self.drop_frame(DropReason::Unresolved);
        }
    }

    /// Wakes connections and replies whose neighbour has answered, or failed to.
    #[inline]
    pub(crate) fn wake_parked(&mut self) {
        if self.next_hops.neighbors.has_news() {
            self.wake_settled();
        }
    }

    fn wake_settled(&mut self) {
        let mut settled = core::mem::take(&mut self.next_hops.scratch);
        self.next_hops.neighbors.take_resolved(&mut settled);
        let resolved = settled.len();
        self.next_hops.neighbors.take_failed(&mut settled);
        if !settled.is_empty() {
            self.datagrams.outbox.wake();
        }
        for (place, next_hop) in settled.drain(..).enumerate() {
            self.wake_parked_for(next_hop, place < resolved);
        }
        self.next_hops.neighbors.take_forgotten(&mut settled);
        for next_hop in settled.drain(..) {
            self.drop_parked_for(next_hop);
        }
        self.next_hops.scratch = settled;
    }

    /// Drops packets for a neighbour that is no longer being resolved, as a network would: connections retransmit
    /// them by a timer, and not in the turn in which others have displaced the neighbour.
    fn drop_parked_for(&mut self, next_hop: IpAddr) {
        self.datagrams.outbox.forget(next_hop);
        let mut parked = core::mem::take(&mut self.next_hops.parked);
        parked.retain(|(waited_for, waiter)| {
            if *waited_for != next_hop {
                return true;
            }
            match waiter {
                Parked::Slot(index) => {
                    if let Some(slot) = self.slots.at_mut(*index) {
                        slot.flags.clear(SlotFlags::PARKED);
                    }
                    self.send_into_the_void(*index, DropReason::Unresolved);
                }
                Parked::Answer(_) => self.drop_frame(DropReason::Unresolved),
            }
            false
        });
        debug_assert!(self.next_hops.parked.is_empty());
        self.next_hops.parked = parked;
    }

    /// All connections look their next hop up again.
    pub(crate) fn wake_all_parked(&mut self) {
        while let Some((next_hop, _)) = self.next_hops.parked.first() {
            self.wake_parked_for(*next_hop, true);
        }
        self.datagrams.outbox.wake();
    }

    fn wake_parked_for(&mut self, next_hop: IpAddr, is_resolved: bool) {
        let mut parked = core::mem::take(&mut self.next_hops.parked);
        parked.retain(|(waited_for, waiter)| {
            if *waited_for != next_hop {
                return true;
            }
            match waiter {
                Parked::Slot(index) => {
                    if let Some(slot) = self.slots.at_mut(*index) {
                        slot.flags.clear(SlotFlags::PARKED);
                        self.slots.want_transmit(*index);
                    }
                }
                Parked::Answer(answer) if is_resolved => {
                    self.answer(answer.flow, answer.segment);
                }
                Parked::Answer(_) => self.drop_frame(DropReason::Unresolved),
            }
            false
        });
        debug_assert!(self.next_hops.parked.is_empty());
        self.next_hops.parked = parked;
    }

    /// Whether a route leads to this address by the link, and it is of one host, not this one.
    pub fn reaches(&self, target: IpAddr) -> bool {
        let is_of_many =
            matches!(target, IpAddr::V4(target) if self.next_hops.routes.is_broadcast(target));
        !is_of_many && !self.is_own(target) && self.next_hops.routes.route(target).is_some()
    }

    /// Whether this is one of the host's addresses.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.next_hops.routes.is_own(address)
    }

    /// Bytes of payload in a segment without TCP options to `target`, for a connection with the configuration of this
    /// number: what the link carries, which is what is announced and agreed on (RFC 6691 section 3, RFC 8201 5.3). What the
    /// path carries comes later, and changes.
    pub(crate) fn mss_to(&self, target: IpAddr, config: u16) -> u16 {
        let mss_max = self.tcp_context.config(config).mss_max;
        let mss = self.link.mtu.saturating_sub(headers(target));
        mss.min(mss_max.unwrap_or(u16::MAX))
    }
}
