//! What poll(2) and epoll(7) tell of a socket, in the bits that both share.

use core::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of conditions (`POLLIN` is `EPOLLIN`, and so on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness(pub u32);

impl Readiness {
    pub const NONE: Self = Self(0);
    /// Bytes, a connection to accept, or an end.
    pub const IN: Self = Self(0x1);
    /// There is room to write, or nothing will ever be written.
    pub const OUT: Self = Self(0x4);
    pub const ERR: Self = Self(0x8);
    /// Both directions are over.
    pub const HUP: Self = Self(0x10);
    /// `POLLRDNORM` and `POLLWRNORM`, which a TCP socket sets beside `IN` and `OUT`.
    pub const RDNORM: Self = Self(0x40);
    pub const WRNORM: Self = Self(0x100);
    /// The peer writes no more.
    pub const RDHUP: Self = Self(0x2000);
    /// What arrivals bring, and what room brings: Linux wakes those that wait for either name.
    pub const ARRIVALS: Self = Self(0x1 | 0x40);
    pub const ROOM: Self = Self(0x4 | 0x100);
    /// What is told whether it was asked for or not.
    pub const ALWAYS: Self = Self(0x8 | 0x10);

    /// Every condition: what a change of state may bring.
    pub const ALL: Self = Self(u32::MAX);

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These conditions where `is` holds, none otherwise.
    #[must_use]
    pub const fn when(self, is: bool) -> Self {
        if is { self } else { Self::NONE }
    }
}

impl BitOr for Readiness {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Readiness {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Readiness {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
