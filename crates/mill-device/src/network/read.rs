//! Parses the kernel's messages from the view of one interface; messages about others are ignored.

use super::{LinkState, VlanOf};
use crate::card::AttachedProgram;
use mill_stack::config::Prefix;
use mill_wire::ethernet::MacAddress;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp, VlanProtocol,
    XdpAttached,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHopFlags,
    RouteType, RouteVia,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A route of the main table, as seen from one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Routing {
    pub(super) prefix: Prefix,
    pub(super) metric: u32,
    pub(super) target: Target,
}

/// Where a route leads from one interface's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The targets are on the interface's link.
    Link,
    /// A router on that link.
    Gateway(IpAddr),
    /// Through another interface, or nowhere.
    Elsewhere,
}

pub(super) fn link(message: &RouteNetlinkMessage, index: u32) -> Option<LinkState> {
    let RouteNetlinkMessage::NewLink(LinkMessage {
        header, attributes, ..
    }) = message
    else {
        return None;
    };
    if header.index != index {
        return None;
    }
    let mut link = LinkState {
        name: String::new(),
        index,
        mac: MacAddress::UNSPECIFIED,
        mtu: 0,
        is_up: header.flags.contains(LinkFlags::Up),
        is_running: header.flags.contains(LinkFlags::Running),
        kind: None,
        receive_queues: 1,
        transmit_queues: 1,
        vlan: None,
    };
    let (mut parent, mut network) = (None, None);
    for attribute in attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Address(bytes) => link.mac = mac_of(bytes).unwrap_or(link.mac),
            LinkAttribute::Mtu(mtu) => link.mtu = u16::try_from(*mtu).unwrap_or(u16::MAX),
            LinkAttribute::NumRxQueues(count) => link.receive_queues = *count,
            LinkAttribute::NumTxQueues(count) => link.transmit_queues = *count,
            LinkAttribute::Link(index) => parent = Some(*index),
            LinkAttribute::LinkInfo(infos) => {
                network = infos.iter().find_map(network_of);
                link.kind = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    link.vlan = parent
        .zip(network)
        .map(|(parent, id)| VlanOf { parent, id });
    (!link.name.is_empty()).then_some(link)
}

/// The number of the virtual network that an interface is, with tags of customers: the stack has no others.
fn network_of(info: &LinkInfo) -> Option<u16> {
    let LinkInfo::Data(InfoData::Vlan(all)) = info else {
        return None;
    };
    let is_other = |one: &InfoVlan| matches!(one, InfoVlan::Protocol(protocol) if *protocol != VlanProtocol::Ieee8021Q);
    if all.iter().any(is_other) {
        return None;
    }
    all.iter().find_map(|one| match one {
        InfoVlan::Id(id) => Some(*id),
        _ => None,
    })
}

/// The XDP program that an interface has.
pub(super) fn program(message: &RouteNetlinkMessage, index: u32) -> Option<AttachedProgram> {
    let RouteNetlinkMessage::NewLink(link) = message else {
        return None;
    };
    let attributes = link
        .attributes
        .iter()
        .filter(|_| link.header.index == index);
    let of_xdp = attributes.filter_map(|attribute| match attribute {
        LinkAttribute::Xdp(of_xdp) => Some(of_xdp),
        _ => None,
    });
    let (mut is_native, mut number) = (None, 0);
    for attribute in of_xdp.flatten() {
        match attribute {
            LinkXdp::Attached(XdpAttached::None) => {}
            LinkXdp::Attached(place) => is_native = Some(*place != XdpAttached::SocketBuffer),
            LinkXdp::ProgId(program) => number = *program,
            _ => {}
        }
    }
    is_native.map(|is_native| AttachedProgram { number, is_native })
}

/// What a message changes about an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touched {
    /// The interface itself, and with it all that depends on it.
    Link,
    Gone,
    Addresses,
    Routes,
    Neighbor(IpAddr, Option<MacAddress>),
    /// Something about neighbours that could not be parsed.
    Neighbors,
    Nothing,
}

pub(super) fn touched(message: &RouteNetlinkMessage, index: u32) -> Touched {
    match message {
        RouteNetlinkMessage::NewLink(link) if link.header.index == index => Touched::Link,
        RouteNetlinkMessage::DelLink(link) if link.header.index == index => Touched::Gone,
        // IPv4 routes are removed with their interface without a message.
        RouteNetlinkMessage::NewLink(_) | RouteNetlinkMessage::DelLink(_) => Touched::Routes,
        RouteNetlinkMessage::NewAddress(address) | RouteNetlinkMessage::DelAddress(address)
            if address.header.index == index =>
        {
            Touched::Addresses
        }
        RouteNetlinkMessage::NewRoute(route) | RouteNetlinkMessage::DelRoute(route)
            if table_of(route) == u32::from(RouteHeader::RT_TABLE_MAIN) =>
        {
            Touched::Routes
        }
        RouteNetlinkMessage::NewNeighbour(_) | RouteNetlinkMessage::DelNeighbour(_) => {
            neighbor(message, index).map_or(Touched::Nothing, |(address, mac)| {
                Touched::Neighbor(address, mac)
            })
        }
        _ => Touched::Nothing,
    }
}

/// The same for a message of this type that could not be parsed; errs on the side of reading too much.
pub(super) const fn touched_by_unknown(kind: u16) -> Touched {
    match kind {
        RTM_NEWLINK | RTM_DELLINK => Touched::Link,
        RTM_NEWADDR | RTM_DELADDR => Touched::Addresses,
        RTM_NEWROUTE | RTM_DELROUTE | RTM_NEWNEXTHOP | RTM_DELNEXTHOP => Touched::Routes,
        RTM_NEWNEIGH | RTM_DELNEIGH => Touched::Neighbors,
        _ => Touched::Nothing,
    }
}

fn table_of(route: &RouteMessage) -> u32 {
    let mut attributes = route.attributes.iter();
    let table = attributes.find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    table.unwrap_or_else(|| u32::from(route.header.table))
}

/// A usable address.
pub(super) fn address(message: &RouteNetlinkMessage, index: u32) -> Option<Prefix> {
    let RouteNetlinkMessage::NewAddress(AddressMessage {
        header, attributes, ..
    }) = message
    else {
        return None;
    };
    if header.index != index {
        return None;
    }
    let (mut local, mut of_prefix) = (None, None);
    let mut flags = u32::from(header.flags.bits());
    for attribute in attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => of_prefix = Some(*address),
            AddressAttribute::Flags(all) => flags = all.bits(),
            _ => {}
        }
    }
    let address = local.or(of_prefix)?;
    // Duplicate address detection is still running (RFC 4862 5.4), or has failed.
    let is_in_doubt = flags & AddressFlags::Tentative.bits() != 0
        && flags & u32::from(AddressHeaderFlags::Optimistic.bits()) == 0;
    if is_in_doubt || flags & AddressFlags::Dadfailed.bits() != 0 {
        return None;
    }
    // On a point-to-point link the prefix is the peer's: this end has a single address.
    let is_of_peer = local.is_some_and(|local| of_prefix.is_some_and(|peer| peer != local));
    let len = if is_of_peer {
        bits_of(address)
    } else {
        header.prefix_len
    };
    (len <= bits_of(address)).then_some(Prefix { address, len })
}

/// A neighbour with its Ethernet address, or with none (any more). `None` while the kernel is resolving it.
pub(super) fn neighbor(
    message: &RouteNetlinkMessage,
    index: u32,
) -> Option<(IpAddr, Option<MacAddress>)> {
    let (
        NeighbourMessage {
            header, attributes, ..
        },
        is_deleted,
    ) = match message {
        RouteNetlinkMessage::NewNeighbour(neighbor) => (neighbor, false),
        RouteNetlinkMessage::DelNeighbour(neighbor) => (neighbor, true),
        _ => return None,
    };
    if header.ifindex != index || header.flags.contains(NeighbourFlags::Proxy) {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for attribute in attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => {
                address = Some(IpAddr::V4(*ip));
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => {
                address = Some(IpAddr::V6(*ip));
            }
            NeighbourAttribute::LinkLayerAddress(bytes) => mac = mac_of(bytes),
            _ => {}
        }
    }
    // Multicast addresses have no neighbour entry, and entries of a bridge's table have no IP address.
    let address = address.filter(|address| !address.is_multicast())?;
    match header.state {
        _ if is_deleted => Some((address, None)),
        NeighbourState::Failed => Some((address, None)),
        NeighbourState::Incomplete | NeighbourState::None => None,
        _ => Some((address, Some(mac.filter(|mac| mac.is_unicast())?))),
    }
}

/// A route of the main table that applies to all packets, whatever their type of service and source.
pub(super) fn route(message: &RouteNetlinkMessage, index: u32) -> Option<Routing> {
    let RouteNetlinkMessage::NewRoute(route) = message else {
        return None;
    };
    let RouteMessage {
        header, attributes, ..
    } = route;
    let nowhere: IpAddr = match header.address_family {
        netlink_packet_route::AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        netlink_packet_route::AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let is_special = header.tos != 0 || header.source_prefix_length != 0;
    if is_special || header.flags.contains(RouteFlags::Cloned) {
        return None;
    }
    let mut prefix = Prefix {
        address: nowhere,
        len: header.destination_prefix_length,
    };
    let mut metric = 0;
    let mut hops = Vec::new();
    for attribute in attributes {
        match attribute {
            RouteAttribute::Destination(target) => prefix.address = ip_of(target)?,
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::Oif(of) => {
                let is_dead = RouteFlags::Dead | RouteFlags::Linkdown;
                let is_usable = !header.flags.intersects(is_dead);
                hops.push((*of, gateway_of(attributes), is_usable));
            }
            RouteAttribute::MultiPath(several) => hops.extend(several.iter().map(|hop| {
                let is_dead = RouteNextHopFlags::Dead | RouteNextHopFlags::Linkdown;
                let is_usable = !hop.flags.intersects(is_dead);
                (hop.interface_index, gateway_of(&hop.attributes), is_usable)
            })),
            _ => {}
        }
    }
    let is_valid = table_of(route) == u32::from(RouteHeader::RT_TABLE_MAIN)
        && prefix.len <= bits_of(prefix.address)
        && !matches!(
            header.kind,
            RouteType::Local | RouteType::Broadcast | RouteType::Multicast
        );
    let (had_hops, mut hops) = (!hops.is_empty(), hops.into_iter().filter(|hop| hop.2));
    let target = match hops.clone().find(|hop| hop.0 == index) {
        Some((_, Some(gateway), _)) => Target::Gateway(gateway),
        Some((_, None, _)) => Target::Link,
        // A multipath route whose next hops are all down is unusable.
        None if had_hops && hops.next().is_none() => return None,
        None => Target::Elsewhere,
    };
    is_valid.then_some(Routing {
        prefix,
        metric,
        target,
    })
}

fn gateway_of(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(gateway) => ip_of(gateway),
        // RFC 5549: IPv4 packets through a neighbour that is known by its IPv6 address.
        RouteAttribute::Via(RouteVia::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        RouteAttribute::Via(RouteVia::Inet(gateway)) => Some(IpAddr::V4(*gateway)),
        _ => None,
    })
}

const fn ip_of(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}

fn mac_of(bytes: &[u8]) -> Option<MacAddress> {
    Some(MacAddress(bytes.try_into().ok()?))
}

const fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

// Message types, from linux/rtnetlink.h.
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
