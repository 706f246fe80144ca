//! What every frame that a host sends must be: the simulated card refuses anything that a capture would show in red.

use super::layout::{ETHERNET_BYTES, Layout, TCP, UDP, u16_at};
use mill_stack::link::{LinkProperties, Offload};
use mill_wire::tcp::TcpHeader;

/// Says what is wrong with a frame that a host hands to its link.
pub(super) fn scrutinise(
    frame: &[u8],
    offload: Offload,
    properties: &LinkProperties,
) -> Result<(), &'static str> {
    if frame.get(6..12) != Some(&properties.address[..]) {
        return Err("the source is not the link's address");
    }
    let ethertype = u16_at(frame, 12).ok_or("shorter than an Ethernet header")?;
    let Some(layout) = Layout::of(frame) else {
        let is_ip = matches!(ethertype, 0x0800 | 0x86dd);
        return if is_ip {
            Err("IP that does not fit its frame")
        } else {
            Ok(())
        };
    };
    if !layout.is_ip_sum_right(frame) {
        return Err("IPv4 header checksum");
    }
    if frame.len() > layout.end && layout.end > 60 {
        return Err("bytes behind the IP packet");
    }
    check_size(frame, offload, properties, &layout)?;
    check_sum(frame, offload, properties, &layout)?;
    if layout.protocol == TCP && !layout.is_fragment {
        let segment = frame.get(layout.transport..layout.end).unwrap_or_default();
        TcpHeader::parse(segment).map_err(|_| "a TCP header that makes no sense")?;
    }
    Ok(())
}

fn check_size(
    frame: &[u8],
    offload: Offload,
    properties: &LinkProperties,
    layout: &Layout,
) -> Result<(), &'static str> {
    let mtu = usize::from(properties.mtu);
    let Some(segmentation) = offload.segmentation else {
        return if layout.packet_len() > mtu {
            Err("larger than the MTU")
        } else {
            Ok(())
        };
    };
    let header_len = usize::from(segmentation.header_len);
    let words = frame.get(layout.transport + 12).map_or(0, |byte| byte >> 4);
    if layout.protocol != TCP || segmentation.is_ipv6 != layout.is_ipv6 {
        return Err("segmentation of something else than it says");
    }
    if header_len != layout.transport + usize::from(words) * 4 {
        return Err("segmentation behind another header than TCP's");
    }
    if header_len - ETHERNET_BYTES + usize::from(segmentation.mss) > mtu || segmentation.mss == 0 {
        return Err("segmentation into pieces that do not fit the MTU");
    }
    if layout.packet_len() > properties.segment_bytes_max as usize {
        return Err("more than the device takes");
    }
    if offload.checksum.is_none() {
        return Err("segmentation without a checksum to complete");
    }
    Ok(())
}

fn check_sum(
    frame: &[u8],
    offload: Offload,
    properties: &LinkProperties,
    layout: &Layout,
) -> Result<(), &'static str> {
    let Some(partial) = offload.checksum else {
        return if layout.is_transport_sum_right(frame) {
            Ok(())
        } else {
            Err("transport checksum")
        };
    };
    if !properties.completes_checksums || !matches!(layout.protocol, TCP | UDP) {
        return Err("a checksum is left to a device that does not complete it");
    }
    let start = usize::from(partial.start);
    let at = start + usize::from(partial.offset);
    if start != layout.transport || Some(at) != layout.checksum_at() {
        return Err("a checksum to complete at the wrong place");
    }
    if u16_at(frame, at) != Some(layout.pseudo_sum(frame)) {
        return Err("not the pseudo header's sum");
    }
    Ok(())
}
