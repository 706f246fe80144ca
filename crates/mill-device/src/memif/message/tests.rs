//! Messages byte by byte, as memif.h of VPP, DPDK and libmemif lays them out on a little-endian machine.

use super::*;

/// The bytes of hex digits, padded with zeros to a whole message.
fn whole(hex: &str) -> [u8; MESSAGE_BYTES] {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut bytes = [0; MESSAGE_BYTES];
    for (to, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *to = u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    }
    bytes
}

fn name() -> String {
    format!("6d656d6966{}", "00".repeat(27))
}

fn secret() -> [u8; 24] {
    let mut secret = [0; 24];
    secret[..6].copy_from_slice(b"sesame");
    secret
}

fn fixtures() -> Vec<(Message, String)> {
    let text = Text::new("memif");
    let hello = Hello {
        name: text,
        version_min: 0x0200,
        version_max: 0x0201,
        region_max: 255,
        m2s_ring_max: 3,
        s2m_ring_max: 0x0104,
        log2_ring_size_max: 14,
    };
    let init = Init {
        version: 0x0200,
        id: 0x0403_0201,
        mode: 2,
        secret: secret(),
        name: text,
    };
    let region = AddRegion {
        index: 0x0102,
        size_bytes: 0x0807_0605_0403_0201,
    };
    let ring = |is_s2m| AddRing {
        is_s2m,
        index: 0x0102,
        region: 0x0304,
        offset: 0x0807_0605,
        log2_size: 10,
        private_header_bytes: 0x0b0c,
    };
    let name = name();
    let sesame = format!("736573616d65{}", "00".repeat(18));
    let reason = Message::Disconnect {
        code: 0x0403_0201,
        reason: Text::new("gone"),
    };
    vec![
        (Message::Ack, "0100".to_owned()),
        (
            Message::Hello(hello),
            format!("0200 {name} 0002 0102 ff00 0300 0401 0e"),
        ),
        (
            Message::Init(init),
            format!("0300 0002 01020304 02 {sesame} {name}"),
        ),
        (
            Message::AddRegion(region),
            "0400 0201 0102030405060708".to_owned(),
        ),
        (
            Message::AddRing(ring(true)),
            "0500 0100 0201 0403 05060708 0a 0c0b".to_owned(),
        ),
        (
            Message::AddRing(ring(false)),
            "0500 0000 0201 0403 05060708 0a 0c0b".to_owned(),
        ),
        (Message::Connect(text), format!("0600 {name}")),
        (Message::Connected(text), format!("0700 {name}")),
        (reason, "0800 01020304 676f6e65".to_owned()),
    ]
}

#[test]
#[cfg(target_endian = "little")]
fn messages_are_those_of_the_header_byte_by_byte() {
    for (message, hex) in fixtures() {
        assert_eq!(message.emit(), whole(&hex), "{message:?}");
        assert_eq!(Message::parse(&whole(&hex)), Ok(message));
    }
}

#[test]
fn invalid_messages_are_refused() {
    let check = |bytes: &[u8], expected| assert_eq!(Message::parse(bytes), Err(expected));
    let ack = Message::Ack.emit();
    check(&[], Malformed::Length(0));
    check(&ack[..127], Malformed::Length(127));
    check(&[ack.as_slice(), &[0]].concat(), Malformed::Length(129));
    check(&[0; 128], Malformed::Type(0));
    check(&whole("0900"), Malformed::Type(9));
    check(&whole("ffff"), Malformed::Type(0xffff));
}

#[test]
fn any_message_parses_and_emits_as_the_same_value() {
    for kind in 1..=8_u16 {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = [byte; MESSAGE_BYTES];
            bytes[..2].copy_from_slice(&kind.to_ne_bytes());
            let message = Message::parse(&bytes).unwrap();
            assert_eq!(Message::parse(&message.emit()), Ok(message));
        }
    }
}

#[test]
fn text_ends_at_the_first_zero_or_fills_its_field_and_is_safe_for_terminals() {
    let check = |bytes: [u8; 4], expected| assert_eq!(Text(bytes).to_text(), expected);
    check(*b"ab\0c", "ab");
    check(*b"abcd", "abcd");
    check(*b"\0abc", "");
    check(*b"a\x1b[m", "a?[m");
    check([b'a', 0xff, 0, 0], "a\u{fffd}");
    assert_eq!(Text::<4>::new("abcdef").to_text(), "abc");
    assert_eq!(Text::<4>::new("ab"), Text(*b"ab\0\0"));
}

#[test]
fn a_secret_is_not_printed() {
    let (init, _) = fixtures().swap_remove(2);
    assert!(!format!("{init:?}").contains("sesame"));
}
