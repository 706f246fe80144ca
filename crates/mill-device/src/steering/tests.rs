//! What the program does with frames, by the kernel's test runs (BPF_PROG_TEST_RUN).

use super::*;
use bench::{Bench, Fate, of_tcp, of_udp};
use frames::{Frame, TCP, tcp, udp};

pub(super) mod bench;
mod chains;
pub(super) mod frames;
mod kernel_flows;
mod quoted;
mod spread;
mod tags;
mod wire;

/// The peer's address.
const V4: &str = "192.0.2.9:40000";
const V6: &str = "[2001:db8::9]:40000";

#[test]
fn served_ports_go_to_the_socket_and_all_else_passes() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:443"]) else {
        return;
    };
    for (target, expected) in [
        ("192.0.2.1:80", Fate::Ours),
        ("192.0.2.1:22", Fate::Passed),
        ("192.0.2.1:443", Fate::Passed),
        ("192.0.2.2:80", Fate::Passed),
        ("191.0.2.1:80", Fate::Passed),
        ("0.0.0.0:80", Fate::Passed),
        ("255.255.255.255:80", Fate::Passed),
        ("192.0.2.255:80", Fate::Passed),
        ("224.0.0.1:80", Fate::Passed),
    ] {
        bench.check(tcp(V4, target), expected);
        bench.check(udp(V4, target), Fate::Passed);
    }
    for (target, expected) in [
        ("[2001:db8::1]:443", Fate::Ours),
        ("[2001:db8::1]:80", Fate::Passed),
        ("[2001:db8::2]:443", Fate::Passed),
        ("[2001:db8:1::1]:443", Fate::Passed),
        ("[::]:443", Fate::Passed),
        ("[::ffff:192.0.2.1]:443", Fate::Passed),
    ] {
        bench.check(tcp(V6, target), expected);
        bench.check(udp(V6, target), Fate::Passed);
    }
}

#[test]
fn no_frame_is_taken_before_a_port_is_served() {
    let Some(bench) = Bench::new() else {
        return;
    };
    for target in ["0.0.0.0:0", "192.0.2.1:80"] {
        bench.check(tcp(V4, target), Fate::Passed);
    }
    assert_eq!(
        bench.table.set_addresses(&["192.0.2.1".parse().unwrap()]),
        0
    );
    bench.check(tcp(V4, "192.0.2.1:80"), Fate::Passed);
    bench.check(tcp(V4, "0.0.0.0:0"), Fate::Passed);
}

#[test]
fn every_port_has_its_own_bit() {
    let Some(bench) = Bench::serving(&["192.0.2.1:1"]) else {
        return;
    };
    bench.table.serve(of_tcp("192.0.2.1:1"), false);
    bench.table.forget(of_tcp("192.0.2.1:1"));
    for port in [
        0, 1, 7, 8, 31, 32, 33, 63, 255, 256, 4095, 32767, 32768, 65534, 65535_u16,
    ] {
        let at = |port: u16| format!("192.0.2.1:{port}");
        let before = port.wrapping_sub(1);
        let after = port.wrapping_add(1);
        bench.table.serve(of_tcp(&at(port)), true);
        bench.check(tcp(V4, &at(port)), Fate::Ours);
        bench.check(udp(V4, &at(port)), Fate::Passed);
        bench.check(tcp(V4, &at(before)), Fate::Passed);
        bench.check(tcp(V4, &at(after)), Fate::Passed);
        bench.table.serve(of_tcp(&at(port)), false);
        bench.table.forget(of_tcp(&at(port)));
        bench.check(tcp(V4, &at(port)), Fate::Passed);
        bench.table.serve(of_udp(&at(port)), true);
        bench.check(udp(V4, &at(port)), Fate::Ours);
        bench.check(tcp(V4, &at(port)), Fate::Passed);
        bench.check(udp(V4, &at(before)), Fate::Passed);
        bench.check(udp(V4, &at(after)), Fate::Passed);
        bench.table.serve(of_udp(&at(port)), false);
    }
}

#[test]
fn other_protocols_pass() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:80"]) else {
        return;
    };
    for protocol in 0..=255 {
        let expected = match protocol {
            TCP => Fate::Ours,
            _ => Fate::Passed,
        };
        let frame = tcp(V4, "192.0.2.1:80");
        bench.check(Frame { protocol, ..frame }, expected);
        // Of those that are extension headers the peer's port is read as the header: options and routing (0, 43, 60) lead to
        // an unknown protocol, a fragment header (44) says that this is a later one, and the others are not passed over.
        let expected = match protocol {
            50 | 51 | 135 | 139 | 140 => Fate::Chain,
            _ => expected,
        };
        let frame = tcp(V6, "[2001:db8::1]:80");
        bench.check(Frame { protocol, ..frame }, expected);
    }
    for ether_type in [0_u16, 1500, 0x0801, 0x0806, 0x86dc, 0x88cc, 0xffff] {
        let mut bytes = tcp(V4, "192.0.2.1:80").bytes();
        bytes[12..14].copy_from_slice(&ether_type.to_be_bytes());
        assert_eq!(bench.fate(&bytes), Fate::Passed, "{ether_type:x}");
    }
}

#[test]
fn multicast_and_broadcast_pass() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80"]) else {
        return;
    };
    for (target_mac, expected) in [
        ([0xff; 6], Fate::Passed),
        ([0x01, 0, 0x5e, 0, 0, 1], Fate::Passed),
        ([0x33, 0x33, 0, 0, 0, 1], Fate::Passed),
        ([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff], Fate::Ours),
        ([0, 1, 1, 1, 1, 1], Fate::Ours),
    ] {
        let frame = tcp(V4, "192.0.2.1:80");
        bench.check(
            Frame {
                target_mac,
                ..frame
            },
            expected,
        );
    }
}

#[test]
fn headers_may_end_anywhere() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:80"]) else {
        return;
    };
    for (frame, needed) in [
        (tcp(V4, "192.0.2.1:80"), 14 + 20 + 4),
        (tcp(V6, "[2001:db8::1]:80"), 14 + 40 + 4),
        (udp(V4, "192.0.2.1:80"), 14 + 20 + 4),
        (tcp(V6, "[2001:db8::1]:80").fragment(1), 14 + 48 + 4),
    ] {
        let whole = bench.fate(&frame.bytes());
        // The kernel demands an Ethernet header; test every length from there on.
        for len in 14..frame.bytes().len() {
            let expected = if len < needed { Fate::Malformed } else { whole };
            let bytes = &frame.bytes()[..len];
            assert_eq!(bench.fate(bytes), expected, "{len} of {frame:?}");
        }
    }
}

#[test]
fn ipv4_options_are_skipped() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80"]) else {
        return;
    };
    for header_words in 0..=15 {
        let expected = match header_words {
            0..=4 => Fate::Malformed,
            _ => Fate::Ours,
        };
        let frame = tcp(V4, "192.0.2.1:80");
        let frame = Frame {
            header_words,
            ..frame
        };
        bench.check(frame, expected);
        let needed = frame.link_len() + usize::from(header_words) * 4 + 4;
        if expected == Fate::Ours {
            let bytes = frame.bytes();
            assert_eq!(bench.fate(&bytes[..needed]), Fate::Ours);
            assert_eq!(bench.fate(&bytes[..needed - 1]), Fate::Malformed);
        }
    }
}

#[test]
fn the_version_is_what_the_ether_type_says() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:80"]) else {
        return;
    };
    for version in 0..=15_u8 {
        let mut bytes = tcp(V4, "192.0.2.1:80").bytes();
        bytes[14] = version << 4 | 5;
        let expected = if version == 4 {
            Fate::Ours
        } else {
            Fate::Malformed
        };
        assert_eq!(bench.fate(&bytes), expected, "{version}");
        let mut bytes = tcp(V6, "[2001:db8::1]:80").bytes();
        bytes[14] = version << 4;
        let expected = if version == 6 {
            Fate::Ours
        } else {
            Fate::Malformed
        };
        assert_eq!(bench.fate(&bytes), expected, "{version}");
    }
}

#[test]
fn first_fragments_for_what_is_served_are_dropped_and_later_ones_passed() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:80"]) else {
        return;
    };
    const RESERVED: u16 = 0x8000;
    const DO_NOT: u16 = 0x4000;
    const MORE: u16 = 0x2000;
    for (word, expected) in [
        (0, Fate::Ours),
        (DO_NOT, Fate::Ours),
        (RESERVED, Fate::Ours),
        (MORE, Fate::Fragment),
        (MORE | DO_NOT, Fate::Fragment),
        (1, Fate::Passed),
        (MORE | 1, Fate::Passed),
        (0x1fff, Fate::Passed),
        (MORE | 0x1000, Fate::Passed),
    ] {
        bench.check(tcp(V4, "192.0.2.1:80").fragment(word), expected);
        bench.check(tcp(V4, "192.0.2.1:81").fragment(word), Fate::Passed);
    }
    // The offset is above three bits, the lowest of which says that more fragments follow. Without either it is no
    // fragment (RFC 6946).
    for (word, expected) in [
        (0, Fate::Ours),
        (1, Fate::Fragment),
        (6, Fate::Ours),
        (7, Fate::Fragment),
        (8, Fate::Passed),
        (9, Fate::Passed),
        (0xfff8, Fate::Passed),
    ] {
        bench.check(tcp(V6, "[2001:db8::1]:80").fragment(word), expected);
        bench.check(tcp(V6, "[2001:db8::1]:81").fragment(word), Fate::Passed);
        bench.check(udp(V6, "[2001:db8::1]:80").fragment(word), Fate::Passed);
    }
}

#[test]
fn without_a_socket_frames_pass() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80"]) else {
        return;
    };
    bench.check(tcp(V4, "192.0.2.1:80"), Fate::Ours);
    // The kernel removes a closed socket from the map asynchronously.
    let Bench {
        rules,
        table,
        socket,
    } = bench;
    drop(socket);
    let socket = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let bench = Bench {
        rules,
        table,
        socket,
    };
    let frame = tcp(V4, "192.0.2.1:80").bytes();
    assert!((0..1000).any(|_| bench.fate(&frame) == Fate::Unclaimed));
}

#[test]
fn frames_of_blocked_addresses_are_dropped_at_served_ports_alone() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80", "[2001:db8::1]:443"]) else {
        return;
    };
    bench.table.serve(of_udp("192.0.2.1:53"), true);
    let blocked: Vec<std::net::IpAddr> = ["192.0.2.9", "2001:db8::9"]
        .map(|address| address.parse().unwrap())
        .to_vec();
    assert_eq!(bench.table.set_blocked(&blocked), 0);
    bench.check(tcp(V4, "192.0.2.1:80"), Fate::Blocked);
    bench.check(tcp(V6, "[2001:db8::1]:443"), Fate::Blocked);
    bench.check(tcp(V4, "192.0.2.1:22"), Fate::Passed);
    bench.check(udp(V4, "192.0.2.1:53"), Fate::Ours);
    bench.check(tcp("192.0.2.10:40000", "192.0.2.1:80"), Fate::Ours);
    bench.check(tcp("[2001:db8::a]:40000", "[2001:db8::1]:443"), Fate::Ours);
    bench.check(tcp("[2001:db9::9]:40000", "[2001:db8::1]:443"), Fate::Ours);
    bench.table.set_blocked(&blocked[1..]);
    bench.check(tcp(V4, "192.0.2.1:80"), Fate::Ours);
    bench.check(tcp(V6, "[2001:db8::1]:443"), Fate::Blocked);
    // Another process forgets what its predecessor has blocked, and blocks its own.
    let heir = Table::inherit(bench.descriptors()).unwrap();
    bench.check(tcp(V6, "[2001:db8::1]:443"), Fate::Ours);
    heir.set_blocked(&blocked[..1]);
    bench.check(tcp(V4, "192.0.2.1:80"), Fate::Blocked);
    heir.set_blocked(&[]);
    bench.check(tcp(V4, "192.0.2.1:80"), Fate::Ours);
}

#[test]
fn as_many_addresses_are_blocked_as_their_buckets_have_places() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80"]) else {
        return;
    };
    let all: Vec<std::net::IpAddr> = (0..8000_u32)
        .map(|number| std::net::IpAddr::V4((0x0a00_0000 + number).into()))
        .collect();
    let left_out = bench.table.set_blocked(&all);
    // 8000 of 16384 places, at random: about one of thirty finds its bucket full.
    assert!(left_out < 800, "{left_out}");
    let mut dropped = 0;
    for address in all.iter().step_by(16) {
        let frame = tcp(&format!("{address}:40000"), "192.0.2.1:80");
        dropped += usize::from(bench.fate(&frame.bytes()) == Fate::Blocked);
    }
    assert!(dropped > 450, "{dropped}");
    assert_eq!(bench.table.set_blocked(&all[..10]), 0);
    let fates = all.iter().take(20).map(|address| {
        let frame = tcp(&format!("{address}:40000"), "192.0.2.1:80");
        bench.fate(&frame.bytes()) == Fate::Blocked
    });
    assert_eq!(fates.filter(|is_blocked| *is_blocked).count(), 10);
}
