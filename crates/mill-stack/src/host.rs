//! The host.

use crate::config::HostConfig;
use crate::counters::HostCounters;
use crate::drop_reason::DropReason;
use crate::fast_open_peers::FastOpenPeers;
use crate::flow::Flow;
use crate::flow_table::Target;
use crate::flows::Flows;
use crate::limits::Limits;
use crate::link::{Burst, FrameId, Link, LinkProperties};
use crate::listener::Listeners;
use crate::port::Ports;
use crate::process_group::ProcessGroup;
use crate::queue::{SendQueue, VacantQueues};
use crate::rate_limit::RateLimit;
use crate::receive::Refused;
use crate::recent_flows::RecentFlows;
use crate::reply_queue::ReplyQueue;
use crate::secrets::Secrets;
use crate::slot::Slots;
use crate::tcp_context::TcpContext;
use crate::timer::Wheel;
use crate::transmit::Cut;
use crate::unclaimed::UnclaimedSyns;
use crate::unread::Buffers;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;
use mill_tcp::time::Instant;

/// A connection's effects on its host: events, the end, memory.
mod connection;

/// Opening listeners and accepting.
mod listening;

/// Connections that wait at a listener move to another host.
pub mod migration;

/// Opening connections.
mod opening;

/// What the application reads.
mod reading;

/// What the application writes.
mod writing;

/// Options of open connections.
mod socket_options;

/// Closing connections.
mod closing;

/// Telling the peers of a killed process.
pub mod farewell;

/// Routes and next hops.
mod next_hop;

/// The path MTU of connections.
pub(crate) mod path;
pub use crate::transmit::Sent;
pub(crate) use next_hop::Way;
pub(crate) use opening::beyond;

/// Changes of addresses, routes and neighbours while it runs.
mod changing;

/// Reading the state of the host and its connections.
pub mod status;

/// What the host holds, row by row.
pub mod tables;

/// Timers.
mod expiring;

/// ICMP, UDP and fragments.
mod datagrams;

#[cfg(test)]
mod tests;

/// One core's host: its connections, listeners, neighbours and routes. `Q` holds what connections have to send.
///
/// Packet calls come in the order `receive` (until the link has no more), `expire`, `transmit`, `settle`; commands of
/// the application between `expire` and `transmit`, or whenever.
#[derive(Debug)]
pub struct Host<Q> {
    pub(crate) now: Instant,
    pub(crate) link: LinkProperties,
    pub(crate) limits: Limits,
    pub(crate) secrets: Secrets,
    pub(crate) next_hops: next_hop::NextHops,
    pub(crate) slots: Slots<Q>,
    pub(crate) flows: Flows,
    /// The slot of the last segment's connection.
    pub(crate) recent_index: u32,
    pub(crate) timers: Wheel,
    pub(crate) listeners: Listeners,
    /// The hosts of other processes on the same device, if there can be any.
    pub(crate) processes: Option<Box<dyn ProcessGroup>>,
    /// The segment at hand is for no other host, whatever the directory says: that may name one that was killed.
    pub(crate) takes_any: bool,
    pub(crate) fast_open_peers: FastOpenPeers,
    pub(crate) ports: Ports,
    pub(crate) tcp_context: TcpContext,
    pub(crate) buffers: Buffers,
    pub(crate) vacant_queues: VacantQueues<Q>,
    pub(crate) answers: ReplyQueue,
    pub(crate) datagrams: datagrams::Datagrams,
    /// A long segment of which the device took the first frames only.
    pub(crate) cut: Option<Cut>,
    /// Whether replies and datagrams have filled the device since a connection sent last.
    pub(crate) is_overtaken: bool,
    /// Frames that readers may still read, and the bytes of them.
    pub(crate) held: Vec<(FrameId, u32)>,
    /// For replies to segments without connection.
    pub(crate) resets: RateLimit,
    pub(crate) recent_resets: RecentFlows,
    /// Flows of connections that have moved to another host.
    pub(crate) moved: RecentFlows,
    /// Addresses whose segments are dropped, as numbers of IPv6, sorted.
    pub(crate) blocked: Vec<u128>,
    /// The current segment, if it has no connection.
    pub(crate) refused: Option<Refused>,
    pub(crate) unclaimed: UnclaimedSyns,
    pub(crate) counters: HostCounters,
    burst: Burst,
}

/// Packets.
impl<Q: SendQueue> Host<Q> {
    /// A host on a link with these properties, which do not change.
    pub fn new(config: HostConfig, link: &LinkProperties, now: Instant) -> Self {
        let mut secrets = Secrets::new(config.secret);
        if let Some(secret) = config.boot_secret {
            secrets.set_boot_secret(secret);
        }
        if let Some(key) = config.fast_open_key {
            secrets.set_fast_open_key(key);
        }
        let burst_max = config.limits.burst_max as usize;
        let datagrams = datagrams::Datagrams::new(&config);
        Self {
            now,
            link: *link,
            next_hops: next_hop::NextHops::new(&config, link, now),
            slots: Slots::new(),
            flows: Flows::new(secrets.table, now),
            recent_index: 0,
            timers: Wheel::new(now),
            listeners: Listeners::default(),
            processes: None,
            takes_any: false,
            fast_open_peers: FastOpenPeers::new(config.limits.fast_open_peers_max),
            ports: Ports::new(config.ephemeral_ports),
            tcp_context: TcpContext::new(
                config.tcp,
                Secrets::seed(config.secret),
                crate::transmit::segment_bytes_max(link),
                config.limits.receive_bytes_max,
            ),
            buffers: Buffers::default(),
            vacant_queues: VacantQueues::new(),
            answers: ReplyQueue::new(),
            datagrams,
            cut: None,
            is_overtaken: false,
            held: Vec::new(),
            resets: RateLimit::default(),
            recent_resets: RecentFlows::default(),
            moved: RecentFlows::default(),
            blocked: Vec::new(),
            refused: None,
            unclaimed: UnclaimedSyns::default(),
            counters: HostCounters::default(),
            burst: Burst::new(burst_max),
            secrets,
            limits: config.limits,
        }
    }

    /// Time does not go back: threads that share a host may have read the clock before another one's turn.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Receives one burst from the link; says how many frames it was. Frames with bytes for a reader are held until
    /// `settle`, the others are released.
    pub fn receive<L: Link>(&mut self, link: &mut L, now: Instant) -> usize {
        self.receive_timed(link, || now)
    }

    /// The same where time goes on meanwhile: the clock is asked once the frames are here. Had it been asked before, a thread that was
    /// preempted in between would take frames that have arrived since for earlier than they are, and a round trip for shorter than
    /// the path; BBR believes the shortest for ten seconds.
    pub fn receive_timed<L: Link>(
        &mut self,
        link: &mut L,
        clock: impl FnOnce() -> Instant,
    ) -> usize {
        let mut burst = core::mem::replace(&mut self.burst, Burst::new(0));
        burst.clear();
        link.receive(&mut burst);
        if !burst.as_slice().is_empty() {
            self.advance(clock());
        }
        for received in burst.as_slice() {
            self.counters.frames_in += 1;
            let dropped = self.counters.received_drops();
            if !self.on_frame(link, received) {
                link.release(received.id);
            }
            let is_handled = self.counters.received_drops() == dropped;
            self.counters.frames_handled += u64::from(is_handled);
        }
        if self.answers.is_nearly_full() {
            self.transmit_first(link);
        }
        let count = burst.as_slice().len();
        self.burst = burst;
        count
    }

    /// Expires what is due at `now`; returns whether that was all. More than about a millisecond's work is left to
    /// the next call, which `next_expiry` requests for at once.
    pub fn expire(&mut self, now: Instant) -> bool {
        self.advance(now);
        self.expire_all()
    }

    /// Transmits all that is queued, until the link is full; returns whether something is left that waits for the
    /// link only. Does not flush.
    pub fn transmit<L: Link>(&mut self, link: &mut L, now: Instant) -> bool {
        self.transmit_some(link, now, u64::MAX) == Sent::Full
    }

    /// The same for about so many frames: it ends after the current connection's turn, which sends up to 64 in a row.
    /// A sender of much data receives in between, above all acknowledgements: handled late, they would make the
    /// measured round trip longer than it is.
    pub fn transmit_some<L: Link>(&mut self, link: &mut L, now: Instant, frames: u64) -> Sent {
        self.advance(now);
        self.transmit_share(link, frames)
    }

    /// Ends a turn: unread bytes are copied out, and all frames go back to the link.
    pub fn settle<L: Link>(&mut self, link: &mut L) {
        let mut held = core::mem::take(&mut self.held);
        for (frame, index) in held.drain(..) {
            self.copy_out(index, frame, link);
            link.release(frame);
        }
        self.held = held;
    }

    /// When `expire` is to be called next; earlier than needed at times, never later.
    pub fn next_expiry(&self) -> Option<Instant> {
        [
            self.timers.next_expiry(),
            self.flows.syn_cache().timers.next_expiry(),
            self.flows.time_wait().next_expiry(self.now),
            self.next_hops.next_expiry(),
            self.datagrams.fragments.next_expiry(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Drops all segments of these addresses from now on, and of no others.
    pub fn set_blocked(&mut self, addresses: &[IpAddr]) {
        self.blocked.clear();
        self.blocked
            .extend(addresses.iter().map(|address| number_of(*address)));
        self.blocked.sort_unstable();
    }

    /// Whether segments of an address are dropped.
    #[inline]
    pub(crate) fn is_blocked(&self, address: IpAddr) -> bool {
        !self.blocked.is_empty() && self.blocked.binary_search(&number_of(address)).is_ok()
    }

    pub(crate) fn drop_frame(&mut self, reason: DropReason) {
        self.counters.count_drop(reason);
    }

    /// The state of a flow.
    #[inline]
    pub(crate) fn find(&self, flow: &Flow, hash: u64) -> Option<Target> {
        self.flows.find(&self.slots, flow, hash)
    }
}

/// An address of IPv4 as that of IPv6 which stands for it.
const fn number_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Host<crate::queue::ByteQueue>>();
};
