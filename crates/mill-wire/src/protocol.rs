//! What follows an IP header: IANA's protocol numbers, which IPv6 calls next headers.

/// A number; those in use here have names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 only (RFC 8200 4.3).
    pub const HOP_BY_HOP: Self = Self(0);
    pub const ICMPV4: Self = Self(1);
    pub const TCP: Self = Self(6);
    pub const UDP: Self = Self(17);
    /// IPv6 only (RFC 8200 4.4).
    pub const ROUTING: Self = Self(43);
    /// IPv6 only (RFC 8200 4.5).
    pub const FRAGMENT: Self = Self(44);
    pub const ICMPV6: Self = Self(58);
    /// Nothing follows (RFC 8200 4.7).
    pub const NO_NEXT_HEADER: Self = Self(59);
    /// IPv6 only (RFC 8200 4.6).
    pub const DESTINATION_OPTIONS: Self = Self(60);
}
