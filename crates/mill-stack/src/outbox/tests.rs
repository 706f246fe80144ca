//! What is sent comes out again, whole or in pieces that become the same, and never too much of it.

use super::*;
use crate::fragment::{Fragment, Pushed, Reassembler};
use mill_tcp::time::Instant;

fn head(is_ipv6: bool) -> Head {
    let (source, target) = if is_ipv6 {
        ("fd00::2", "fd00::9")
    } else {
        ("10.0.0.2", "10.0.0.9")
    };
    Head {
        source: source.parse().unwrap(),
        target: target.parse().unwrap(),
        protocol: Protocol::UDP,
        ecn: Ecn::NotCapable,
    }
}

fn drain(outbox: &mut Outbox) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    outbox.transmit(|_, bytes| {
        packets.push(bytes.to_vec());
        Offered::Sent
    });
    packets
}

#[test]
fn datagrams_are_cut_at_the_mtu_and_become_whole_again() {
    for is_ipv6 in [false, true] {
        for (mtu, len) in [
            (1500, 0),
            (1500, 1),
            (1500, 1460),
            (1500, 1461),
            (1500, 1480),
            (1500, 1481),
            (1280, 9000),
            (576, 5000),
            (1500, 65_000),
        ] {
            let payload: Vec<u8> = (0..len).map(|at: usize| at.to_le_bytes()[0]).collect();
            let mut outbox = Outbox::new(7);
            assert!(outbox.send(&head(is_ipv6), mtu, |into| into.extend(&payload)));
            let packets = drain(&mut outbox);
            let header_len = if is_ipv6 { 40 } else { 20 };
            let mtu = usize::from(if is_ipv6 { mtu.max(1280) } else { mtu });
            assert_eq!(packets.len() == 1, header_len + len <= mtu, "{mtu} {len}");
            assert!(packets.iter().all(|packet| packet.len() <= mtu));
            assert_eq!(reassemble(&packets), payload, "{mtu} {len} {is_ipv6}");
        }
    }
}

fn reassemble(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut reassembler = Reassembler::new(1 << 20);
    if let [packet] = packets {
        let header_len = if packet[0] >> 4 == 6 { 40 } else { 20 };
        return packet[header_len..].to_vec();
    }
    let mut whole = None;
    for packet in packets {
        let fragment = Fragment::parse(packet).unwrap();
        match reassembler.push(&fragment, Instant::default()) {
            Pushed::Waiting => assert_eq!(whole, None),
            Pushed::Complete(datagram) => whole = Some(datagram.payload),
            other => panic!("{other:?}"),
        }
    }
    whole.expect("all fragments are there")
}

#[test]
fn packets_wait_for_their_neighbour_and_let_others_pass() {
    let mut outbox = Outbox::new(7);
    for is_ipv6 in [false, true, false] {
        outbox.send(&head(is_ipv6), 1500, |into| into.push(1));
    }
    let mut offered = 0;
    let mut offer = |target: IpAddr, _: &[u8]| {
        offered += 1;
        match target {
            IpAddr::V4(_) => Offered::Unresolved(target),
            IpAddr::V6(_) => Offered::Sent,
        }
    };
    assert!(!outbox.transmit(&mut offer));
    assert!(!outbox.transmit(&mut offer));
    assert_eq!((offered, outbox.len()), (3, 2));
    outbox.wake();
    assert_eq!(drain(&mut outbox).len(), 2);
    assert!(outbox.is_empty());
}

#[test]
fn packets_for_a_neighbour_that_is_forgotten_are_dropped() {
    let mut outbox = Outbox::new(7);
    for is_ipv6 in [false, true, false] {
        outbox.send(&head(is_ipv6), 1500, |into| into.push(1));
    }
    assert!(!outbox.transmit(|target, _| Offered::Unresolved(target)));
    outbox.forget(head(false).target);
    assert_eq!((outbox.len(), outbox.dropped), (1, 2));
    outbox.wake();
    assert_eq!(drain(&mut outbox).len(), 1);
}

#[test]
fn a_full_device_leaves_packets_in_their_order() {
    let mut outbox = Outbox::new(7);
    for number in 0..3 {
        outbox.send(&head(false), 1500, |into| into.push(number));
    }
    let mut room = 1;
    assert!(outbox.transmit(|_, _| {
        room -= 1;
        if room < 0 {
            Offered::Full
        } else {
            Offered::Sent
        }
    }));
    let left: Vec<u8> = drain(&mut outbox).iter().map(|packet| packet[20]).collect();
    assert_eq!(left, [1, 2]);
    outbox.send(&head(false), 1500, |into| into.push(1));
    assert!(!outbox.transmit(|_, _| Offered::Lost));
    assert!(outbox.is_empty());
}

#[test]
fn what_waits_is_bounded_in_number_and_bytes() {
    let mut outbox = Outbox::new(7);
    for _ in 0..COUNT_MAX {
        assert!(outbox.send(&head(false), 1500, |into| into.push(1)));
    }
    assert!(!outbox.send(&head(false), 1500, |into| into.push(1)));
    assert_eq!((outbox.len(), outbox.dropped), (COUNT_MAX, 1));

    let mut outbox = Outbox::new(7);
    let mut sent = 0;
    while outbox.send(&head(true), 65_535, |into| into.resize(60_000, 1)) {
        sent += 1;
    }
    assert_eq!(sent, QUEUED_BYTES_MAX / 60_040);
    drain(&mut outbox);
    assert!(outbox.send(&head(true), 1500, |into| into.push(1)));
    assert!(!outbox.send(&head(false), 1500, |into| into.resize(65_516, 1)));
    assert!(outbox.send(&head(false), 1500, |into| into.resize(65_515, 1)));
}
