//! UDP sockets (RFC 768): batches in and out, with the fields of the IP header beside each datagram.

use crate::engine::Engine;
use crate::tasks::TaskId;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use core::task::Poll;

/// An engine that has UDP sockets as well.
pub trait DatagramEngine: Engine {
    type Datagrams: DatagramSocket;

    /// Opens a socket, whose changes are reported to `task`. A failure is [`DatagramError::Other`] with the error
    /// numbers of [`Engine::connect`].
    fn open_datagrams(
        &self,
        options: &DatagramOptions,
        task: TaskId,
    ) -> Result<Self::Datagrams, DatagramError>;
}

/// The options of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramOptions {
    /// Where datagrams are received. Port 0 lets the system choose; the unspecified address is every address of its
    /// family (a socket of IPv6 receives no IPv4).
    pub local: SocketAddr,
    /// The only address that is sent to and received from. Such a socket learns when the peer's host or a router refuses
    /// what it sent (RFC 1122 4.1.3.3).
    pub remote: Option<SocketAddr>,
    /// Bytes that may wait to be received; what comes beyond is dropped and counted. `None` leaves it to the system. An
    /// engine may count its own memory for each datagram as well.
    pub receive_buffer_bytes: Option<usize>,
}

impl DatagramOptions {
    pub const fn new(local: SocketAddr) -> Self {
        Self {
            local,
            remote: None,
            receive_buffer_bytes: None,
        }
    }
}

/// A UDP socket, a handle; dropping it closes the socket, and what was not received is lost.
///
/// Neither method waits: `Poll::Pending` means that the engine will report the socket's task when the call may
/// succeed.
pub trait DatagramSocket: 'static {
    /// Lends at most `count_max` datagrams to `take`, in the order in which they came; returns how many, at least one. An
    /// engine may lend fewer than there are. `take` must not use a socket of datagrams.
    ///
    /// An error concerns datagrams sent before and is returned once; afterwards the socket can be used again.
    fn poll_receive(
        &self,
        count_max: usize,
        take: impl FnMut(ReceivedDatagram<'_>),
    ) -> Poll<Result<usize, DatagramError>>;

    /// Sends the datagrams of `batch` in order, as many as there is room for; returns how many, at least one if the batch
    /// has any.
    ///
    /// After an error none of them was sent. [`DatagramError::TooLarge`] and [`DatagramError::Other`] are about the first
    /// one, which never can be sent; the others about datagrams that were sent before, and are given once.
    fn poll_send(&self, batch: &[OutgoingDatagram<'_>]) -> Poll<Result<usize, DatagramError>>;

    /// Where it receives, with the port that was chosen.
    fn local(&self) -> SocketAddr;

    /// Hands the socket to another task, as [`crate::stream::Stream::set_task`] does; the next
    /// [`crate::engine::Engine::poll`] reports that task, so that it handles what arrived before.
    fn set_task(&self, task: TaskId);

    fn counters(&self) -> DatagramCounters;

    /// Waits as [`DatagramSocket::poll_receive`].
    fn receive(
        &self,
        count_max: usize,
        take: impl FnMut(ReceivedDatagram<'_>),
    ) -> impl Future<Output = Result<usize, DatagramError>> {
        let take = RefCell::new(take);
        poll_fn(move |_| self.poll_receive(count_max, |datagram| (take.borrow_mut())(datagram)))
    }

    /// Waits as [`DatagramSocket::poll_send`].
    fn send(
        &self,
        batch: &[OutgoingDatagram<'_>],
    ) -> impl Future<Output = Result<usize, DatagramError>> {
        poll_fn(move |_| self.poll_send(batch))
    }
}

/// What arrived: one datagram, or several of one sender that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram<'a> {
    pub bytes: &'a [u8],
    pub remote: SocketAddr,
    /// The local address that it was sent to, also if the socket receives at all of them.
    pub local: SocketAddr,
    pub ecn: Ecn,
    /// `bytes` are datagrams of this length each, the last one may be shorter; `None` is one datagram.
    pub segment_bytes: Option<NonZeroU16>,
}

impl<'a> ReceivedDatagram<'a> {
    /// Each datagram by itself.
    pub fn segments(&self) -> impl Iterator<Item = &'a [u8]> {
        Segments {
            rest: Some(self.bytes),
            len: self.segment_bytes,
        }
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram<'a> {
    pub bytes: &'a [u8],
    /// Of a socket with a peer it is that peer.
    pub remote: SocketAddr,
    /// The local source address; `None` leaves it to the socket, and then to the route.
    pub local: Option<IpAddr>,
    pub ecn: Ecn,
    /// Sends `bytes` as datagrams of this length each, the last one may be shorter; at most [`SEGMENTS_MAX`], and together no more
    /// than one datagram carries. Where the
    /// device can cut them this costs hardly more than one datagram.
    pub segment_bytes: Option<NonZeroU16>,
}

impl<'a> OutgoingDatagram<'a> {
    pub const fn new(bytes: &'a [u8], remote: SocketAddr) -> Self {
        Self {
            bytes,
            remote,
            local: None,
            ecn: Ecn::NotCapable,
            segment_bytes: None,
        }
    }

    /// Each datagram by itself; an empty one is one datagram.
    pub fn segments(&self) -> impl Iterator<Item = &'a [u8]> {
        Segments {
            rest: Some(self.bytes),
            len: self.segment_bytes,
        }
    }

    /// Whether it has more bytes than one datagram carries, or more segments than [`SEGMENTS_MAX`].
    pub fn is_too_large(&self) -> bool {
        self.bytes.len() > payload_bytes_max(self.remote.ip())
            || self.segments().take(SEGMENTS_MAX + 1).count() > SEGMENTS_MAX
    }
}

/// Bytes cut into pieces of equal length.
struct Segments<'a> {
    rest: Option<&'a [u8]>,
    len: Option<NonZeroU16>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let len = self.len.map_or(rest.len(), |len| usize::from(len.get()));
        let (segment, behind) = rest.split_at(len.min(rest.len()));
        self.rest = (!behind.is_empty()).then_some(behind);
        Some(segment)
    }
}

/// Explicit congestion notification (RFC 3168 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not react to it.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// CE: a router's queue was about to overflow.
    CongestionExperienced,
}

impl Ecn {
    /// The two low bits of IPv4's type of service and of IPv6's traffic class.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0b00,
            Self::Capable1 => 0b01,
            Self::Capable0 => 0b10,
            Self::CongestionExperienced => 0b11,
        }
    }

    /// Reads the two low bits of `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }
}

/// Why datagrams are not sent, or were not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramError {
    /// More bytes than a datagram carries, or more segments than [`SEGMENTS_MAX`].
    TooLarge,
    /// Nothing receives at the peer's port (ICMP: port unreachable).
    Refused,
    /// No route leads there, according to this host or a router.
    Unreachable,
    /// Any other error; the operating system's error number.
    Other(i32),
}

/// What a socket has done since it was opened. Each segment counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounters {
    pub received: u64,
    pub sent: u64,
    /// Datagrams that arrived and for which the receive buffer had no room.
    pub dropped: u64,
}

/// Segments of one [`OutgoingDatagram`] (`UDP_MAX_SEGMENTS` of Linux).
pub const SEGMENTS_MAX: usize = 64;

/// Bytes that a datagram carries at most: what the length fields of UDP and IPv4 leave (RFC 768, RFC 791 3.1).
pub const fn payload_bytes_max(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(_) => 65_535 - 20 - 8,
        IpAddr::V6(_) => 65_535 - 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn bytes_are_cut_into_segments_of_which_the_last_may_be_shorter() {
        let check = |len: usize, segment_bytes, expected: &[usize]| {
            let bytes = vec![7; len];
            let outgoing = OutgoingDatagram {
                segment_bytes: NonZeroU16::new(segment_bytes),
                ..OutgoingDatagram::new(&bytes, "10.0.0.1:1".parse().unwrap())
            };
            let lens: Vec<usize> = outgoing.segments().map(<[u8]>::len).collect();
            assert_eq!(lens, expected, "{len} by {segment_bytes}");
        };
        check(0, 0, &[0]);
        check(0, 10, &[0]);
        check(9, 0, &[9]);
        check(9, 10, &[9]);
        check(20, 10, &[10, 10]);
        check(21, 10, &[10, 10, 1]);
    }

    #[test]
    fn the_largest_datagram_and_the_most_segments_are_not_too_large() {
        let check = |remote: &str, len: usize, segment_bytes, expected| {
            let bytes = vec![7; len];
            let outgoing = OutgoingDatagram {
                segment_bytes: NonZeroU16::new(segment_bytes),
                ..OutgoingDatagram::new(&bytes, remote.parse().unwrap())
            };
            assert_eq!(
                outgoing.is_too_large(),
                expected,
                "{len} by {segment_bytes}"
            );
        };
        check("10.0.0.1:1", 65_507, 0, false);
        check("10.0.0.1:1", 65_508, 0, true);
        check("[::1]:1", 65_527, 0, false);
        check("[::1]:1", 65_528, 0, true);
        check("10.0.0.1:1", 64_000, 1000, false);
        check("10.0.0.1:1", 64_001, 1000, true);
    }

    #[test]
    fn ecn_bits_come_back_as_they_went() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
            assert_eq!(Ecn::from_bits(0b1010_1000 | bits).bits(), bits);
        }
    }
}
