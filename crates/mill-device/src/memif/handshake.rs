//! The handshake of two ends, without a socket: messages in, messages out.
//!
//! ```text
//! master                              slave
//!   hello        ───────────────────▶            what the master can take
//!                ◀───────────────────  init      which interface, and the secret
//!                ◀───────────────────  add region, add ring: S2M, then M2S; in order of their index
//!                ◀───────────────────  connect
//!   ack …        ───────────────────▶            one for init, for each region and each ring
//!   connected    ───────────────────▶            everything is mapped
//! ```
//!
//! The slave does not wait for an ack before it sends the next message. Either end may disconnect at any time. There is
//! no written specification: the header memif.h is what VPP, libmemif and DPDK have in common.

use super::message::{AddRegion, AddRing, Message, Text};
use std::collections::VecDeque;
use std::fmt;

/// The master's side.
mod master;
/// The slave's side.
mod slave;

/// One end of a control channel. `D` is a descriptor.
///
/// Order of calls: `on_message` for each message that arrives, and after it `next_message` until it returns `None`; the
/// step that `on_message` returns is done with `offer`, `accept` or `refuse`.
#[derive(Debug)]
pub struct Handshake<D> {
    terms: Terms,
    state: State,
    outgoing: VecDeque<(Message, Option<D>)>,
    /// What the slave has offered so far.
    offer: Offer<D>,
    /// Acks that a slave still waits for.
    acks_due: usize,
}

/// What this end requires or offers.
#[derive(Clone, PartialEq, Eq)]
pub struct Terms {
    /// The interface's number at the socket.
    pub id: u32,
    /// All zeros: none is required.
    pub secret: [u8; 24],
    /// Rings in each direction: a slave makes this many, a master accepts at most this many.
    pub rings: u16,
    /// Binary logarithm of the number of a ring's descriptors, likewise.
    pub log2_ring_size: u8,
    /// Whether to leave out checksums and segmentation towards a peer that announces the same.
    pub offload: bool,
}

/// What the caller has to do or to know.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<D> {
    Nothing,
    /// For a slave: make memory of these terms and `offer` it.
    Prepare(Agreed),
    /// For a master: map this, then `accept` or `refuse`.
    Map(Offer<D>, Agreed),
    /// For a slave: frames may pass.
    Up,
    /// The peer has disconnected.
    Left(String),
}

/// The terms that both ends support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    pub s2m_rings: u16,
    pub m2s_rings: u16,
    pub log2_ring_size: u8,
    pub offload: bool,
}

/// A slave's memory and rings.
#[derive(Debug, PartialEq, Eq)]
pub struct Offer<D> {
    pub regions: Vec<(AddRegion, D)>,
    pub s2m: Vec<(AddRing, D)>,
    pub m2s: Vec<(AddRing, D)>,
}

/// Why this end refuses; sent to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a message, or not one that is expected now.
    Unexpected,
    Version,
    Id,
    Mode,
    Secret,
    Busy,
    DescriptorMissing,
    DescriptorUnwanted,
    RegionIndex,
    RegionSize,
    RingIndex,
    RingRegion,
    RingSize,
    PrivateHeader,
    NoRing,
    /// The file is shorter than announced, can be made shorter, has huge pages, or is no memfd.
    RegionFile,
    /// A ring that lies outside of its region or has the wrong cookie.
    RingPlace,
    EventFile,
    TooSlow,
    /// An index jumped, a buffer lies outside of its region, or a chain has no end.
    Ring,
    NoMemory,
    Closing,
}

impl<D> Handshake<D> {
    pub fn agreed_offload(&self, peer: &Text<32>) -> bool {
        self.terms.offload && *peer == Text::new(NAME_WITH_OFFLOAD)
    }

    /// An end whose handshake another process has done.
    pub fn of_connected(terms: Terms) -> Self {
        Self::with_state(terms, State::Up)
    }

    /// The next message to send, with its descriptor.
    pub fn next_message(&mut self) -> Option<(Message, Option<D>)> {
        self.outgoing.pop_front()
    }

    /// Puts back a message that could not be sent yet.
    pub fn put_back(&mut self, message: Message, descriptor: Option<D>) {
        self.outgoing.push_front((message, descriptor));
    }

    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// `is_busy`: the interface already has a peer.
    pub fn on_message(
        &mut self,
        message: Message,
        descriptor: Option<D>,
        is_busy: bool,
    ) -> Result<Step<D>, Refusal> {
        if let Message::Disconnect { reason, .. } = message {
            self.state = State::Over;
            return Ok(Step::Left(reason.to_text()));
        }
        let wants_descriptor = matches!(message, Message::AddRegion(_) | Message::AddRing(_));
        match (wants_descriptor, &descriptor) {
            (true, None) => return Err(Refusal::DescriptorMissing),
            (false, Some(_)) => return Err(Refusal::DescriptorUnwanted),
            _ => {}
        }
        match (self.state, message) {
            (State::WantsInit, Message::Init(init)) => self.on_init(&init, is_busy),
            (State::WantsOffer, Message::AddRegion(region)) => {
                self.on_region(region, descriptor.ok_or(Refusal::DescriptorMissing)?)
            }
            (State::WantsOffer, Message::AddRing(ring)) => {
                self.on_ring(ring, descriptor.ok_or(Refusal::DescriptorMissing)?)
            }
            (State::WantsOffer, Message::Connect(_)) => self.on_connect(),
            (State::WantsHello, Message::Hello(hello)) => self.on_hello(&hello),
            (State::WantsConnected, Message::Ack) => self.on_ack(),
            (State::WantsConnected, Message::Connected(_)) => self.on_connected(),
            _ => Err(Refusal::Unexpected),
        }
    }

    /// Replaces all messages to be sent by a disconnect with this reason.
    pub fn refuse(&mut self, refusal: Refusal) {
        self.state = State::Over;
        self.outgoing.clear();
        let reason = Text::new(&refusal.to_string());
        self.say(Message::Disconnect { code: 0, reason });
    }

    fn say(&mut self, message: Message) {
        self.outgoing.push_back((message, None));
    }

    fn name(&self) -> Text<32> {
        Text::new(if self.terms.offload {
            NAME_WITH_OFFLOAD
        } else {
            NAME
        })
    }

    fn with_state(terms: Terms, state: State) -> Self {
        Self {
            terms,
            state,
            outgoing: VecDeque::new(),
            offer: Offer::new(),
            acks_due: 0,
        }
    }
}

/// What an end waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    WantsInit,
    WantsOffer,
    /// A master's caller maps what was offered.
    Mapping,
    WantsHello,
    /// A slave's caller makes memory.
    Preparing,
    WantsConnected,
    Up,
    Over,
}

impl<D> Offer<D> {
    pub(crate) const fn new() -> Self {
        Self {
            regions: Vec::new(),
            s2m: Vec::new(),
            m2s: Vec::new(),
        }
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Terms")
            .field("id", &self.id)
            .field("rings", &self.rings)
            .field("log2_ring_size", &self.log2_ring_size)
            .field("offload", &self.offload)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unexpected => "not an expected message",
            Self::Version => "not memif 2.0",
            Self::Id => "no interface has this id",
            Self::Mode => "not an Ethernet interface",
            Self::Secret => "wrong secret",
            Self::Busy => "the interface is connected already",
            Self::DescriptorMissing => "a descriptor is missing",
            Self::DescriptorUnwanted => "an unexpected descriptor",
            Self::RegionIndex => "regions out of order, or too many",
            Self::RegionSize => "a region of no size, or too much memory",
            Self::RingIndex => "rings out of order, or too many",
            Self::RingRegion => "a ring in no region",
            Self::RingSize => "a ring that is too large",
            Self::PrivateHeader => "private headers are not supported",
            Self::NoRing => "no ring in one of the directions",
            Self::RegionFile => "a region is no memfd of small pages, sealed against shrinking",
            Self::RingPlace => "a ring outside of its region, or no ring",
            Self::EventFile => "not an eventfd",
            Self::TooSlow => "the handshake takes too long",
            Self::Ring => "an index or a buffer outside its bounds",
            Self::NoMemory => "no memory for rings and buffers",
            Self::Closing => "the interface goes away",
        })
    }
}

/// 2.0: the only version in use.
pub const VERSION: u16 = 0x0200;

/// Mode of an interface whose frames begin with an Ethernet header.
const MODE_ETHERNET: u8 = 0;

/// Names by which ends introduce themselves. The second one announces that descriptors' metadata are as in
/// `memif/extra.rs`: checksums left out, frames not segmented. No other program does that.
const NAME: &str = "millstream";
const NAME_WITH_OFFLOAD: &str = "millstream offload/1";

/// Regions that a slave may offer. DPDK in zero-copy mode has one for each piece of its memory; each costs a descriptor
/// and a mapping.
const REGIONS_MAX: usize = 64;

/// Bytes of all regions: what 32-bit offsets reach in one, and enough for the maximum number of rings with buffers of 2
/// KiB.
const REGIONS_BYTES_MAX: u64 = 4 << 30;

/// Binary logarithm of the number of a ring's descriptors, at most: the limit of VPP and DPDK. Indices are 16 bits and
/// have to distinguish a full ring from an empty one.
pub const LOG2_RING_SIZE_MAX: u8 = 14;

#[cfg(test)]
mod tests;
