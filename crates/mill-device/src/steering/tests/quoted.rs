//! ICMP errors go where an answer to the packet that they quote would go.

use super::bench::{Bench, Fate, of_tcp, of_udp};
use super::frames::{Frame, tcp, udp};
use super::kernel_flows::end_kernel_flows;
use super::{V4, V6};
use std::io::Write;
use std::net::{IpAddr, TcpListener, TcpStream};

/// A router's error about `packet`, of which it quotes `quoted_len` bytes from the IP header on.
fn error(router: &str, kind: [u8; 2], packet: Frame, quoted_len: usize) -> Vec<u8> {
    let (protocol, host) = match router.parse().unwrap() {
        IpAddr::V4(address) => (1, address.to_string()),
        IpAddr::V6(address) => (58, format!("[{address}]")),
    };
    let target = packet.source.to_string();
    let envelope = Frame {
        protocol,
        ..tcp(&format!("{host}:0"), &target)
    };
    let header_len = envelope.link_len() + envelope.header_len();
    let mut bytes = envelope.bytes()[..header_len].to_vec();
    bytes.extend([kind[0], kind[1], 0, 0, 0, 0, 5, 0x78]);
    let whole = packet.bytes();
    bytes.extend(&whole[packet.link_len()..][..quoted_len]);
    bytes
}

/// An error that quotes a packet of the stack in full.
fn about(packet: Frame) -> Vec<u8> {
    match packet.source.ip() {
        IpAddr::V4(_) => error("198.51.100.1", [3, 4], packet, 28),
        IpAddr::V6(_) => error("2001:db8:1::1", [2, 0], packet, 48),
    }
}

#[test]
fn an_error_about_a_packet_of_a_served_port_goes_to_the_socket() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:443"]) else {
        return;
    };
    for (source, target, expected) in [
        ("192.0.2.1:80", V4, Fate::Ours),
        ("192.0.2.1:81", V4, Fate::Passed),
        ("192.0.2.2:80", V4, Fate::Passed),
        ("[2001:db8::1]:443", V6, Fate::Ours),
        ("[2001:db8::1]:442", V6, Fate::Passed),
        ("[2001:db8::2]:443", V6, Fate::Passed),
    ] {
        let packet = tcp(source, target);
        assert_eq!(bench.fate(&about(packet)), expected, "{packet:?}");
        let packet = udp(source, target);
        assert_eq!(bench.fate(&about(packet)), Fate::Passed, "{packet:?}");
    }
    bench.table.serve(of_udp("192.0.2.1:9"), true);
    assert_eq!(bench.fate(&about(udp("192.0.2.1:9", V4))), Fate::Ours);
}

#[test]
fn every_kind_of_error_goes_to_the_socket_and_all_other_icmp_passes() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:80"]) else {
        return;
    };
    for kind in 0..=255 {
        let packet = tcp("192.0.2.1:80", V4);
        let expected = match kind {
            3 | 11 | 12 => Fate::Ours,
            _ => Fate::Passed,
        };
        let bytes = error("198.51.100.1", [kind, 0], packet, 28);
        assert_eq!(bench.fate(&bytes), expected, "{kind}");
        let packet = tcp("[2001:db8::1]:80", V6);
        let expected = match kind {
            1..=4 => Fate::Ours,
            _ => Fate::Passed,
        };
        let bytes = error("2001:db8:1::1", [kind, 0], packet, 48);
        assert_eq!(bench.fate(&bytes), expected, "{kind}");
    }
}

#[test]
fn a_malformed_error_or_one_about_another_packet_passes() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "192.0.2.7:80", "[2001:db8::1]:80"]) else {
        return;
    };
    let packet = tcp("192.0.2.1:80", V4);
    let whole = about(packet);
    for len in 34..whole.len() {
        // The ports are required; the sequence number matters only to the connection.
        let expected = if len < 66 { Fate::Passed } else { Fate::Ours };
        assert_eq!(bench.fate(&whole[..len]), expected, "{len}");
    }
    let changed = |at: usize, to: u8| {
        let mut bytes = whole.clone();
        bytes[at] = to;
        bytes
    };
    let quoted = 14 + 20 + 8;
    for (at, to) in [
        // The error is a fragment; the quoted header has options, or another version; what is quoted is a later
        // fragment, or was sent from another address, though that is served.
        (14 + 6, 0x20),
        (quoted, 0x46),
        (quoted, 0x65),
        (quoted + 7, 1),
        (quoted + 15, 7),
        // The ICMP protocol itself.
        (quoted + 9, 1),
    ] {
        assert_eq!(bench.fate(&changed(at, to)), Fate::Passed, "{at} {to}");
    }
    let whole = about(tcp("[2001:db8::1]:80", V6));
    for len in 54..whole.len() {
        let expected = if len < 106 { Fate::Passed } else { Fate::Ours };
        assert_eq!(bench.fate(&whole[..len]), expected, "{len}");
    }
    let quoted = 14 + 40 + 8;
    for (at, to) in [
        (quoted, 0x45),
        (quoted + 6, 44),
        (quoted + 23, 7),
        (quoted + 8, 0x30),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = to;
        assert_eq!(bench.fate(&bytes), Fate::Passed, "{at} {to}");
    }
}

#[test]
fn an_error_about_a_connection_of_the_kernel_passes() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let local = listener.local_addr().unwrap();
    let mut near = TcpStream::connect(local).unwrap();
    let _far = listener.accept().unwrap();
    near.write_all(b"x").unwrap();
    let peer = near.local_addr().unwrap();
    let service = of_tcp(&local.to_string());
    bench.table.serve(service, true);
    bench.table.set_addresses(&[local.ip()]);
    let known = about(tcp(&local.to_string(), &peer.to_string()));
    let unknown = about(tcp(&local.to_string(), "127.0.0.9:9"));
    bench.table.look_up_kernel_flows();
    assert_eq!(bench.fate(&known), Fate::Kept);
    assert_eq!(bench.fate(&unknown), Fate::Ours);
    // The same after the listener is closed, while connections go on.
    end_kernel_flows(&bench.table);
    bench.table.serve(service, false);
    assert_eq!(bench.fate(&known), Fate::Kept);
    assert_eq!(bench.fate(&unknown), Fate::Ours);
    bench.table.forget(service);
    assert_eq!(bench.fate(&unknown), Fate::Passed);
}
