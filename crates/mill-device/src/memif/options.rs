//! The settings of a memif interface.

use super::handshake::{LOG2_RING_SIZE_MAX, Terms};
use super::layout::Layout;
use crate::memif::handshake::Agreed;
use std::fmt;

/// Configuration of an interface.
#[derive(Clone, PartialEq, Eq)]
pub struct MemifOptions {
    /// This end's Ethernet address.
    pub address: [u8; 6],
    /// Bytes of IP packet in a frame.
    pub mtu: u16,
    /// The interface's number at the socket.
    pub id: u32,
    /// The secret that a slave has to send, at most 24 bytes; empty: none.
    pub secret: String,
    /// Rings in each direction: a slave makes this many, a master accepts at most this many.
    pub rings: u16,
    /// Descriptors of a ring: a power of two up to 2^14. A master accepts smaller rings too.
    pub ring_size: u16,
    /// Bytes of each of a slave's buffers. A frame that does not fit into one takes several.
    pub buffer_bytes: u32,
    /// Frames of up to 64 KiB and no checksums towards a peer that announces the same, as only Millstream does. For
    /// other peers frames are segmented and checksums completed here.
    pub offload: bool,
    /// The peer should not signal: the caller polls.
    pub polling: bool,
}

/// Why options are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionError {
    Mtu,
    Secret,
    Rings,
    RingSize,
    Memory,
}

impl Default for MemifOptions {
    fn default() -> Self {
        Self {
            address: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
            id: 0,
            secret: String::new(),
            rings: 1,
            ring_size: RING_SIZE,
            buffer_bytes: BUFFER_BYTES,
            offload: true,
            polling: false,
        }
    }
}

impl MemifOptions {
    /// Checks that an interface can have these options.
    pub fn check(&self) -> Result<(), OptionError> {
        if self.mtu < MTU_MIN {
            return Err(OptionError::Mtu);
        }
        if self.secret.len() > SECRET_BYTES || self.secret.bytes().any(|byte| byte == 0) {
            return Err(OptionError::Secret);
        }
        if !(1..=RINGS_MAX).contains(&self.rings) {
            return Err(OptionError::Rings);
        }
        if !self.ring_size.is_power_of_two() || self.ring_size > 1 << LOG2_RING_SIZE_MAX {
            return Err(OptionError::RingSize);
        }
        // The largest frame has to fit into an empty ring.
        let ring_bytes = u64::from(self.ring_size) * u64::from(self.buffer_bytes);
        let frame_bytes = u64::from(if self.offload { u16::MAX } else { self.mtu }) + FRAME_EXTRA;
        if self.buffer_bytes < BUFFER_BYTES_MIN || ring_bytes < frame_bytes {
            return Err(OptionError::Memory);
        }
        let agreed = Agreed {
            s2m_rings: self.rings,
            m2s_rings: self.rings,
            log2_ring_size: self.log2_ring_size(),
            offload: self.offload,
        };
        Layout::new(agreed, self.buffer_bytes).map_or(Err(OptionError::Memory), |_| Ok(()))
    }

    /// The terms for the handshake.
    pub(crate) fn terms(&self) -> Terms {
        let mut secret = [0; SECRET_BYTES];
        for (to, from) in secret.iter_mut().zip(self.secret.bytes()) {
            *to = from;
        }
        Terms {
            id: self.id,
            secret,
            rings: self.rings,
            log2_ring_size: self.log2_ring_size(),
            offload: self.offload,
        }
    }

    fn log2_ring_size(&self) -> u8 {
        u8::try_from(self.ring_size.trailing_zeros()).unwrap_or(0)
    }
}

/// Does not print the secret.
impl fmt::Debug for MemifOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemifOptions")
            .field("address", &self.address)
            .field("mtu", &self.mtu)
            .field("id", &self.id)
            .field("rings", &self.rings)
            .field("ring_size", &self.ring_size)
            .field("buffer_bytes", &self.buffer_bytes)
            .field("offload", &self.offload)
            .field("polling", &self.polling)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtu => write!(formatter, "an MTU is at least {MTU_MIN} bytes"),
            Self::Secret => write!(
                formatter,
                "a secret is at most {SECRET_BYTES} bytes, none of them 0"
            ),
            Self::Rings => write!(
                formatter,
                "there are 1 to {RINGS_MAX} rings in each direction"
            ),
            Self::RingSize => write!(
                formatter,
                "a ring has a power of two of descriptors, at most 2^{LOG2_RING_SIZE_MAX}"
            ),
            Self::Memory => write!(
                formatter,
                "buffers have at least {BUFFER_BYTES_MIN} bytes, those of one ring hold the largest frame, and all \
                 of them less than 4 GiB"
            ),
        }
    }
}

impl std::error::Error for OptionError {}

/// Bytes of the secret's field.
const SECRET_BYTES: usize = 24;

/// Bytes of IP packet that every link has to carry (RFC 791 3.2).
const MTU_MIN: u16 = 68;

/// Rings in each direction, at most: VPP's limit.
const RINGS_MAX: u16 = 256;

/// VPP, libmemif and DPDK default to the same: 1024 buffers of 2 KiB. 8 MiB for two rings, of which small frames touch
/// only the start of each buffer.
const RING_SIZE: u16 = 1024;
const BUFFER_BYTES: u32 = 2048;

/// Smaller ones would need a descriptor for each cache line.
const BUFFER_BYTES_MIN: u32 = 64;

/// An Ethernet header with two tags.
const FRAME_EXTRA: u64 = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_accepted_or_refused_with_the_reason() {
        let check = |change: fn(&mut MemifOptions), expected| {
            let mut options = MemifOptions::default();
            change(&mut options);
            assert_eq!(options.check(), expected, "{options:?}");
        };
        check(|_| {}, Ok(()));
        check(|options| options.mtu = 67, Err(OptionError::Mtu));
        check(|options| options.mtu = 68, Ok(()));
        check(|options| options.secret = "x".repeat(24), Ok(()));
        check(
            |options| options.secret = "x".repeat(25),
            Err(OptionError::Secret),
        );
        check(
            |options| options.secret = "a\0b".to_owned(),
            Err(OptionError::Secret),
        );
        check(|options| options.rings = 0, Err(OptionError::Rings));
        check(|options| options.rings = 257, Err(OptionError::Rings));
        check(|options| options.ring_size = 0, Err(OptionError::RingSize));
        check(
            |options| options.ring_size = 1000,
            Err(OptionError::RingSize),
        );
        check(|options| options.ring_size = 1 << 14, Ok(()));
        check(
            |options| options.ring_size = 1 << 15,
            Err(OptionError::RingSize),
        );
        // 32 buffers of 2 KiB are 65 536 bytes, the largest frame has 65 557.
        check(|options| options.ring_size = 32, Err(OptionError::Memory));
        check(|options| options.ring_size = 64, Ok(()));
        check(
            |options| (options.ring_size, options.offload) = (1, false),
            Ok(()),
        );
        check(
            |options| options.buffer_bytes = 63,
            Err(OptionError::Memory),
        );
        check(
            |options| (options.ring_size, options.buffer_bytes) = (1 << 14, 1 << 17),
            Err(OptionError::Memory),
        );
    }

    #[test]
    fn a_secret_is_not_printed() {
        let options = MemifOptions {
            secret: "sesame".to_owned(),
            ..MemifOptions::default()
        };
        assert!(!format!("{options:?} {:?}", options.terms()).contains("sesame"));
    }
}
