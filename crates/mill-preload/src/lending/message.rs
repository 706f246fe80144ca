//! What a child says to the process that lends it connections: a datagram, in this machine's byte order.

use core::ffi::c_int;
use mill_sockets::slab::Number;

/// A kind, a connection's number, and of an option level, name and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// The child uses it from now on, by the socket that comes with this.
    Claim(Number),
    /// The child has closed it without use.
    Release(Number),
    Set(Number, c_int, c_int, &'a [u8]),
}

/// Bytes of the longest one.
pub(crate) const BYTES_MAX: usize = HEAD_BYTES + 8 + VALUE_MAX;

/// Bytes of an option's value: no number, time or name of an algorithm is longer.
pub(crate) const VALUE_MAX: usize = 64;

const HEAD_BYTES: usize = 9;

const CLAIM: u8 = 1;
const RELEASE: u8 = 2;
const SET: u8 = 3;

impl<'a> Message<'a> {
    /// `None` for what is none.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [kind, number @ ..] = *head;
        let number = Number::from_bits(u64::from_ne_bytes(number));
        Some(match kind {
            CLAIM => Self::Claim(number),
            RELEASE => Self::Release(number),
            SET => {
                let (level, rest) = rest.split_first_chunk()?;
                let (name, value) = rest.split_first_chunk()?;
                let [level, name] = [*level, *name].map(c_int::from_ne_bytes);
                Self::Set(number, level, name, value)
            }
            _ => return None,
        })
    }

    /// Its bytes; a value beyond [`VALUE_MAX`] is cut.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let (kind, number) = match self {
            Self::Claim(number) => (CLAIM, number),
            Self::Release(number) => (RELEASE, number),
            Self::Set(number, ..) => (SET, number),
        };
        let mut bytes = vec![kind];
        bytes.extend(number.to_bits().to_ne_bytes());
        if let Self::Set(_, level, name, value) = self {
            bytes.extend(level.to_ne_bytes());
            bytes.extend(name.to_ne_bytes());
            bytes.extend(value.iter().take(VALUE_MAX));
        }
        bytes
    }
}
