//! Why a frame was dropped.

use mill_tcp::arrived::SegmentDrop;

/// The reasons, in the order in which a frame meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Shorter than its headers say, or an invalid header.
    Malformed,
    /// Sent to another machine.
    NotForUs,
    /// An EtherType or protocol that is not implemented.
    UnknownProtocol,
    /// A checksum that does not match.
    Checksum,
    /// From an address that no peer can have: ours, broadcast, multicast, loopback.
    BadSource,
    /// A fragment that overlaps another, or is too many, too late or too small.
    Fragment,
    /// No socket or listener at this port.
    NoListener,
    /// The listener's queue of accepted connections, or of half-open ones without cookies, is full.
    ListenQueueFull,
    /// No memory for one more connection.
    NoMemory,
    /// TCP rejected it.
    Segment(SegmentDrop),
    /// No room in the device, or in its queue.
    DeviceFull,
    /// No answer to ARP or neighbour solicitation.
    Unresolved,
    /// No route to the target.
    NoRoute,
    /// The limit of answers per second is used up (ICMP errors, echo replies, resets).
    RateLimit,
    /// Fragments of a datagram whose others did not arrive in time; each datagram counts once.
    FragmentTimeout,
    /// A segment of an address that the application has blocked.
    Blocked,
}
