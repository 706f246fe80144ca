//! The switch and its stations, as a test sees them.

use super::flying::Flying;
use super::sim_link::SimLink;
use super::wire::Wire;
use crate::engine::SimEngine;
use crate::network::Net;
use mill_stack::link::ReceivedChecksum;
use std::rc::Rc;

/// A switch; with two stations it is a cable. Clones are the same.
#[derive(Clone, Debug)]
pub struct Ethernet {
    net: Net,
    index: usize,
}

/// One host's place at a switch. Clones are the same.
#[derive(Clone, Debug)]
pub struct Station {
    net: Net,
    index: usize,
}

/// What a station's network card is and can do.
#[derive(Debug)]
pub struct StationOptions {
    /// Bytes of IP packet in a frame.
    pub mtu: u16,
    /// The card completes checksums.
    pub completes_checksums: bool,
    /// Bytes of the largest IP packet that the card takes to cut it; as much as the MTU if it does not.
    pub segment_bytes_max: u32,
    /// What the card says of the checksums of received frames that it can vouch for.
    pub vouches: ReceivedChecksum,
    /// The card takes frames that are larger than the MTU, with whatever is left to do of them. Frames of a switch all
    /// of whose other stations do so travel whole.
    pub merges: bool,
    /// Received frames that wait for the host; more are dropped.
    pub ring_frames: usize,
    /// Bytes that wait for the wire before the card is full; `None` takes everything.
    pub card_bytes: Option<u64>,
    /// Kept for its capacity.
    pub(super) cut: Vec<Flying>,
}

/// What a station has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounts {
    /// Frames that the host sent.
    pub sent: u64,
    pub sent_bytes: u64,
    /// Frames that came.
    pub received: u64,
    /// Frames that came while the ring was full.
    pub overrun: u64,
}

impl StationOptions {
    /// Ethernet without any offload.
    pub const fn new(mtu: u16) -> Self {
        Self {
            mtu,
            completes_checksums: false,
            segment_bytes_max: 0,
            vouches: ReceivedChecksum::Unverified,
            merges: false,
            ring_frames: RING_FRAMES,
            card_bytes: None,
            cut: Vec::new(),
        }
    }
}

impl Ethernet {
    pub(crate) const fn new(net: Net, index: usize) -> Self {
        Self { net, index }
    }

    /// A new station. Its wires are ideal at first; the engine, if there is one, is woken when frames have come.
    pub fn plug(&self, options: StationOptions, engine: Option<&SimEngine>) -> SimLink {
        let engine = engine.map(SimEngine::index);
        let mut net = self.net.borrow_mut();
        let seeds = [net.random.next(), net.random.next()];
        let index = net.packets.add_station(self.index, options, engine, seeds);
        let properties = net.packets.stations[index].properties;
        drop(net);
        SimLink::new(Rc::clone(&self.net), index, properties)
    }
}

impl Station {
    pub(super) const fn new(net: Net, index: usize) -> Self {
        Self { net, index }
    }

    /// The properties of both wires for frames that are sent from now on: out, towards the switch, and in.
    pub fn set_wires(&self, outward: Wire, inward: Wire) {
        let mut net = self.net.borrow_mut();
        let station = &mut net.packets.stations[self.index];
        station.outward.set_wire(outward);
        station.inward.set_wire(inward);
    }

    /// Both wires as they are now.
    pub fn wires(&self) -> (Wire, Wire) {
        let net = self.net.borrow();
        let station = &net.packets.stations[self.index];
        (station.outward.wire, station.inward.wire)
    }

    /// Received frames that the host holds.
    pub fn held(&self) -> usize {
        self.net.borrow().packets.stations[self.index].held
    }

    /// Bytes that wait for the wire out.
    pub fn waiting(&self) -> u64 {
        let net = self.net.borrow();
        let now = net.now;
        net.packets.stations[self.index].outward.backlog(now)
    }

    pub fn counts(&self) -> StationCounts {
        self.net.borrow().packets.stations[self.index].counts
    }
}

/// Frames: as many as the rings of ordinary cards at most hold.
const RING_FRAMES: usize = 4096;
