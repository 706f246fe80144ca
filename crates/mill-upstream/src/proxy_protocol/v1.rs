//! Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 1234 80` and CRLF.

use super::{Ends, Header, ProxyProtocolFault, Tlvs, begins_like};
use std::net::{IpAddr, SocketAddr};

pub(super) fn parse(bytes: &[u8]) -> Result<Option<Header<'_>>, ProxyProtocolFault> {
    if !begins_like(bytes, SIGNATURE) {
        return Err(ProxyProtocolFault::Signature);
    }
    let seen = bytes.get(..LINE_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        return match seen.len() {
            LINE_BYTES_MAX => Err(ProxyProtocolFault::Line),
            _ => Ok(None),
        };
    };
    let line = seen.get(..end).and_then(|line| line.strip_suffix(b"\r"));
    let rest = line.and_then(|line| line.strip_prefix(SIGNATURE));
    let rest = rest.ok_or(ProxyProtocolFault::Line)?;
    Ok(Some(Header {
        ends: ends(rest)?,
        tlvs: Tlvs::NONE,
        len: end + 1,
    }))
}

/// What stands behind `PROXY `. After UNKNOWN anything may, and is ignored.
fn ends(text: &[u8]) -> Result<Option<Ends<'static>>, ProxyProtocolFault> {
    let text = std::str::from_utf8(text).map_err(|_| ProxyProtocolFault::Line)?;
    let mut words = text.split(' ');
    let is_v6 = match words.next() {
        Some("UNKNOWN") => return Ok(None),
        Some("TCP4") => false,
        Some("TCP6") => true,
        _ => return Err(ProxyProtocolFault::Line),
    };
    let words = [
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
    ];
    let [
        Some(source),
        Some(destination),
        Some(source_port),
        Some(destination_port),
        None,
    ] = words
    else {
        return Err(ProxyProtocolFault::Line);
    };
    let address = |text, port| {
        let found = address(text, is_v6).zip(self::port(port));
        let found = found.map(|(address, port)| SocketAddr::new(address, port));
        found.ok_or(ProxyProtocolFault::Address)
    };
    Ok(Some(Ends::Ip {
        source: address(source, source_port)?,
        destination: address(destination, destination_port)?,
    }))
}

fn address(text: &str, is_v6: bool) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    (address.is_ipv6() == is_v6).then_some(address)
}

/// Digits, without zeros before them.
fn port(text: &str) -> Option<u16> {
    let is_canonical = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
    if is_canonical {
        text.parse().ok()
    } else {
        None
    }
}

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

/// Bytes of the longest line: IPv6 addresses in full after UNKNOWN, with CRLF.
pub(super) const LINE_BYTES_MAX: usize = 107;
