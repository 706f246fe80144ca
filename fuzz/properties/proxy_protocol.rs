//! What must hold of any bytes that are taken for a header of the PROXY protocol. Used by the fuzz target and by the
//! ordinary test that replays the corpus.

use mill_upstream::proxy_protocol::{
    Ends, HEADER_BYTES_MAX, Header, TlvName, emit_v1, emit_v2, parse,
};

/// Panics if the codec breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let whole = parse(input);
    for len in (0..input.len()).take(HEADER_BYTES_MAX + 2) {
        let part = parse(&input[..len]);
        match whole {
            Ok(Some(header)) if len >= header.len => assert_eq!(part, whole),
            Ok(_) => assert_eq!(part, Ok(None)),
            Err(_) => assert!(part == Ok(None) || part == whole),
        }
    }
    match whole {
        Ok(Some(header)) => is_the_same_when_emitted(&header, input),
        Ok(None) => assert!(input.len() < HEADER_BYTES_MAX),
        Err(_) => {}
    }
}

fn is_the_same_when_emitted(header: &Header<'_>, input: &[u8]) {
    assert!(header.len <= input.len().min(HEADER_BYTES_MAX));
    for name in ["alpn", "ssl", "ssl_cn", "ssl_verify", "0xff", "ssl_0x00"] {
        let name = TlvName::parse(name.as_bytes()).expect("a known name");
        header.tlvs.find(name);
    }
    let checksum = 0x03;
    let tlvs: Vec<_> = header
        .tlvs
        .iter()
        .filter(|tlv| tlv.kind != checksum)
        .collect();
    // A header of LOCAL has no fields, and one of datagrams is not emitted.
    if header.ends.is_some() {
        let mut out = Vec::new();
        emit_v2(header.ends, &tlvs, false, &mut out);
        let again = parse(&out).expect("a good header").expect("a whole header");
        assert_eq!(again.ends, header.ends);
        assert!(again.tlvs.iter().eq(tlvs.iter().copied()));
    }
    let mut out = Vec::new();
    emit_v1(header.ends, &mut out);
    let again = parse(&out).expect("a good line").expect("a whole line");
    let expected = header.ends.filter(|ends| matches!(ends, Ends::Ip { .. }));
    assert_eq!(again.ends, expected);
}
