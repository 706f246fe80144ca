//! Segments TCP as a device would (TSO), for peers that accept no more than their MTU.

use crate::checksum;
use mill_stack::link::{PartialChecksum, Segmentation};
use mill_wire::checksum::Sum;

/// Calls `each` with the frames that `frame` stands for, in order and with complete checksums, built in `piece`. Does
/// nothing if `frame` does not match the other arguments.
pub(crate) fn cut(
    frame: &[u8],
    checksum: PartialChecksum,
    segmentation: Segmentation,
    piece: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) {
    let header_len = usize::from(segmentation.header_len);
    let Some((header, payload)) = frame.split_at_checked(header_len) else {
        return;
    };
    let mss = usize::from(segmentation.mss.max(1));
    let last = payload.len().div_ceil(mss).saturating_sub(1);
    for (number, part) in payload.chunks(mss).enumerate() {
        piece.clear();
        piece.extend_from_slice(header);
        piece.extend_from_slice(part);
        let position = Position {
            number,
            offset: number * mss,
            is_last: number == last,
        };
        let transport = usize::from(checksum.start);
        if position
            .rewrite(piece, transport, segmentation.is_ipv6)
            .is_none()
        {
            return;
        }
        checksum::complete(piece);
        each(piece);
    }
}

/// The position of a segment in the whole.
struct Position {
    number: usize,
    /// Bytes of payload before it.
    offset: usize,
    is_last: bool,
}

impl Position {
    /// Rewrites the headers of the whole for this segment.
    fn rewrite(&self, piece: &mut [u8], transport: usize, is_ipv6: bool) -> Option<()> {
        let tcp = piece.get_mut(transport..)?;
        let sequence = tcp.get_mut(4..8)?.first_chunk_mut::<4>()?;
        let offset = u32::try_from(self.offset).ok()?;
        *sequence = u32::from_be_bytes(*sequence)
            .wrapping_add(offset)
            .to_be_bytes();
        let flags = tcp.get_mut(13)?;
        if !self.is_last {
            *flags &= !(FIN | PSH);
        }
        if self.number > 0 {
            // RFC 3168 6.1.2: CWR is set on the first segment only.
            *flags &= !CWR;
        }
        if is_ipv6 {
            self.rewrite_ipv6(piece, transport)
        } else {
            self.rewrite_ipv4(piece, transport)
        }
    }

    fn rewrite_ipv6(&self, piece: &mut [u8], transport: usize) -> Option<()> {
        // The stack writes no extension headers before TCP.
        let at = transport.checked_sub(IPV6_BYTES)?;
        let len = u16::try_from(piece.len().checked_sub(transport)?).ok()?;
        let field = piece.get_mut(at + 4..)?.first_chunk_mut::<2>()?;
        *field = len.to_be_bytes();
        Some(())
    }

    fn rewrite_ipv4(&self, piece: &mut [u8], transport: usize) -> Option<()> {
        // The stack writes no IPv4 options.
        let at = transport.checked_sub(IPV4_BYTES)?;
        let len = u16::try_from(piece.len().checked_sub(at)?).ok()?;
        let header = piece.get_mut(at..)?.first_chunk_mut::<IPV4_BYTES>()?;
        [header[2], header[3]] = len.to_be_bytes();
        // RFC 6864 4.1: equal identifications are allowed with DF; different ones help a receiver that reassembles.
        let number = u16::try_from(self.number).ok()?;
        let identification = u16::from_be_bytes([header[4], header[5]]).wrapping_add(number);
        [header[4], header[5]] = identification.to_be_bytes();
        [header[10], header[11]] = [0, 0];
        [header[10], header[11]] = Sum::of(header.as_slice()).checksum().to_be_bytes();
        Some(())
    }
}

// Bytes of headers without options.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;

// Flags of TCP in the byte at 13 (RFC 9293 3.1, RFC 3168 6.1).
const FIN: u8 = 1;
const PSH: u8 = 8;
const CWR: u8 = 0x80;

#[cfg(test)]
mod tests;
