//! Reading the state of the host and its connections.

use crate::counters::HostCounters;
use crate::flow::Flow;
use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::{Slot, SlotFlags};
use crate::socket::SocketId;
use core::net::SocketAddr;
use mill_tcp::config::Config;
use mill_tcp::counters::Counters;
use mill_tcp::info::Info;
use mill_tcp::state::State;

/// What a host holds at present; all zero when everything is closed and every wait is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Slots in use.
    pub connections: usize,
    pub half_open: usize,
    pub time_wait: usize,
    /// Entries of the flow table: the sum of the three above, but for connections that have ended and are not closed.
    pub flows: usize,
    /// Armed timers of connections and handshakes.
    pub timers: usize,
    /// Frames that readers may still look at.
    pub held_frames: usize,
    /// Buffers with unread bytes.
    pub buffers: usize,
    /// Received and not read, those out of order included.
    pub unread_bytes: u64,
    /// Pieces of datagrams that are not whole.
    pub fragment_bytes: usize,
    /// Segments and datagrams that wait for the device or for a neighbour.
    pub waiting: usize,
}

impl Usage {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One connection, as `ss` shows it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStatus {
    pub flow: Flow,
    pub token: u64,
    pub info: Info,
    /// Bytes that the application has not read.
    pub unread: usize,
    /// Bytes to send, those in flight included.
    pub queued: u64,
    /// Bytes that the peer has acknowledged.
    pub acked: u64,
    /// The application has closed it.
    pub is_orphan: bool,
}

impl<Q: SendQueue> Host<Q> {
    /// Whether the handshake is complete; an error is given by `readable`.
    pub fn is_established(&self, socket: SocketId) -> bool {
        self.slots
            .of(socket)
            .is_some_and(|slot| slot.flags.has(SlotFlags::ESTABLISHED))
    }

    pub fn peer(&self, socket: SocketId) -> Option<SocketAddr> {
        self.slots.of(socket).map(|slot| slot.flow.remote())
    }

    pub fn local(&self, socket: SocketId) -> Option<SocketAddr> {
        self.slots.of(socket).map(|slot| slot.flow.local())
    }

    /// Cheaper than as a part of all that [`Self::info`] tells.
    pub fn state(&self, socket: SocketId) -> Option<State> {
        self.slots.of(socket).map(|slot| slot.connection.state())
    }

    pub fn info(&self, socket: SocketId) -> Option<Info> {
        self.slots
            .of(socket)
            .map(|slot| slot.connection.info(self.config_of(slot)))
    }

    /// The settings of connections whose sockets have none of their own.
    pub fn tcp_config(&self) -> &Config {
        self.tcp_context.config(0)
    }

    fn config_of(&self, slot: &Slot<Q>) -> &Config {
        self.tcp_context.config(slot.config)
    }

    /// What TCP counted.
    pub const fn tcp_counters(&self) -> &Counters {
        &self.tcp_context.shared.counters
    }

    /// What the host counted.
    pub const fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// What is in use now; a host whose connections are all closed and over uses nothing.
    pub fn usage(&self) -> Usage {
        Usage {
            connections: self.slots.count() as usize,
            half_open: self.flows.syn_cache().len(),
            time_wait: self.flows.time_wait().len(),
            flows: self.flows.len(),
            timers: self.timers.len() + self.flows.syn_cache().timers.len(),
            held_frames: self.held.len(),
            buffers: self.buffers.in_use(),
            unread_bytes: self.tcp_context.receive_bytes(),
            fragment_bytes: self.datagrams.fragments.size_bytes(),
            waiting: self.answers.len()
                + self.datagrams.outbox.len()
                + self.next_hops.parked_count()
                + usize::from(self.cut.is_some()),
        }
    }

    /// All connections, in no order.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionStatus> {
        self.slots.iter().map(|(_, slot)| self.status_of(slot))
    }

    /// The connection in a slot, if there is one.
    pub(crate) fn connection_at(&self, index: u32) -> Option<ConnectionStatus> {
        let slot = self.slots.at(index)?;
        slot.flags
            .has(SlotFlags::IN_USE)
            .then(|| self.status_of(slot))
    }

    fn status_of(&self, slot: &Slot<Q>) -> ConnectionStatus {
        ConnectionStatus {
            flow: slot.flow,
            token: slot.token,
            info: slot.connection.info(self.config_of(slot)),
            unread: slot.unread.len(),
            queued: slot.queue.as_ref().map_or(0, |queue| queue.len()),
            acked: slot.acked,
            is_orphan: slot.flags.has(SlotFlags::ORPHAN),
        }
    }

    /// Bytes of memory of all tables together, without what waits to be read or sent.
    pub fn tables_bytes(&self) -> usize {
        self.flows.size_bytes()
            + self.slots.count() as usize * crate::slot::SLOT_BYTES
            + self.timers.len() * crate::timer::ENTRY_BYTES
    }

    /// Listeners that are open.
    pub fn listeners(&self) -> usize {
        self.listeners.len()
    }
}
