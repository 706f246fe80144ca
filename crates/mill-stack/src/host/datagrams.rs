//! ICMP, UDP and fragments, and their packets that wait to be sent.

use crate::config::HostConfig;
use crate::drop_reason::DropReason;
use crate::fragment::Reassembler;
use crate::host::{Host, Way};
use crate::icmp::{Icmp, Offending, Problem};
use crate::link::{Link, Offload};
use crate::outbox::{Offered, Outbox};
use crate::path_mtu::PathMtus;
use crate::queue::SendQueue;
use crate::secrets::Secrets;
use crate::udp::{
    BindError, UdpCounters, UdpDatagram, UdpError, UdpOptions, UdpSockets, UdpWriteError,
};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use mill_wire::ethernet::{EtherType, EthernetHeader, HEADER_BYTES};
use mill_wire::ipv4::Ecn;

/// The parts of a host that know no connections.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) icmp: Icmp,
    pub(crate) fragments: Reassembler,
    pub(crate) outbox: Outbox,
    pub(crate) udp: UdpSockets,
    /// The path MTU for datagrams, from ICMP errors about datagrams. The host cannot tell whether such a datagram was
    /// ever sent, so connections do not use it (RFC 5927 7.2).
    pub(crate) paths: PathMtus,
}

impl Datagrams {
    pub(crate) fn new(config: &HostConfig) -> Self {
        let seed = Secrets::seed(config.secret);
        Self {
            icmp: Icmp::new(config.limits.answers_per_second, seed),
            fragments: Reassembler::new(config.limits.fragment_bytes_max),
            outbox: Outbox::new(seed.rotate_left(16)),
            udp: UdpSockets::new(config.ephemeral_ports.clone(), seed.rotate_left(32)),
            // What the link carries is looked up where it is known.
            paths: PathMtus::new(u16::MAX, config.limits.paths_max as usize),
        }
    }
}

/// Datagrams of applications.
impl<Q: SendQueue> Host<Q> {
    /// Opens a UDP socket; its address, with the port that was chosen, names it.
    pub fn bind_udp(
        &mut self,
        address: SocketAddr,
        options: UdpOptions,
    ) -> Result<SocketAddr, BindError> {
        self.datagrams.udp.bind(address, options)
    }

    /// Closes a UDP socket; what was not read is gone.
    pub fn close_udp(&mut self, socket: SocketAddr) {
        self.datagrams.udp.close(socket);
    }

    /// The oldest datagram that has arrived at a UDP socket.
    pub fn read_udp(&mut self, socket: SocketAddr) -> Option<UdpDatagram> {
        self.datagrams.udp.read(socket)
    }

    /// The error of a datagram sent before; returned once.
    pub fn take_udp_error(&mut self, socket: SocketAddr) -> Option<UdpError> {
        self.datagrams.udp.take_error(socket)
    }

    pub fn udp_counters(&self, socket: SocketAddr) -> UdpCounters {
        self.datagrams.udp.counters(socket)
    }

    /// Takes a datagram's memory for the next ones.
    pub fn recycle_udp(&mut self, datagram: UdpDatagram) {
        self.datagrams.udp.recycle(datagram.payload);
    }

    /// Appends the UDP sockets that have something to read, each once until it was read empty.
    pub fn take_readable_udp(&mut self, into: &mut Vec<SocketAddr>) {
        self.datagrams.udp.take_readable(into);
    }

    /// Whether that many datagrams with that many bytes together would be taken by [`Host::write_udp`].
    pub fn has_room_for_udp(&self, count: usize, bytes: usize) -> bool {
        self.datagrams.outbox.has_room(count, bytes)
    }

    /// Sends a datagram of a socket; it leaves with the next `transmit`. Its source is `local`, or where that is
    /// unspecified the address that suits the target.
    pub fn write_udp(
        &mut self,
        socket: SocketAddr,
        local: IpAddr,
        target: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
    ) -> Result<(), UdpWriteError> {
        let Some(hop) = self.next_hops.routes.route(target.ip()) else {
            self.drop_frame(DropReason::NoRoute);
            return Err(UdpWriteError::NoRoute);
        };
        let address = if local.is_unspecified() {
            hop.source
        } else {
            local
        };
        if address.is_ipv4() != target.is_ipv4() {
            return Err(UdpWriteError::NoRoute);
        }
        let source = SocketAddr::new(address, socket.port());
        let paths = [&self.next_hops.paths, &self.datagrams.paths];
        let [of_all, of_datagrams] = paths.map(|paths| paths.path_mtu(target.ip(), self.now));
        let mtu = of_all.min(of_datagrams);
        let Datagrams { udp, outbox, .. } = &mut self.datagrams;
        UdpSockets::write(source, target, ecn, payload, mtu, outbox)?;
        udp.count_sent(socket);
        Ok(())
    }
}

impl<Q: SendQueue> Host<Q> {
    /// Sends an error about a packet to its sender, if one may be sent.
    pub(crate) fn complain_about(&mut self, problem: Problem, packet: &[u8], to_group: bool) {
        let offending = Offending { packet, to_group };
        let Datagrams { icmp, outbox, .. } = &mut self.datagrams;
        icmp.send_error(
            problem,
            &offending,
            &self.next_hops.routes,
            outbox,
            self.now,
        );
    }

    /// RFC 1122 3.3.2, RFC 8200 4.5: datagrams that are not whole in time.
    pub(crate) fn expire_fragments(&mut self) {
        let Datagrams {
            icmp,
            fragments,
            outbox,
            ..
        } = &mut self.datagrams;
        let (routes, now) = (&self.next_hops.routes, self.now);
        let count = fragments.expire(now, |packet| {
            let offending = Offending {
                packet,
                to_group: false,
            };
            icmp.send_error(Problem::ReassemblyTimeout, &offending, routes, outbox, now);
        });
        for _ in 0..count {
            self.drop_frame(DropReason::FragmentTimeout);
        }
    }

    /// Sends packets whose next hop is known; returns whether the link had room for all of them.
    pub(crate) fn transmit_datagrams<L: Link>(&mut self, link: &mut L) -> bool {
        if self.datagrams.outbox.is_empty() {
            return true;
        }
        let (next_hops, counters, now) = (&mut self.next_hops, &mut self.counters, self.now);
        let is_full = self.datagrams.outbox.transmit(|target, packet| {
            let target_mac = match next_hops.way(target, now) {
                Way::To(mac) => mac,
                Way::Asking(next_hop) => return Offered::Unresolved(next_hop),
                Way::Failed => {
                    counters.count_drop(DropReason::Unresolved);
                    return Offered::Lost;
                }
                Way::NoRoute => {
                    counters.count_drop(DropReason::NoRoute);
                    return Offered::Lost;
                }
            };
            let len = HEADER_BYTES + packet.len();
            let Some(room) = link.reserve(len) else {
                return Offered::Full;
            };
            let header = EthernetHeader {
                target: target_mac,
                source: next_hops.mac,
                ether_type: match target {
                    IpAddr::V4(_) => EtherType::IPV4,
                    IpAddr::V6(_) => EtherType::IPV6,
                },
            };
            header.emit(room);
            if let Some(bytes) = room.get_mut(HEADER_BYTES..len) {
                bytes.copy_from_slice(packet);
            }
            link.transmit(len, Offload::default());
            counters.frames_out += 1;
            Offered::Sent
        });
        !is_full
    }
}
