//! Datagrams arrive: of UDP (RFC 768), and those that come in fragments.

use crate::drop_reason::DropReason;
use crate::fragment::{Datagram, Fragment, Pushed, Refusal};
use crate::host::Host;
use crate::icmp::Problem;
use crate::link::{FrameId, Link, Received, ReceivedChecksum};
use crate::queue::SendQueue;
use crate::receive::{Origin, Packet, Taken, reason_of};
use crate::udp::Delivered;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use mill_wire::checksum::{Sum, is_partial};
use mill_wire::icmpv6::{CODE_HEADER_FIELD, CODE_INCOMPLETE_CHAIN};
use mill_wire::ipv4::{self, Ipv4Header};
use mill_wire::ipv6::{self, Ipv6Header};
use mill_wire::protocol::Protocol;
use mill_wire::udp::{self, UdpHeader};

impl<Q: SendQueue> Host<Q> {
    /// `whole` is the packet, to be quoted in an error to its sender if it is not taken.
    pub(super) fn on_udp(
        &mut self,
        packet: &Packet,
        origin: Origin,
        body: &[u8],
        whole: &[u8],
    ) -> Result<(), DropReason> {
        let (header, at) = UdpHeader::parse(body).map_err(reason_of)?;
        let datagram = body.get(..usize::from(header.len)).unwrap_or_default();
        if !is_checksum_right(packet, datagram) {
            return Err(DropReason::Checksum);
        }
        let delivered = self.datagrams.udp.on_datagram(
            SocketAddr::new(packet.source, header.source),
            SocketAddr::new(packet.target, header.target),
            packet.ecn,
            datagram.get(at..).unwrap_or_default(),
        );
        match delivered {
            Delivered::Queued => Ok(()),
            Delivered::Full => Err(DropReason::NoMemory),
            Delivered::NoSocket => {
                self.complain_about(Problem::PortUnreachable, whole, origin.to_group);
                Err(DropReason::NoListener)
            }
        }
    }

    /// Takes a fragment; a datagram that it makes whole is taken like a packet that came at once. No frame is held: what
    /// readers get of it is copied.
    pub(super) fn on_fragment<L: Link>(
        &mut self,
        link: &mut L,
        received: &Received,
        at: usize,
        origin: Origin,
    ) {
        let frame = link.frame(received.id);
        let packet = frame.get(at..).unwrap_or_default();
        let pushed = match Fragment::parse(packet) {
            Ok(fragment) => self
                .check_addresses(fragment.source, fragment.target)
                .map(|()| self.datagrams.fragments.push(&fragment, self.now)),
            Err(refusal) => {
                self.complain_of_fragment(refusal, packet, origin);
                Err(DropReason::Fragment)
            }
        };
        let taken = match pushed {
            Ok(Pushed::Waiting) => Ok(()),
            Ok(Pushed::Refused) => Err(DropReason::Fragment),
            Ok(Pushed::Complete(datagram)) => self.on_whole(link, origin, &datagram),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = taken {
            self.drop_frame(reason);
        }
    }

    fn on_whole<L: Link>(
        &mut self,
        link: &mut L,
        origin: Origin,
        datagram: &Datagram,
    ) -> Result<(), DropReason> {
        let bytes = packet_of(datagram).ok_or(DropReason::Fragment)?;
        let received = Received {
            id: NO_FRAME,
            checksum: ReceivedChecksum::Unverified,
            merged: 1,
        };
        match self.on_ip(&bytes, 0, &received, origin)? {
            Taken::Done => Ok(()),
            Taken::StrangeError => Err(DropReason::NotForUs),
            Taken::Segment(packet) => {
                let segment = bytes.get(packet.body.clone()).unwrap_or_default();
                self.on_tcp_datagram(link, &packet, segment);
                Ok(())
            }
            // A reassembled datagram was itself a fragment: no sender means that (RFC 8200 4.5).
            Taken::Fragment => Err(DropReason::Fragment),
        }
    }

    /// RFC 8200 4.5, RFC 7112 5: in IPv6 some fragments are answered.
    fn complain_of_fragment(&mut self, refusal: Refusal, packet: &[u8], origin: Origin) {
        if packet.first().is_none_or(|first| first >> 4 != 6) {
            return;
        }
        let (code, pointer) = match refusal {
            Refusal::Length { pointer } => (CODE_HEADER_FIELD, pointer),
            Refusal::Tiny => (CODE_INCOMPLETE_CHAIN, 0),
            Refusal::Extension(refused) => {
                return self.complain_of_headers(refused, packet, origin);
            }
            Refusal::Malformed(_) | Refusal::NoFragment => return,
        };
        let problem = Problem::Parameter {
            code,
            pointer,
            also_multicast: false,
        };
        self.complain_about(problem, packet, origin.to_group);
    }
}

/// A reassembled datagram as the packet that it would have been; `None` if there can be no such packet.
fn packet_of(datagram: &Datagram) -> Option<Vec<u8>> {
    let len = datagram.payload.len();
    let mut bytes = match (datagram.source, datagram.target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let header = Ipv4Header {
                ecn: datagram.ecn,
                total_len: u16::try_from(ipv4::HEADER_BYTES + len).ok()?,
                protocol: datagram.protocol,
                source,
                target,
                ..Ipv4Header::default()
            };
            let mut bytes = vec![0; ipv4::HEADER_BYTES];
            header.emit(&mut bytes);
            bytes
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            let header = Ipv6Header {
                ecn: datagram.ecn,
                payload_len: u16::try_from(len).ok()?,
                next_header: datagram.protocol,
                source,
                target,
                ..Ipv6Header::default()
            };
            let mut bytes = vec![0; ipv6::HEADER_BYTES];
            header.emit(&mut bytes);
            bytes
        }
        _ => return None,
    };
    bytes.extend_from_slice(&datagram.payload);
    Some(bytes)
}

fn is_checksum_right(packet: &Packet, datagram: &[u8]) -> bool {
    let pseudo_header = Sum::of_pseudo_header(
        packet.source,
        packet.target,
        Protocol::UDP.0,
        datagram.len(),
    );
    let is_verified = match packet.checksum {
        ReceivedChecksum::Verified => true,
        ReceivedChecksum::Unverified => false,
        ReceivedChecksum::MaybePartial => is_partial(pseudo_header, datagram, udp::CHECKSUM_OFFSET),
    };
    is_verified || udp::verify(pseudo_header, datagram, packet.source.is_ipv6())
}

/// What is put together lies in no frame, and is never held.
const NO_FRAME: FrameId = FrameId(u32::MAX);
