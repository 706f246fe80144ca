//! ICMP and neighbour discovery arrive (RFC 1122 3.2.2, RFC 4443, RFC 4861).

use crate::drop_reason::DropReason;
use crate::host::Host;
use crate::icmp::{FlowError, FlowErrorKind, Message, Received};
use crate::neighbor::receive::Envelope;
use crate::queue::SendQueue;
use crate::receive::{Origin, Packet, Taken};
use crate::udp::UdpError;
use core::net::{IpAddr, SocketAddr};
use mill_wire::ndp::Ndp;
use mill_wire::protocol::Protocol;

impl<Q: SendQueue> Host<Q> {
    pub(super) fn on_icmp(
        &mut self,
        packet: &Packet,
        origin: Origin,
        body: &[u8],
    ) -> Result<Taken, DropReason> {
        // Only neighbour solicitations come from the unspecified address.
        let is_ndp = body.first().is_some_and(|kind| Ndp::is_kind(*kind));
        if packet.source.is_unspecified() && !is_ndp {
            return Err(DropReason::BadSource);
        }
        let message = Message {
            source: packet.source,
            target: packet.target,
            bytes: body,
        };
        let mtu = self.next_hops.paths.path_mtu(packet.source, self.now);
        let datagrams = &mut self.datagrams;
        let received = datagrams.icmp.on_message(
            &message,
            &self.next_hops.routes,
            mtu,
            &mut datagrams.outbox,
            self.now,
        );
        match received {
            Received::Answered => Ok(Taken::Done),
            Received::Dropped(reason) => Err(reason),
            Received::Error(error) => self.on_flow_error(&error),
            Received::Ndp(message) => {
                self.on_ndp(packet, origin, &message)?;
                Ok(Taken::Done)
            }
        }
    }

    fn on_ndp(&mut self, packet: &Packet, origin: Origin, message: &Ndp) -> Result<(), DropReason> {
        let (IpAddr::V6(source), IpAddr::V6(target)) = (packet.source, packet.target) else {
            return Err(DropReason::UnknownProtocol);
        };
        let envelope = Envelope {
            mac: origin.mac,
            source,
            target,
            hop_limit: packet.hop_limit,
        };
        let neighbors = &mut self.next_hops.neighbors;
        if !neighbors.on_ndp(&envelope, message, self.now) {
            return Err(DropReason::Malformed);
        }
        self.wake_parked();
        Ok(())
    }

    /// An ICMP error about a packet of ours. It is believed only if it quotes data that only hosts on the path can
    /// know (RFC 5927 4).
    fn on_flow_error(&mut self, error: &FlowError) -> Result<Taken, DropReason> {
        let index = self.connection_of(&error.flow);
        if error.protocol == Protocol::TCP && index.is_none() {
            return Ok(Taken::StrangeError);
        }
        let is_believed = match (error.protocol, error.kind) {
            (Protocol::TCP, FlowErrorKind::PacketTooBig { mtu }) => {
                self.on_too_big(&error.flow, error.seq, mtu)
            }
            (Protocol::TCP, FlowErrorKind::Unreachable { hard }) => {
                self.on_unreachable(&error.flow, error.seq, hard)
            }
            (Protocol::UDP, kind) => self.on_udp_error(error, kind),
            _ => false,
        };
        if is_believed {
            Ok(Taken::Done)
        } else {
            Err(DropReason::NotForUs)
        }
    }

    /// An error about a datagram is reported to its sender, which decides about losses (RFC 1122 4.1.3.3). The path MTU is
    /// kept for datagrams only: an attacker that knows a port of ours could slow down connections otherwise.
    fn on_udp_error(&mut self, error: &FlowError, kind: FlowErrorKind) -> bool {
        let local = SocketAddr::new(error.flow.local, error.flow.local_port);
        if !self.datagrams.udp.has_socket_for(local) {
            return false;
        }
        let remote = SocketAddr::new(error.flow.remote, error.flow.remote_port);
        match kind {
            FlowErrorKind::PacketTooBig { mtu } => {
                let paths = &mut self.datagrams.paths;
                paths.on_packet_too_big(error.flow.remote, mtu, self.now);
            }
            FlowErrorKind::Unreachable { hard } => {
                let met = if hard {
                    UdpError::Refused
                } else {
                    UdpError::Unreachable
                };
                self.datagrams.udp.on_error(local, remote, met);
            }
        }
        true
    }
}
