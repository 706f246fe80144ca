//! Messages of neighbour discovery (RFC 4861 4), for Ethernet.
//!
//! ```text
//! | Type, 1 | Code 0, 1 | Checksum, 2 | by type, 4 |    then by type:
//!   router solicitation    nothing
//!   router advertisement   | reachable ms, 4 | retransmit ms, 4 |      hop limit, flags, lifetime in the first word
//!   solicitation           | target, 16 |
//!   advertisement          | target, 16 |                              flags in the first word
//! | option type, 1 | length in units of 8, 1 | value | ...
//! ```
//!
//! Whether the hop limit was 255 and the checksum right is checked where the IPv6 header is.

use crate::Malformed;
use crate::ethernet::MacAddress;
use core::net::Ipv6Addr;

/// The hop limit of every message: one with another has passed a router, and is no neighbour's (RFC 4861 3.1).
pub const HOP_LIMIT: u8 = 255;

/// Where the checksum lies in every message.
pub const CHECKSUM_OFFSET: usize = 2;

/// Bytes of the longest message that is emitted here: an advertisement of a router with all options.
pub const MESSAGE_BYTES_MAX: usize = 16 + 8 + 8 + 32 * Prefixes::COUNT_MAX;

/// A message with the options that mean something to a host; unknown ones are passed over, as RFC 4861 4.6 asks.
/// The checksum is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ndp {
    RouterSolicitation {
        source_mac: Option<MacAddress>,
    },
    RouterAdvertisement(RouterAdvertisement),
    NeighborSolicitation {
        target: Ipv6Addr,
        source_mac: Option<MacAddress>,
    },
    NeighborAdvertisement {
        /// The neighbour is a router.
        router: bool,
        /// It answers a solicitation.
        solicited: bool,
        /// It replaces what is known.
        replaces: bool,
        target: Ipv6Addr,
        target_mac: Option<MacAddress>,
    },
}

/// What a router says of itself and of the link (RFC 4861 4.2). Zeros leave a matter unspecified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterAdvertisement {
    pub hop_limit: u8,
    /// Addresses come from DHCPv6.
    pub managed: bool,
    /// Other settings come from DHCPv6.
    pub other: bool,
    /// Seconds for which it is a default router; 0 if it is none.
    pub lifetime_secs: u16,
    pub reachable_ms: u32,
    pub retransmit_ms: u32,
    pub source_mac: Option<MacAddress>,
    pub mtu: Option<u32>,
    pub prefixes: Prefixes,
}

/// One prefix of the link (RFC 4861 4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    pub prefix: Ipv6Addr,
    /// Bits, 0 to 128.
    pub len: u8,
    pub on_link: bool,
    /// Hosts may make addresses of it (RFC 4862).
    pub autonomous: bool,
    pub valid_secs: u32,
    pub preferred_secs: u32,
}

/// The first prefixes of an advertisement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefixes([Option<PrefixInformation>; Self::COUNT_MAX]);

impl Prefixes {
    /// More than a link has in practice; further ones are passed over.
    pub const COUNT_MAX: usize = 4;

    /// Appends a prefix; says whether there was room.
    pub fn push(&mut self, prefix: PrefixInformation) -> bool {
        match self.0.iter_mut().find(|vacant| vacant.is_none()) {
            Some(vacant) => {
                *vacant = Some(prefix);
                true
            }
            None => false,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &PrefixInformation> {
        self.0.iter().flatten()
    }
}

impl Ndp {
    /// Whether a message of ICMPv6 is one of these.
    pub fn is_kind(kind: u8) -> bool {
        (ROUTER_SOLICITATION..=NEIGHBOR_ADVERTISEMENT).contains(&kind)
    }

    /// The message and its length in bytes, which is all there are: options go on to the end. A code other than zero
    /// is a wrong version (RFC 4861 6.1, 7.1).
    pub fn parse(message: &[u8]) -> Result<(Self, usize), Malformed> {
        let (&[kind, code, _, _, a, b, c, d], rest) =
            message.split_first_chunk::<8>().ok_or(Malformed::Short)?;
        if code != 0 {
            return Err(Malformed::Version);
        }
        let parsed = match kind {
            ROUTER_SOLICITATION => Self::RouterSolicitation {
                source_mac: Options::parse(rest)?.source_mac,
            },
            ROUTER_ADVERTISEMENT => {
                let (&[e, f, g, h, i, j, k, l], rest) =
                    rest.split_first_chunk::<8>().ok_or(Malformed::Short)?;
                let options = Options::parse(rest)?;
                Self::RouterAdvertisement(RouterAdvertisement {
                    hop_limit: a,
                    managed: b & 0x80 != 0,
                    other: b & 0x40 != 0,
                    lifetime_secs: u16::from_be_bytes([c, d]),
                    reachable_ms: u32::from_be_bytes([e, f, g, h]),
                    retransmit_ms: u32::from_be_bytes([i, j, k, l]),
                    source_mac: options.source_mac,
                    mtu: options.mtu,
                    prefixes: options.prefixes,
                })
            }
            NEIGHBOR_SOLICITATION => {
                let (target, rest) = take_target(rest)?;
                Self::NeighborSolicitation {
                    target,
                    source_mac: Options::parse(rest)?.source_mac,
                }
            }
            NEIGHBOR_ADVERTISEMENT => {
                let (target, rest) = take_target(rest)?;
                Self::NeighborAdvertisement {
                    router: a & 0x80 != 0,
                    solicited: a & 0x40 != 0,
                    replaces: a & 0x20 != 0,
                    target,
                    target_mac: Options::parse(rest)?.target_mac,
                }
            }
            _ => return Err(Malformed::Version),
        };
        Ok((parsed, message.len()))
    }

    /// Writes the message with a checksum of zero; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than the message, for which [`MESSAGE_BYTES_MAX`] is enough.
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let mut at = Writer { into, len: 0 };
        match self {
            Self::RouterSolicitation { source_mac } => {
                at.put(&[ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
                at.put_mac(SOURCE_MAC, *source_mac);
            }
            Self::RouterAdvertisement(router) => router.emit(&mut at),
            Self::NeighborSolicitation { target, source_mac } => {
                at.put(&[NEIGHBOR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
                at.put(&target.octets());
                at.put_mac(SOURCE_MAC, *source_mac);
            }
            Self::NeighborAdvertisement {
                router,
                solicited,
                replaces,
                target,
                target_mac,
            } => {
                let flags = bit(*router, 0x80) | bit(*solicited, 0x40) | bit(*replaces, 0x20);
                at.put(&[NEIGHBOR_ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0]);
                at.put(&target.octets());
                at.put_mac(TARGET_MAC, *target_mac);
            }
        }
        at.len
    }
}

impl RouterAdvertisement {
    fn emit(&self, at: &mut Writer<'_>) {
        let flags = bit(self.managed, 0x80) | bit(self.other, 0x40);
        at.put(&[ROUTER_ADVERTISEMENT, 0, 0, 0, self.hop_limit, flags]);
        at.put(&self.lifetime_secs.to_be_bytes());
        at.put(&self.reachable_ms.to_be_bytes());
        at.put(&self.retransmit_ms.to_be_bytes());
        at.put_mac(SOURCE_MAC, self.source_mac);
        if let Some(mtu) = self.mtu {
            at.put(&[MTU, 1, 0, 0]);
            at.put(&mtu.to_be_bytes());
        }
        for prefix in self.prefixes.iter() {
            let flags = bit(prefix.on_link, 0x80) | bit(prefix.autonomous, 0x40);
            at.put(&[PREFIX, 4, prefix.len, flags]);
            at.put(&prefix.valid_secs.to_be_bytes());
            at.put(&prefix.preferred_secs.to_be_bytes());
            at.put(&[0; 4]);
            at.put(&prefix.prefix.octets());
        }
    }
}

/// The group that solicitations for `address` are sent to (RFC 4291 2.7.1): its last three bytes behind a fixed
/// prefix.
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let prefix: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(prefix | (address.to_bits() & 0xff_ffff))
}

/// Every node of the link (RFC 4291 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Every router of the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

#[derive(Default)]
struct Options {
    source_mac: Option<MacAddress>,
    target_mac: Option<MacAddress>,
    mtu: Option<u32>,
    prefixes: Prefixes,
}

impl Options {
    /// RFC 4861 4.6: an option without length spoils the whole message.
    fn parse(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let mut options = Self::default();
        while let [kind, rest @ ..] = bytes {
            let units = rest.first().copied().unwrap_or(0);
            let len = usize::from(units) * 8;
            let value = bytes.get(2..len).ok_or(Malformed::Option)?;
            options.take(*kind, value);
            bytes = bytes.get(len..).unwrap_or_default();
        }
        Ok(options)
    }

    /// One of a wrong length for its kind is passed over; of one that occurs twice the first counts.
    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (SOURCE_MAC, &[a, b, c, d, e, f]) => {
                self.source_mac
                    .get_or_insert(MacAddress([a, b, c, d, e, f]));
            }
            (TARGET_MAC, &[a, b, c, d, e, f]) => {
                self.target_mac
                    .get_or_insert(MacAddress([a, b, c, d, e, f]));
            }
            (MTU, &[_, _, a, b, c, d]) => {
                self.mtu.get_or_insert(u32::from_be_bytes([a, b, c, d]));
            }
            (
                PREFIX,
                &[
                    len,
                    flags,
                    a,
                    b,
                    c,
                    d,
                    e,
                    f,
                    g,
                    h,
                    _,
                    _,
                    _,
                    _,
                    ref prefix @ ..,
                ],
            ) if len <= 128 => {
                if let Ok(prefix) = <[u8; 16]>::try_from(prefix) {
                    // What is beyond the first few is not needed.
                    self.prefixes.push(PrefixInformation {
                        prefix: Ipv6Addr::from(prefix),
                        len,
                        on_link: flags & 0x80 != 0,
                        autonomous: flags & 0x40 != 0,
                        valid_secs: u32::from_be_bytes([a, b, c, d]),
                        preferred_secs: u32::from_be_bytes([e, f, g, h]),
                    });
                }
            }
            _ => {}
        }
    }
}

struct Writer<'a> {
    into: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.into
            .get_mut(self.len..end)
            .expect("the caller reserves room for the message")
            .copy_from_slice(bytes);
        self.len = end;
    }

    fn put_mac(&mut self, kind: u8, mac: Option<MacAddress>) {
        if let Some(mac) = mac {
            self.put(&[kind, 1]);
            self.put(&mac.0);
        }
    }
}

fn take_target(bytes: &[u8]) -> Result<(Ipv6Addr, &[u8]), Malformed> {
    let (target, rest) = bytes.split_first_chunk::<16>().ok_or(Malformed::Short)?;
    Ok((Ipv6Addr::from(*target), rest))
}

const fn bit(set: bool, mask: u8) -> u8 {
    if set { mask } else { 0 }
}

/// Types of messages and options, as registered with IANA.
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;

#[cfg(test)]
mod tests;
