//! What SYNs agree on, option by option.

use super::*;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use core::time::Duration;
use mill_wire::seq::SeqNumber;

fn syn(flags: Flags, options: &TcpOptions) -> Segment<'_> {
    Segment {
        seq: SeqNumber(1),
        ack: SeqNumber(0),
        flags,
        window: 1000,
        urgent: 0,
        options,
        payload: &[],
        ecn: crate::segment::Ecn::NotCapable,
        merged: 1,
    }
}

/// RFC 9293 3.7.1: 536 of a peer that says nothing; and never absurdly small.
#[test]
fn segments_fit_both_sides() {
    for (peer, local, timestamps, expected) in [
        (1460, 1460, true, 1448),
        (1460, 1460, false, 1460),
        (536, 1460, false, 536),
        (1460, 536, true, 524),
        (61, 1460, true, 49),
        (60, 1460, true, 48),
        (59, 1460, true, 48),
        (0, 1460, true, 48),
    ] {
        assert_eq!(
            effective_mss(peer, local, timestamps),
            expected,
            "{peer} {local}"
        );
    }
    let agreement = Agreement::with(&syn(Flags::SYN, &TcpOptions::default()), &Config::default());
    assert_eq!(agreement.mss, 536);
}

#[test]
fn the_shift_is_the_smallest_that_reaches_the_largest_buffer() {
    for (bytes, shift) in [
        (65_535, 0),
        (65_536, 1),
        (131_071, 1),
        (131_072, 2),
        (6 << 20, 7),
        (1 << 30, 14),
        (u32::MAX, 14),
    ] {
        let config = Config::with(|config| config.receive_buffer_bytes_max = bytes);
        assert_eq!(wind_shift(&config), shift, "{bytes}");
    }
}

/// RFC 3168 6.1.1, RFC 9768 3.1.2.
#[test]
fn ecn_is_agreed_by_the_right_flags_only() {
    let (ece, cwr, ae) = (Flags::ECE, Flags::CWR, Flags::AE);
    let syn_ack = Flags::SYN | Flags::ACK;
    for (flags, mode, expected) in [
        (Flags::SYN | ece | cwr, EcnMode::Off, false),
        (Flags::SYN | ece | cwr, EcnMode::Accept, true),
        (Flags::SYN | ece | cwr, EcnMode::Ask, true),
        (Flags::SYN | ece | cwr | ae, EcnMode::Accept, true),
        (Flags::SYN | ece, EcnMode::Accept, false),
        (Flags::SYN | cwr, EcnMode::Accept, false),
        (syn_ack | ece, EcnMode::Ask, true),
        (syn_ack | ece, EcnMode::Accept, false),
        (syn_ack | ece | cwr, EcnMode::Ask, false),
        (syn_ack | ece | ae, EcnMode::Ask, false),
        (syn_ack, EcnMode::Ask, false),
    ] {
        assert_eq!(is_ecn_setup(flags, mode), expected, "{flags:?} {mode:?}");
    }
}

/// Every option on and off on each side: what one lacks the connection lacks, and bytes arrive all the same.
#[test]
fn options_need_both_sides() {
    for bits in 0..256_u32 {
        let has = |bit: u32| bits >> bit & 1 == 1;
        let mut pair = Pair::new(&Config::default());
        for side in [CLIENT, SERVER] {
            let at = u32::try_from(side).unwrap() * 4;
            let config = &mut pair.sides[side].config;
            config.window_scaling = has(at);
            config.timestamps = has(at + 1);
            config.sack = has(at + 2);
            config.ecn = if has(at + 3) {
                EcnMode::Ask
            } else {
                EcnMode::Off
            };
        }
        pair.connect();
        pair.write(CLIENT, &pattern(3000));
        pair.write(SERVER, &pattern(70_000));
        pair.run_for(Duration::from_secs(5));
        let both = |bit: u32| has(bit) && has(bit + 4);
        for side in [CLIENT, SERVER] {
            let received = pair.sides[side].received.len();
            assert_eq!(received, if side == CLIENT { 70_000 } else { 3000 });
            let flags = pair.connection(side).flags;
            assert_eq!(flags.has(ConnectionFlags::SCALING), both(0));
            assert_eq!(flags.has(ConnectionFlags::TIMESTAMPS), both(1));
            assert_eq!(flags.has(ConnectionFlags::SACK), both(2));
            assert_eq!(flags.has(ConnectionFlags::ECN), both(3));
        }
        let largest = pair.log.iter().map(|entry| u32::from(entry.2.window)).max();
        assert!(largest <= Some(u32::from(u16::MAX)));
    }
}
