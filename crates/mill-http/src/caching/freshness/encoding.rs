//! What a cache on disk keeps of freshness.

use super::{Freshness, LifetimeSource};
use crate::status::Status;

/// Bytes of an encoded [`Freshness`].
pub const FRESHNESS_BYTES: usize = 36;

const SOURCES: [LifetimeSource; 7] = [
    LifetimeSource::None,
    LifetimeSource::SMaxage,
    LifetimeSource::MaxAge,
    LifetimeSource::Expires,
    LifetimeSource::Heuristic,
    LifetimeSource::Configured,
    LifetimeSource::AccelExpires,
];

impl Freshness {
    /// All of it, in the order of its fields; numbers are little-endian.
    pub fn to_bytes(&self) -> [u8; FRESHNESS_BYTES] {
        let mut bytes = [0; FRESHNESS_BYTES];
        bytes[..8].copy_from_slice(&self.date.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.response_time.to_le_bytes());
        let seconds = [
            self.initial_age,
            self.lifetime,
            self.stale_while_revalidate,
            self.stale_if_error,
        ];
        let (places, _) = bytes[16..32].as_chunks_mut::<4>();
        for (place, seconds) in places.iter_mut().zip(seconds) {
            *place = seconds.to_le_bytes();
        }
        bytes[32..34].copy_from_slice(&self.status.0.to_le_bytes());
        let source = SOURCES.iter().position(|source| *source == self.source);
        bytes[34] = source.and_then(|at| u8::try_from(at).ok()).unwrap_or(0);
        bytes[35] = self.flags;
        bytes
    }

    /// Of such bytes; `None` if they name an unknown source.
    pub fn from_bytes(bytes: &[u8; FRESHNESS_BYTES]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        let long = |at: usize| (u64::from(word(at)) | u64::from(word(at + 1)) << 32).cast_signed();
        debug_assert!(rest.is_empty(), "all of it is words");
        let last = word(8).to_le_bytes();
        Some(Self {
            date: long(0),
            response_time: long(2),
            initial_age: word(4),
            lifetime: word(5),
            stale_while_revalidate: word(6),
            stale_if_error: word(7),
            status: Status(u16::from_le_bytes([last[0], last[1]])),
            source: *SOURCES.get(usize::from(last[2]))?,
            flags: last[3],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_is_read_as_it_was_written() {
        for source in SOURCES {
            let freshness = Freshness {
                date: -5,
                response_time: 1 << 40,
                initial_age: 1,
                lifetime: u32::MAX,
                stale_while_revalidate: 3,
                stale_if_error: 4,
                status: Status(206),
                source,
                flags: 0b1_0101,
            };
            assert_eq!(
                Freshness::from_bytes(&freshness.to_bytes()),
                Some(freshness)
            );
        }
        let mut bytes = [0; FRESHNESS_BYTES];
        bytes[34] = 7;
        assert_eq!(Freshness::from_bytes(&bytes), None);
    }
}
