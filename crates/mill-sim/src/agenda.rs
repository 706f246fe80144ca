//! What will happen, by time; what is entered first happens first at one instant.

use crate::client::Action;
use crate::endpoint::EndpointId;
use crate::network::datagrams::Datagram;
use crate::packet::Flying;
use mill_runtime::time::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(crate) struct Agenda {
    entries: BTreeMap<(Instant, u64), Event>,
    entered: u64,
}

/// Everything that can happen by itself.
pub(crate) enum Event {
    /// The connecting end's request to connect reaches the other side.
    ConnectArrives(EndpointId),
    /// The other side's consent or refusal reaches the connecting end.
    Established(EndpointId),
    Refused(EndpointId),
    Arrives(EndpointId, Item),
    /// The receiver has read so many bytes, and the sender learns it.
    WindowOpens(EndpointId, u64),
    DatagramArrives(Datagram),
    /// The sender learns that nothing receives at this address.
    DatagramRefused(usize, SocketAddr),
    /// A scripted client acts.
    Acts(EndpointId, Action),
    /// A client that reads slowly reads a little.
    Reads(EndpointId),
    /// A call to the file system that took time is done.
    FileReady,
    /// A frame has come to the end of its sender's wire.
    FrameSwitched(Flying),
    /// A frame has come to this station.
    FrameArrives(usize, Flying),
    /// The card of this station takes frames again.
    CardHasRoom(usize),
    /// The test does something.
    Call(Box<dyn FnOnce()>),
}

/// What travels on a link, in order.
#[derive(Debug)]
pub(crate) enum Item {
    Segment(Vec<u8>),
    Fin,
    Reset,
}

impl Agenda {
    pub(crate) fn enter(&mut self, at: Instant, event: Event) {
        self.entries.insert((at, self.entered), event);
        self.entered += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next event that is due at `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Event> {
        let first = self.entries.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectArrives(end) => write!(formatter, "ConnectArrives({end:?})"),
            Self::Established(end) => write!(formatter, "Established({end:?})"),
            Self::Refused(end) => write!(formatter, "Refused({end:?})"),
            Self::Arrives(end, item) => write!(formatter, "Arrives({end:?}, {item:?})"),
            Self::WindowOpens(end, bytes) => write!(formatter, "WindowOpens({end:?}, {bytes})"),
            Self::Acts(end, action) => write!(formatter, "Acts({end:?}, {action:?})"),
            Self::Reads(end) => write!(formatter, "Reads({end:?})"),
            Self::DatagramArrives(datagram) => {
                write!(formatter, "DatagramArrives({datagram:?})")
            }
            Self::DatagramRefused(sender, target) => {
                write!(formatter, "DatagramRefused({sender}, {target})")
            }
            Self::FileReady => formatter.write_str("FileReady"),
            Self::FrameSwitched(frame) => write!(formatter, "FrameSwitched({frame:?})"),
            Self::FrameArrives(station, frame) => {
                write!(formatter, "FrameArrives({station}, {frame:?})")
            }
            Self::CardHasRoom(station) => write!(formatter, "CardHasRoom({station})"),
            Self::Call(_) => formatter.write_str("Call"),
        }
    }
}
