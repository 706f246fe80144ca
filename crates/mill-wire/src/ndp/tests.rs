//! Messages of neighbour discovery, read as they were written and not when cut off.

use super::*;
use crate::random::{Random, any_bytes};
use std::string::ToString;

fn arbitrary(kind: usize, random: &mut Random) -> Ndp {
    let mac = |random: &mut Random| {
        let mac = MacAddress(random.bytes());
        random.flag().then_some(mac)
    };
    let target = Ipv6Addr::from(random.bytes());
    match kind {
        0 => Ndp::RouterSolicitation {
            source_mac: mac(random),
        },
        1 => Ndp::NeighborSolicitation {
            target,
            source_mac: mac(random),
        },
        2 => Ndp::NeighborAdvertisement {
            router: random.flag(),
            solicited: random.flag(),
            replaces: random.flag(),
            target,
            target_mac: mac(random),
        },
        _ => {
            let mut prefixes = Prefixes::default();
            for _ in 0..random.below(5) {
                let len = u8::try_from(random.below(129)).unwrap();
                assert!(prefixes.push(PrefixInformation {
                    prefix: Ipv6Addr::from(random.bytes()),
                    len,
                    on_link: random.flag(),
                    autonomous: random.flag(),
                    valid_secs: random.long(),
                    preferred_secs: random.long(),
                }));
            }
            Ndp::RouterAdvertisement(RouterAdvertisement {
                hop_limit: random.byte(),
                managed: random.flag(),
                other: random.flag(),
                lifetime_secs: random.word(),
                reachable_ms: random.long(),
                retransmit_ms: random.long(),
                source_mac: mac(random),
                mtu: random.flag().then_some(1500),
                prefixes,
            })
        }
    }
}

#[test]
fn messages_are_read_as_they_were_written_and_not_when_cut_inside_an_option() {
    let mut random = Random::new(1);
    for round in 0..400 {
        let message = arbitrary(round % 4, &mut random);
        let mut bytes = [0xaa; MESSAGE_BYTES_MAX];
        let len = message.emit(&mut bytes);
        assert!(Ndp::is_kind(bytes[0]));
        assert_eq!(Ndp::parse(&bytes[..len]), Ok((message, len)));
        // Before an option the message may end: then it is one without it.
        for cut in (0..len).filter(|cut| !cut.is_multiple_of(8) || *cut == 0) {
            assert!(Ndp::parse(&bytes[..cut]).is_err(), "{cut} of {message:?}");
        }
    }
}

#[test]
fn no_bytes_panic_and_what_is_read_is_written_the_same() {
    let shape = |random: &mut Random, bytes: &mut std::vec::Vec<u8>| {
        bytes.truncate(bytes.len() & !7);
        for option in bytes.chunks_mut(8) {
            option[0] = u8::try_from(random.below(6)).unwrap();
            option[1] = 1;
        }
        if let Some(head) = bytes.first_chunk_mut::<2>() {
            *head = [133 + u8::try_from(random.below(4)).unwrap(), 0];
        }
    };
    let parse = |bytes: &[u8]| match Ndp::parse(bytes) {
        Err(Malformed::Option) => {
            // What was written may be followed by zeros here, which are no options.
            let end = bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |at| at + 1);
            Ndp::parse(&bytes[..end.next_multiple_of(8).min(bytes.len())])
        }
        other => other,
    };
    any_bytes(2, shape, Ndp::emit, parse);
}

#[test]
fn an_option_without_length_or_beyond_the_end_spoils_the_message() {
    let check = |options: &[u8], expected: Result<Option<MacAddress>, Malformed>| {
        let mut bytes = [133, 0, 0, 0, 0, 0, 0, 0].to_vec();
        bytes.extend(options);
        let found = Ndp::parse(&bytes).map(|(message, _)| match message {
            Ndp::RouterSolicitation { source_mac } => source_mac,
            other => panic!("{other:?}"),
        });
        assert_eq!(found, expected, "{options:?}");
    };
    let mac = MacAddress([1, 2, 3, 4, 5, 6]);
    check(&[], Ok(None));
    check(&[1, 1, 1, 2, 3, 4, 5, 6], Ok(Some(mac)));
    check(&[1, 0, 1, 2, 3, 4, 5, 6], Err(Malformed::Option));
    check(&[1, 2, 1, 2, 3, 4, 5, 6], Err(Malformed::Option));
    check(&[1, 1, 1, 2, 3, 4, 5, 6, 1], Err(Malformed::Option));
    check(
        &[77, 1, 9, 9, 9, 9, 9, 9, 1, 1, 1, 2, 3, 4, 5, 6],
        Ok(Some(mac)),
    );
    check(
        &[1, 1, 1, 2, 3, 4, 5, 6, 1, 1, 9, 9, 9, 9, 9, 9],
        Ok(Some(mac)),
    );
    check(&[1, 2, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0], Ok(None));
}

#[test]
fn a_code_and_other_types_are_refused() {
    let mut bytes = [0; 24];
    for (kind, code, expected) in [(135, 0, true), (135, 1, false), (137, 0, false)] {
        bytes[..2].copy_from_slice(&[kind, code]);
        assert_eq!(Ndp::parse(&bytes).is_ok(), expected, "{kind} {code}");
    }
    assert!(!Ndp::is_kind(132) && !Ndp::is_kind(137));
}

#[test]
fn prefixes_beyond_the_first_four_and_impossible_ones_are_passed_over() {
    let prefix = |len: u8| {
        let mut option = [0; 32];
        option[..4].copy_from_slice(&[3, 4, len, 0xc0]);
        option
    };
    let mut bytes = [0; 16].to_vec();
    bytes[0] = 134;
    for len in [129, 128, 0, 1, 2, 3, 4] {
        bytes.extend(prefix(len));
    }
    let Ok((Ndp::RouterAdvertisement(router), _)) = Ndp::parse(&bytes) else {
        panic!("no advertisement");
    };
    let lens: std::vec::Vec<u8> = router.prefixes.iter().map(|prefix| prefix.len).collect();
    assert_eq!(lens, [128, 0, 1, 2]);
}

#[test]
fn the_group_of_an_address_has_its_last_three_bytes() {
    // RFC 4291 2.7.1.
    let address = "4037::01:800:200e:8c6c".parse().unwrap();
    assert_eq!(solicited_node(address).to_string(), "ff02::1:ff0e:8c6c");
}
