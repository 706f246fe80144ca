//! Why bytes are not what they should be.

/// What is wrong with a packet; the receiver drops it and counts the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Fewer bytes than the format's header has.
    Short,
    /// A length field that points outside the packet or inside the header.
    Length,
    /// A version or type field with a value that the format does not have.
    Version,
    /// The checksum does not match.
    Checksum,
    /// An option whose length does not fit.
    Option,
}
