//! Extension headers between the header of an IPv6 packet and what it carries (RFC 8200 4).
//!
//! ```text
//! | next header, 1 | length - 1 in units of 8, 1 | by kind | ...     hop-by-hop, destination options, routing
//! | next header, 1 | 0 | offset, 13 bits | 0 | M | ident, 4 |        fragment
//! ```

use crate::Malformed;
use crate::icmpv6::{CODE_HEADER_FIELD, CODE_NEXT_HEADER, CODE_OPTION};
use crate::protocol::Protocol;

/// Bytes of a fragment header.
pub const FRAGMENT_HEADER_BYTES: usize = 8;

/// What lies behind the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// What it is. Of a fragment this is what the fragment header says follows in the whole datagram.
    pub protocol: Protocol,
    /// Where it begins, in bytes from the first extension header.
    pub offset: usize,
    /// The packet is one piece of a datagram, whose extension headers go on behind this one.
    pub fragment: Option<FragmentHeader>,
    /// Where in the packet `protocol` is named, for a host that does not know it (RFC 4443 3.4).
    pub named_at: u32,
}

/// A fragment header (RFC 8200 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    pub next_header: Protocol,
    /// Where in the datagram this fragment lies, in bytes; a multiple of 8.
    pub offset: u16,
    pub more_fragments: bool,
    pub ident: u32,
}

/// Why a packet is dropped because of its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Without an answer.
    Malformed(Malformed),
    /// More headers or options than are needed (RFC 8504 5.3). Without an answer.
    TooMany,
    /// An unknown option says that the packet is to be dropped (RFC 8200 4.2). Without an answer.
    Option,
    /// With a parameter problem as an answer.
    Problem {
        code: u8,
        /// From the beginning of the packet.
        pointer: u32,
        /// Also if the packet was sent to a group.
        also_multicast: bool,
    },
}

/// Where a walk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind the IPv6 header.
    Packet,
    /// At the front of a reassembled datagram, or of its first fragment.
    Datagram,
}

/// Walks over the extension headers at the front of `bytes`, the first of which is a `next_header`. It ends at a
/// fragment header, except at one that says that there are no other fragments (RFC 6946 4).
pub fn walk(next_header: Protocol, bytes: &[u8], start: Start) -> Result<Upper, Refused> {
    let mut walk = Walk {
        upper: Upper {
            protocol: next_header,
            offset: 0,
            fragment: None,
            named_at: NEXT_HEADER_AT,
        },
        bytes,
        start,
        options: 0,
        fragments: start == Start::Datagram,
    };
    for _ in 0..=HEADERS_MAX {
        if walk.step()? {
            return Ok(walk.upper);
        }
    }
    Err(Refused::TooMany)
}

impl FragmentHeader {
    /// The header and its length in bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let &[next_header, _, c, d, e, f, g, h] = bytes
            .first_chunk::<FRAGMENT_HEADER_BYTES>()
            .ok_or(Malformed::Short)?;
        let offset = u16::from_be_bytes([c, d]);
        let header = Self {
            next_header: Protocol(next_header),
            offset: offset & !7,
            more_fragments: offset & 1 != 0,
            ident: u32::from_be_bytes([e, f, g, h]),
        };
        Ok((header, FRAGMENT_HEADER_BYTES))
    }

    /// Whether there are no other fragments (RFC 6946 1).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more_fragments
    }

    /// Writes the header; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`FRAGMENT_HEADER_BYTES`].
    pub fn emit(&self, into: &mut [u8]) -> usize {
        debug_assert!(self.offset.is_multiple_of(8), "{self:?}");
        let bytes = into
            .first_chunk_mut::<FRAGMENT_HEADER_BYTES>()
            .expect("the caller reserves room for the header");
        let offset = self.offset | u16::from(self.more_fragments);
        bytes[0..2].copy_from_slice(&[self.next_header.0, 0]);
        bytes[2..4].copy_from_slice(&offset.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.ident.to_be_bytes());
        FRAGMENT_HEADER_BYTES
    }
}

struct Walk<'a> {
    upper: Upper,
    bytes: &'a [u8],
    start: Start,
    /// Options met so far, padding left out.
    options: usize,
    /// A fragment header has been passed: there is no second one.
    fragments: bool,
}

impl<'a> Walk<'a> {
    /// Passes one header; says whether that was no extension header any more.
    fn step(&mut self) -> Result<bool, Refused> {
        match self.upper.protocol {
            Protocol::HOP_BY_HOP => {
                // RFC 8200 4.1: only right behind the IPv6 header.
                if self.upper.offset != 0 || self.start == Start::Datagram {
                    return Err(Refused::Problem {
                        code: CODE_NEXT_HEADER,
                        pointer: self.upper.named_at,
                        also_multicast: false,
                    });
                }
                self.options()?;
            }
            Protocol::DESTINATION_OPTIONS => self.options()?,
            Protocol::ROUTING => self.routing()?,
            Protocol::FRAGMENT => return self.fragment(),
            _ => return Ok(true),
        }
        Ok(false)
    }

    fn options(&mut self) -> Result<(), Refused> {
        let at = self.position() + 2;
        let mut rest = self.take_header()?;
        let len = rest.len();
        while let Some((&kind, behind)) = rest.split_first() {
            if kind == PAD_1 {
                rest = behind;
                continue;
            }
            let value_len = behind
                .first()
                .ok_or(Refused::Malformed(Malformed::Option))?;
            let end = 2 + usize::from(*value_len);
            let next = rest
                .get(end..)
                .ok_or(Refused::Malformed(Malformed::Option))?;
            if kind != PAD_N {
                self.options += 1;
                if self.options > OPTIONS_MAX {
                    return Err(Refused::TooMany);
                }
                let pointer = at + u32::try_from(len - rest.len()).unwrap_or(u32::MAX);
                meet_unknown(kind, pointer)?;
            }
            rest = next;
        }
        Ok(())
    }

    /// RFC 8200 4.4: no kind of routing is known here. Type 0 is among the unknown ones (RFC 5095 3). A header whose
    /// way is at its end is passed over.
    fn routing(&mut self) -> Result<(), Refused> {
        let at = self.position();
        match self.take_header()? {
            [_, 0, ..] => Ok(()),
            _ => Err(Refused::Problem {
                code: CODE_HEADER_FIELD,
                pointer: at + 2,
                also_multicast: false,
            }),
        }
    }

    fn fragment(&mut self) -> Result<bool, Refused> {
        if self.fragments {
            return Err(Refused::Malformed(Malformed::Version));
        }
        self.fragments = true;
        let named_at = self.position();
        let rest = self.bytes.get(self.upper.offset..).unwrap_or_default();
        let (header, len) = FragmentHeader::parse(rest).map_err(Refused::Malformed)?;
        self.upper.protocol = header.next_header;
        self.upper.offset += len;
        self.upper.named_at = named_at;
        if header.is_atomic() {
            // What may stand in front of other headers of a packet may not stand behind this one.
            self.start = Start::Datagram;
            return Ok(false);
        }
        self.upper.fragment = Some(header);
        Ok(true)
    }

    /// Passes a header that has a length; gives it without its first two bytes.
    fn take_header(&mut self) -> Result<&'a [u8], Refused> {
        let named_at = self.position();
        let rest = self.bytes.get(self.upper.offset..).unwrap_or_default();
        let [next_header, units, ..] = *rest else {
            return Err(Refused::Malformed(Malformed::Short));
        };
        let len = (usize::from(units) + 1) * 8;
        let value = rest
            .get(2..len)
            .ok_or(Refused::Malformed(Malformed::Length))?;
        self.upper.protocol = Protocol(next_header);
        self.upper.offset += len;
        self.upper.named_at = named_at;
        Ok(value)
    }

    /// Where the walk is, from the beginning of the packet.
    fn position(&self) -> u32 {
        let headers = crate::ipv6::HEADER_BYTES + self.upper.offset;
        u32::try_from(headers).unwrap_or(u32::MAX)
    }
}

/// RFC 8200 4.2: the two highest bits of an option say what to do about it if it is not known, and none is.
fn meet_unknown(kind: u8, pointer: u32) -> Result<(), Refused> {
    match kind >> 6 {
        0 => Ok(()),
        1 => Err(Refused::Option),
        bits => Err(Refused::Problem {
            code: CODE_OPTION,
            pointer,
            also_multicast: bits == 2,
        }),
    }
}

/// Where the IPv6 header names what follows it.
const NEXT_HEADER_AT: u32 = 6;

/// Extension headers of one packet. There are five kinds, one of which may occur twice (RFC 8200 4.1).
const HEADERS_MAX: usize = 6;

/// Options of one packet (RFC 8504 5.3).
const OPTIONS_MAX: usize = 8;

const PAD_1: u8 = 0;
const PAD_N: u8 = 1;

#[cfg(test)]
mod tests;
