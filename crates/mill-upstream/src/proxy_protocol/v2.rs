//! Version 2: a signature, version and command, family and transport, the length of what follows; then addresses by
//! family, and fields.

use super::{Ends, HEADER_BYTES_MAX, Header, ProxyProtocolFault, Tlvs, begins_like};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) fn parse(bytes: &[u8]) -> Result<Option<Header<'_>>, ProxyProtocolFault> {
    if !begins_like(bytes, SIGNATURE) {
        return Err(ProxyProtocolFault::Signature);
    }
    let Some((fixed, _)) = bytes.split_first_chunk::<FIXED_LEN>() else {
        return Ok(None);
    };
    let [.., version_command, family, high, low] = *fixed;
    if version_command >> 4 != 2 {
        return Err(ProxyProtocolFault::Version(version_command >> 4));
    }
    let len = FIXED_LEN + usize::from(u16::from_be_bytes([high, low]));
    if len > HEADER_BYTES_MAX {
        return Err(ProxyProtocolFault::TooLong(len));
    }
    let Some(header) = bytes.get(..len) else {
        return Ok(None);
    };
    let rest = header.get(FIXED_LEN..).unwrap_or_default();
    let (ends, fields) = match version_command & 0x0f {
        // The sender's own connection: what follows is ignored.
        LOCAL => (None, &[][..]),
        PROXY => addresses(family, rest)?,
        command => return Err(ProxyProtocolFault::Command(command)),
    };
    let tlvs = Tlvs::parse(fields, header)?;
    Ok(Some(Header { ends, tlvs, len }))
}

/// The ends, and the bytes behind their addresses.
fn addresses(family: u8, bytes: &[u8]) -> Result<(Option<Ends<'_>>, &[u8]), ProxyProtocolFault> {
    match family {
        TCP_OVER_IPV4 | UDP_OVER_IPV4 => {
            let (all, fields) = split::<12>(bytes)?;
            let [a, b, c, d, e, f, g, h, ports @ ..] = *all;
            let ends = ip_ends(
                Ipv4Addr::new(a, b, c, d).into(),
                Ipv4Addr::new(e, f, g, h).into(),
                ports,
            );
            Ok((Some(ends).filter(|_| family == TCP_OVER_IPV4), fields))
        }
        TCP_OVER_IPV6 | UDP_OVER_IPV6 => {
            let (source, rest) = split::<16>(bytes)?;
            let (destination, rest) = split::<16>(rest)?;
            let (ports, fields) = split::<4>(rest)?;
            let ends = ip_ends(
                Ipv6Addr::from(*source).into(),
                Ipv6Addr::from(*destination).into(),
                *ports,
            );
            Ok((Some(ends).filter(|_| family == TCP_OVER_IPV6), fields))
        }
        UNIX_STREAM | UNIX_DATAGRAM => {
            let (source, rest) = split::<UNIX_PATH_LEN>(bytes)?;
            let (destination, fields) = split::<UNIX_PATH_LEN>(rest)?;
            let ends = Ends::Unix {
                source: without_nuls(source),
                destination: without_nuls(destination),
            };
            Ok((Some(ends).filter(|_| family == UNIX_STREAM), fields))
        }
        // The receiver takes the connection's own addresses. Fields may follow at once.
        UNSPECIFIED => Ok((None, bytes)),
        family => Err(ProxyProtocolFault::Family(family)),
    }
}

fn split<const LEN: usize>(bytes: &[u8]) -> Result<(&[u8; LEN], &[u8]), ProxyProtocolFault> {
    bytes.split_first_chunk().ok_or(ProxyProtocolFault::Short)
}

const fn ip_ends(source: IpAddr, destination: IpAddr, ports: [u8; 4]) -> Ends<'static> {
    let [a, b, c, d] = ports;
    Ends::Ip {
        source: SocketAddr::new(source, u16::from_be_bytes([a, b])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
    }
}

fn without_nuls(mut path: &[u8]) -> &[u8] {
    while let [rest @ .., 0] = path {
        path = rest;
    }
    path
}

pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes up to and with the length.
pub(super) const FIXED_LEN: usize = 16;

/// Commands.
pub(super) const LOCAL: u8 = 0;
pub(super) const PROXY: u8 = 1;

/// Address family and transport.
pub(super) const UNSPECIFIED: u8 = 0x00;
pub(super) const TCP_OVER_IPV4: u8 = 0x11;
const UDP_OVER_IPV4: u8 = 0x12;
pub(super) const TCP_OVER_IPV6: u8 = 0x21;
const UDP_OVER_IPV6: u8 = 0x22;
pub(super) const UNIX_STREAM: u8 = 0x31;
const UNIX_DATAGRAM: u8 = 0x32;

/// Bytes of a path, as in Linux's `sockaddr_un`.
pub(super) const UNIX_PATH_LEN: usize = 108;
