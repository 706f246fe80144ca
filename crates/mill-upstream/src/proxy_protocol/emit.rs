//! Headers for the servers behind us.

use super::crc32c::crc32c;
use super::tlv::{CRC32C, CRC32C_LEN};
use super::{Ends, HEADER_BYTES_MAX, Tlv, v2};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

/// Appends a line of version 1. Ends that are no IP addresses of one family are UNKNOWN, as in nginx.
pub fn emit_v1(ends: Option<Ends<'_>>, out: &mut Vec<u8>) {
    let Some((source, destination)) = ip_ends(ends) else {
        return out.extend_from_slice(b"PROXY UNKNOWN\r\n");
    };
    let family = if source.is_ipv4() { 4 } else { 6 };
    let (source_port, destination_port) = (source.port(), destination.port());
    let (source, destination) = (source.ip(), destination.ip());
    // Writing to a vector cannot fail.
    let _ = write!(
        out,
        "PROXY TCP{family} {source} {destination} {source_port} {destination_port}\r\n"
    );
}

/// Appends a header of version 2. Without `ends` it is LOCAL. Fields that exceed [`HEADER_BYTES_MAX`] are left out, and
/// those that the header has itself: the checksum, which `has_checksum` adds.
pub fn emit_v2(ends: Option<Ends<'_>>, tlvs: &[Tlv<'_>], has_checksum: bool, out: &mut Vec<u8>) {
    let start = out.len();
    let command = if ends.is_some() { v2::PROXY } else { v2::LOCAL };
    out.extend_from_slice(v2::SIGNATURE);
    out.extend_from_slice(&[0x20 | command, v2::UNSPECIFIED, 0, 0]);
    let family = emit_addresses(ends, out);
    let checksum_len = if has_checksum { 3 + CRC32C_LEN } else { 0 };
    for tlv in tlvs.iter().filter(|tlv| tlv.kind != CRC32C) {
        let len = out.len() - start + 3 + tlv.value.len() + checksum_len;
        if len <= HEADER_BYTES_MAX {
            emit_tlv(*tlv, out);
        }
    }
    if has_checksum {
        let value = &[0; CRC32C_LEN];
        emit_tlv(
            Tlv {
                kind: CRC32C,
                value,
            },
            out,
        );
    }
    let len = u16::try_from(out.len() - start - v2::FIXED_LEN).unwrap_or(u16::MAX);
    let header = out.get_mut(start..).unwrap_or_default();
    if let Some([.., family_at, high, low]) = header.first_chunk_mut::<{ v2::FIXED_LEN }>() {
        *family_at = family;
        [*high, *low] = len.to_be_bytes();
    }
    if has_checksum {
        let sum = crc32c(&[header]);
        if let Some(place) = header.last_chunk_mut() {
            *place = sum.to_be_bytes();
        }
    }
}

/// Returns the family. Addresses of two families have none.
fn emit_addresses(ends: Option<Ends<'_>>, out: &mut Vec<u8>) -> u8 {
    if let Some(Ends::Unix {
        source,
        destination,
    }) = ends
    {
        for path in [source, destination] {
            let end = out.len() + v2::UNIX_PATH_LEN;
            out.extend(path.iter().take(v2::UNIX_PATH_LEN));
            out.resize(end, 0);
        }
        return v2::UNIX_STREAM;
    }
    let Some((source, destination)) = ip_ends(ends) else {
        return v2::UNSPECIFIED;
    };
    for address in [source, destination] {
        match address.ip() {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        }
    }
    for address in [source, destination] {
        out.extend_from_slice(&address.port().to_be_bytes());
    }
    match source {
        SocketAddr::V4(_) => v2::TCP_OVER_IPV4,
        SocketAddr::V6(_) => v2::TCP_OVER_IPV6,
    }
}

fn ip_ends(ends: Option<Ends<'_>>) -> Option<(SocketAddr, SocketAddr)> {
    match ends? {
        Ends::Ip {
            source,
            destination,
        } if source.is_ipv4() == destination.is_ipv4() => Some((source, destination)),
        _ => None,
    }
}

fn emit_tlv(tlv: Tlv<'_>, out: &mut Vec<u8>) {
    let len = u16::try_from(tlv.value.len()).unwrap_or(u16::MAX);
    let [high, low] = len.to_be_bytes();
    out.extend_from_slice(&[tlv.kind, high, low]);
    out.extend_from_slice(tlv.value.get(..len.into()).unwrap_or_default());
}
