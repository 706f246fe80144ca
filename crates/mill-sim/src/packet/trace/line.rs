//! One line of the ladder.

use super::{Flow, Leg, Record, flow_of};
use crate::network::START;
use crate::packet::carrier::Effect;
use crate::packet::layout::{ICMP, ICMPV6, Layout, TCP, u16_at};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{Flags, TcpHeader};
use mill_wire::tcp_option::TcpOptions;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

pub(super) fn write(record: &Record, bases: &BTreeMap<Flow, u32>, text: &mut String) {
    let elapsed = record.at.since(START);
    let (millis, micros) = (elapsed.as_millis(), elapsed.subsec_micros() % 1000);
    let station = station_name(record.station);
    let _ = write!(text, "{millis:>7}.{micros:03} ms  {station}  ");
    write_packet(record, bases, text);
    if record.segments > 1 {
        let _ = write!(text, "  in {} segments", record.segments);
    }
    for (index, (leg, effect)) in record.effects.iter().enumerate() {
        let leg = match leg {
            Leg::Out => "out",
            Leg::In => "in",
        };
        let separator = if index == 0 { "  | " } else { ", " };
        let _ = write!(text, "{separator}{leg}: {}", effect_name(effect));
    }
    text.push('\n');
}

/// Stations are a, b, c, …, and behind z by number.
fn station_name(index: usize) -> String {
    u8::try_from(index)
        .ok()
        .filter(|index| *index < 26)
        .map_or_else(
            || index.to_string(),
            |index| char::from(b'a' + index).to_string(),
        )
}

fn write_packet(record: &Record, bases: &BTreeMap<Flow, u32>, text: &mut String) {
    let head = &record.head[..];
    let Some(layout) = Layout::of_head(head) else {
        let kind = match u16_at(head, 12) {
            Some(0x0806) => arp_name(head),
            _ => String::from("unknown frame"),
        };
        let _ = write!(text, "{kind}, {} bytes", record.len);
        return;
    };
    let ce = if layout.ecn(head) == 3 { "  CE" } else { "" };
    let segment = head.get(layout.transport..).unwrap_or_default();
    let parsed = TcpHeader::parse(segment).ok();
    match (layout.protocol, parsed, flow_of(head, &layout)) {
        (TCP, Some((header, header_len)), Some(flow)) if !layout.is_fragment => {
            let payload = (layout.end - layout.transport).saturating_sub(header_len);
            write_segment(&header, payload, flow, bases, text);
        }
        (protocol, ..) => {
            let (source, target) = layout
                .addresses(head)
                .map_or_else(Default::default, |(source, target)| {
                    (source.to_string(), target.to_string())
                });
            let name = match protocol {
                ICMP | ICMPV6 => icmp_name(segment, protocol),
                TCP => String::from("TCP in pieces"),
                other => format!("protocol {other}"),
            };
            let len = layout.packet_len();
            let _ = write!(text, "{source} > {target}  {name}, {len} bytes");
        }
    }
    text.push_str(ce);
}

fn write_segment(
    header: &TcpHeader,
    payload: usize,
    flow: Flow,
    bases: &BTreeMap<Flow, u32>,
    text: &mut String,
) {
    let (source, target): (SocketAddr, SocketAddr) = flow;
    let relative = |seq: SeqNumber, flow: &Flow| {
        let base = bases.get(flow).copied().unwrap_or(0);
        seq.0.wrapping_sub(base)
    };
    let seq = relative(header.seq, &flow);
    let _ = write!(
        text,
        "{source} > {target}  {:<3} seq {seq}",
        flags(header.flags)
    );
    if payload > 0 {
        let _ = write!(text, ":{}", u64::from(seq) + payload as u64);
        let _ = write!(text, " ({payload})");
    }
    let back = (target, source);
    if header.flags.has(Flags::ACK) {
        let _ = write!(text, "  ack {}", relative(header.ack, &back));
    }
    let _ = write!(text, "  win {}", header.window);
    write_options(&header.options, |seq| relative(seq, &back), text);
}

fn flags(flags: Flags) -> String {
    let names = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ACK, 'A'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
    ];
    let set = names.into_iter().filter(|(flag, _)| flags.has(*flag));
    set.map(|(_, name)| name).collect()
}

fn write_options(options: &TcpOptions, relative: impl Fn(SeqNumber) -> u32, text: &mut String) {
    let mut parts = Vec::new();
    if let Some(mss) = options.mss {
        parts.push(format!("mss {mss}"));
    }
    if options.sack_permitted {
        parts.push(String::from("sackok"));
    }
    if let Some(times) = options.timestamps {
        parts.push(format!("ts {}:{}", times.value, times.echo));
    }
    if let Some(shift) = options.window_scale {
        parts.push(format!("ws {shift}"));
    }
    for (start, end) in options.sack.as_slice() {
        parts.push(format!("sack {}:{}", relative(*start), relative(*end)));
    }
    if let Some(cookie) = options.fast_open {
        parts.push(format!("tfo {} bytes", cookie.as_slice().len()));
    }
    if !parts.is_empty() {
        let _ = write!(text, "  <{}>", parts.join(" "));
    }
}

fn arp_name(head: &[u8]) -> String {
    match u16_at(head, 20) {
        Some(1) => String::from("ARP request"),
        Some(2) => String::from("ARP reply"),
        _ => String::from("ARP"),
    }
}

fn icmp_name(message: &[u8], protocol: u8) -> String {
    let kind = message.first().copied().unwrap_or(0);
    let code = message.get(1).copied().unwrap_or(0);
    // Both have it in the last two of the eight bytes of their header.
    let mtu = u16_at(message, 6).unwrap_or(0);
    match (protocol, kind, code) {
        (ICMP, 3, 4) | (ICMPV6, 2, _) => format!("ICMP packet too big, MTU {mtu}"),
        (ICMP, 3, _) | (ICMPV6, 1, _) => String::from("ICMP unreachable"),
        (ICMP, 8, _) | (ICMPV6, 128, _) => String::from("ICMP echo request"),
        (ICMP, 0, _) | (ICMPV6, 129, _) => String::from("ICMP echo reply"),
        (ICMPV6, 135, _) => String::from("NDP neighbour solicitation"),
        (ICMPV6, 136, _) => String::from("NDP neighbour advertisement"),
        _ => format!("ICMP type {kind} code {code}"),
    }
}

fn effect_name(effect: &Effect) -> String {
    match effect {
        Effect::Lost => String::from("lost"),
        Effect::Cut => String::from("lost, the wire is cut"),
        Effect::QueueFull => String::from("lost, the queue is full"),
        Effect::TooBig(mtu) => format!("lost, larger than {mtu}"),
        Effect::Marked => String::from("marked"),
        Effect::Corrupted => String::from("corrupted"),
        Effect::Duplicated => String::from("duplicated"),
        Effect::Overtaken(later) => format!("{later:?} late"),
        Effect::Overrun => String::from("lost, the ring is full"),
    }
}
