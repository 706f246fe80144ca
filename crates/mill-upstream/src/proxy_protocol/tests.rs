//! Headers by tables, each at every split, and what is emitted read again.

use super::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The result of all bytes; every shorter beginning is incomplete, or has the same fault.
#[track_caller]
fn parse_at_every_split(bytes: &[u8]) -> Result<Option<Header<'_>>, ProxyProtocolFault> {
    let whole = parse(bytes);
    for len in 0..bytes.len() {
        let part = parse(&bytes[..len]);
        match whole {
            Ok(Some(header)) if len >= header.len => assert_eq!(part, whole),
            Ok(_) => assert_eq!(part, Ok(None)),
            Err(_) => assert!(part == Ok(None) || part == whole, "{part:?}"),
        }
    }
    whole
}

fn ip(source: &str, destination: &str) -> Option<Ends<'static>> {
    Some(Ends::Ip {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    })
}

/// A line with `GET` behind it.
#[track_caller]
fn check_v1(line: &str, expected: Result<Option<Ends<'_>>, ProxyProtocolFault>) {
    let bytes = format!("{line}\r\nGET");
    let found = parse_at_every_split(bytes.as_bytes());
    let found = found.map(|header| {
        let header = header.expect("a whole line");
        assert_eq!(header.len, line.len() + 2);
        assert_eq!(header.tlvs.iter().count(), 0);
        header.ends
    });
    assert_eq!(found, expected, "{line:?}");
}

#[test]
fn lines_of_version_1_tell_both_ends() {
    check_v1(
        "PROXY TCP4 192.0.2.1 198.51.100.2 1234 80",
        Ok(ip("192.0.2.1:1234", "198.51.100.2:80")),
    );
    check_v1(
        "PROXY TCP4 255.255.255.255 0.0.0.0 65535 0",
        Ok(ip("255.255.255.255:65535", "0.0.0.0:0")),
    );
    check_v1(
        "PROXY TCP6 2001:db8::1 ::1 1 443",
        Ok(ip("[2001:db8::1]:1", "[::1]:443")),
    );
    check_v1("PROXY UNKNOWN", Ok(None));
    check_v1("PROXY UNKNOWN what ever", Ok(None));
    let full = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let longest = format!("PROXY UNKNOWN {full} {full} 65535 65535");
    assert_eq!(longest.len() + 2, 107);
    check_v1(&longest, Ok(None));
    check_v1(&format!("{longest} "), Err(ProxyProtocolFault::Line));
}

#[test]
fn lines_of_another_form_are_refused() {
    for line in [
        "PROXY ",
        "PROXY TCP5 a b 1 2",
        "PROXY UNKNOWNS",
        "PROXY tcp4 192.0.2.1 192.0.2.2 1 2",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 ",
        "PROXY TCP4\t192.0.2.1 192.0.2.2 1 2",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\nGET",
    ] {
        check_v1(line, Err(ProxyProtocolFault::Line));
    }
    for line in [
        "PROXY TCP4  192.0.2.1 192.0.2.2 1",
        "PROXY TCP4 192.0.2.1 ::1 1 2",
        "PROXY TCP6 192.0.2.1 192.0.2.2 1 2",
        "PROXY TCP4 192.0.2.01 192.0.2.2 1 2",
        "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2",
        "PROXY TCP4 192.0.2.1 192.0.2.2 01 2",
        "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 -2",
        "PROXY TCP6 fe80::1%eth0 ::1 1 2",
    ] {
        check_v1(line, Err(ProxyProtocolFault::Address));
    }
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"PROXI",
        b"\0",
        b"\r\nGET",
        b" PROXY",
    ] {
        assert_eq!(
            parse_at_every_split(bytes),
            Err(ProxyProtocolFault::Signature),
            "{bytes:?}"
        );
    }
    let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    assert_eq!(
        parse_at_every_split(&endless),
        Err(ProxyProtocolFault::Line)
    );
    assert_eq!(parse_at_every_split(b"PROXY TCP4 19"), Ok(None));
    assert_eq!(
        parse_at_every_split(b"PROXY UNKNOWN \xff\r\n"),
        Err(ProxyProtocolFault::Line)
    );
}

/// A header of version 2.
fn v2(version_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[version_command, family, high, low], rest].concat()
}

#[track_caller]
fn check_v2(
    version_command: u8,
    family: u8,
    rest: &[u8],
    expected: Result<Option<Ends<'_>>, ProxyProtocolFault>,
) {
    let bytes = [v2(version_command, family, rest), b"GET".to_vec()].concat();
    let found = parse_at_every_split(&bytes);
    let found = found.map(|header| {
        let header = header.expect("a whole header");
        assert_eq!(header.len, bytes.len() - 3);
        header.ends
    });
    assert_eq!(found, expected);
}

const IPV4_ENDS: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 2, 4, 210, 0, 80];

#[test]
fn headers_of_version_2_tell_both_ends() {
    let ipv4 = ip("192.0.2.1:1234", "198.51.100.2:80");
    check_v2(0x21, 0x11, IPV4_ENDS, Ok(ipv4));
    let fields = [IPV4_ENDS, &[0xe0, 0, 1, 7, 0x04, 0, 0]].concat();
    check_v2(0x21, 0x11, &fields, Ok(ipv4));
    let mut ipv6 = [0; 36];
    (ipv6[15], ipv6[31], ipv6[33], ipv6[35]) = (1, 2, 3, 4);
    check_v2(0x21, 0x21, &ipv6, Ok(ip("[::1]:3", "[::2]:4")));
    let mut paths = [0; 216];
    paths[..4].copy_from_slice(b"/a\0b");
    paths[108..].fill(b'x');
    let ends = Ends::Unix {
        source: b"/a\0b",
        destination: &[b'x'; 108],
    };
    check_v2(0x21, 0x31, &paths, Ok(Some(ends)));
    // Datagrams, an unknown transport, and the sender's own connection tell nothing of a stream's ends.
    check_v2(0x21, 0x12, IPV4_ENDS, Ok(None));
    check_v2(0x21, 0x22, &ipv6, Ok(None));
    check_v2(0x21, 0x32, &paths, Ok(None));
    check_v2(0x21, 0x00, b"", Ok(None));
    check_v2(0x20, 0x00, b"", Ok(None));
    check_v2(0x20, 0x11, b"anything", Ok(None));
}

#[test]
fn headers_of_version_2_are_read_strictly() {
    check_v2(0x11, 0x11, IPV4_ENDS, Err(ProxyProtocolFault::Version(1)));
    check_v2(0x31, 0x11, IPV4_ENDS, Err(ProxyProtocolFault::Version(3)));
    check_v2(0x22, 0x11, IPV4_ENDS, Err(ProxyProtocolFault::Command(2)));
    for family in [0x01, 0x10, 0x13, 0x33, 0x41, 0xff] {
        check_v2(
            0x21,
            family,
            &[0; 216],
            Err(ProxyProtocolFault::Family(family)),
        );
    }
    check_v2(0x21, 0x11, &IPV4_ENDS[..11], Err(ProxyProtocolFault::Short));
    check_v2(0x21, 0x21, &[0; 35], Err(ProxyProtocolFault::Short));
    check_v2(0x21, 0x31, &[0; 215], Err(ProxyProtocolFault::Short));
    for tail in [&[1_u8][..], &[1, 0], &[1, 0, 1], &[1, 0, 0, 2, 0, 9, 0]] {
        let rest = [IPV4_ENDS, tail].concat();
        check_v2(0x21, 0x11, &rest, Err(ProxyProtocolFault::Tlv));
    }
    let most = HEADER_BYTES_MAX - 16;
    let fill = |len: usize| {
        let value = u16::try_from(len - 12 - 3).unwrap().to_be_bytes();
        let mut rest = [IPV4_ENDS, &[0xe0], &value].concat();
        rest.resize(len, 0);
        rest
    };
    let bytes = v2(0x21, 0x11, &fill(most));
    assert_eq!(parse(&bytes).unwrap().unwrap().len, HEADER_BYTES_MAX);
    let bytes = v2(0x21, 0x11, &fill(most + 1));
    let too_long = Err(ProxyProtocolFault::TooLong(HEADER_BYTES_MAX + 1));
    assert_eq!(parse(&bytes), too_long);
    assert_eq!(parse(&bytes[..16]), too_long);
}

#[test]
fn fields_have_nginxs_names() {
    let ssl = b"\x07\0\0\x01\x02\x21\0\x07TLSv1.3\x22\0\x01c\x99\0\x01z";
    let mut out = Vec::new();
    let tlv = |kind, value| Tlv { kind, value };
    let tlvs = [
        tlv(0x01, &b"h2"[..]),
        tlv(0x02, b"example.org"),
        tlv(0x05, b"id"),
        tlv(0x20, ssl),
        tlv(0x30, b"net"),
        tlv(0xe1, b""),
        tlv(0x01, b"again"),
    ];
    emit_v2(ip("192.0.2.1:1", "192.0.2.2:2"), &tlvs, false, &mut out);
    let header = parse(&out).unwrap().unwrap();
    assert_eq!(header.tlvs.iter().collect::<Vec<_>>(), tlvs);
    let check = |name: &str, expected: Option<&[u8]>| {
        let name = TlvName::parse(name.as_bytes()).unwrap();
        assert_eq!(header.tlvs.find(name), expected.map(TlvValue::Bytes));
    };
    check("alpn", Some(b"h2"));
    check("authority", Some(b"example.org"));
    check("unique_id", Some(b"id"));
    check("ssl", Some(ssl));
    check("netns", Some(b"net"));
    check("0xE1", Some(b""));
    check("0xe2", None);
    check("ssl_version", Some(b"TLSv1.3"));
    check("ssl_cn", Some(b"c"));
    check("ssl_cipher", None);
    check("ssl_sig_alg", None);
    check("ssl_key_alg", None);
    check("ssl_0x99", Some(b"z"));
    let verify = TlvName::parse(b"ssl_verify").unwrap();
    assert_eq!(header.tlvs.find(verify), Some(TlvValue::Number(0x102)));
    for name in [
        "", "ALPN", "ssl_", "ssl_alpn", "version", "0x", "0x100", "0x+1", "0xg",
    ] {
        assert_eq!(TlvName::parse(name.as_bytes()), None, "{name}");
    }
}

#[test]
fn a_field_about_tls_that_is_too_short_tells_nothing() {
    let mut out = Vec::new();
    let tlv = Tlv {
        kind: 0x20,
        value: b"\x01\0\0\0",
    };
    emit_v2(None, &[], false, &mut out);
    assert_eq!(parse(&out).unwrap().unwrap().ends, None);
    out.clear();
    emit_v2(ip("[::1]:1", "[::1]:2"), &[tlv], false, &mut out);
    let header = parse(&out).unwrap().unwrap();
    for name in [TlvName::SslVerify, TlvName::Ssl(0x21)] {
        assert_eq!(header.tlvs.find(name), None);
    }
}

#[test]
fn a_wrong_checksum_is_a_fault() {
    let mut out = b"before".to_vec();
    let tlv = Tlv {
        kind: 0x02,
        value: b"a",
    };
    let ends = ip("192.0.2.1:1", "192.0.2.2:2");
    emit_v2(ends, &[tlv], true, &mut out);
    let header = out.split_off(6);
    let found = parse_at_every_split(&header).unwrap().unwrap();
    assert_eq!((found.ends, found.len), (ends, header.len()));
    // Every byte of the addresses, the fields and the sum counts.
    for at in (16..28).chain(31..32).chain(35..39) {
        let mut wrong = header.clone();
        wrong[at] ^= 0x10;
        assert_eq!(parse(&wrong), Err(ProxyProtocolFault::Checksum), "{at}");
    }
    let sum = &header[header.len() - 7..];
    let twice = v2(0x21, 0x11, &[&header[16..], sum].concat());
    assert_eq!(parse(&twice), Err(ProxyProtocolFault::Checksum));
    let short = [IPV4_ENDS, &[3, 0, 3, 0, 0, 0]].concat();
    check_v2(0x21, 0x11, &short, Err(ProxyProtocolFault::Checksum));
}

#[test]
fn what_is_emitted_is_read_again() {
    let unix = Ends::Unix {
        source: b"",
        destination: b"/run/x",
    };
    let of_two_families = ip("192.0.2.1:1", "[::1]:2");
    let check = |ends: Option<Ends<'_>>, line: &str, read_v2: Option<Ends<'_>>| {
        let mut out = Vec::new();
        emit_v1(ends, &mut out);
        assert_eq!(String::from_utf8(out.clone()).unwrap(), line);
        assert_eq!(parse(&out).unwrap().unwrap().len, out.len());
        for has_checksum in [false, true] {
            let mut out = Vec::new();
            emit_v2(ends, &[], has_checksum, &mut out);
            let header = parse(&out).unwrap().unwrap();
            assert_eq!((header.ends, header.len), (read_v2, out.len()));
        }
    };
    let ipv4 = ip("192.0.2.1:1234", "198.51.100.2:80");
    check(ipv4, "PROXY TCP4 192.0.2.1 198.51.100.2 1234 80\r\n", ipv4);
    let ipv6 = ip("[2001:db8::1]:1", "[::1]:65535");
    check(ipv6, "PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", ipv6);
    check(Some(unix), "PROXY UNKNOWN\r\n", Some(unix));
    check(of_two_families, "PROXY UNKNOWN\r\n", None);
    check(None, "PROXY UNKNOWN\r\n", None);
}

#[test]
fn fields_beyond_the_limit_are_left_out() {
    let value = [7; 2000];
    let tlv = Tlv {
        kind: 0xe0,
        value: &value,
    };
    for has_checksum in [false, true] {
        let mut out = Vec::new();
        emit_v2(ip("[::1]:1", "[::1]:2"), &[tlv; 3], has_checksum, &mut out);
        let header = parse(&out).unwrap().unwrap();
        let kept = header.tlvs.iter().filter(|found| *found == tlv);
        assert_eq!(kept.count(), 2);
    }
}
