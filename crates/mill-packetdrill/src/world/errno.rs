//! Numbers of errors, those of Linux.

use core::ffi::c_int;
use mill_stack::socket::{ConnectError, ListenError, SocketError};

/// What a call fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

impl Errno {
    pub(crate) const IO: Self = Self(5);
    pub(crate) const BAD_DESCRIPTOR: Self = Self(9);
    pub(crate) const AGAIN: Self = Self(11);
    pub(crate) const INVALID: Self = Self(22);
    pub(crate) const BROKEN_PIPE: Self = Self(32);
    pub(crate) const NO_CALL: Self = Self(38);
    pub(crate) const NO_OPTION: Self = Self(92);
    pub(crate) const NOT_SUPPORTED: Self = Self(95);
    pub(crate) const FAMILY: Self = Self(97);
    pub(crate) const ADDRESS_IN_USE: Self = Self(98);
    pub(crate) const ADDRESS_NOT_AVAILABLE: Self = Self(99);
    pub(crate) const NETWORK_UNREACHABLE: Self = Self(101);
    pub(crate) const RESET: Self = Self(104);
    pub(crate) const NO_BUFFERS: Self = Self(105);
    pub(crate) const IS_CONNECTED: Self = Self(106);
    pub(crate) const NOT_CONNECTED: Self = Self(107);
    pub(crate) const TIMED_OUT: Self = Self(110);
    pub(crate) const REFUSED: Self = Self(111);
    pub(crate) const ALREADY: Self = Self(114);
    pub(crate) const IN_PROGRESS: Self = Self(115);
}

impl From<SocketError> for Errno {
    fn from(error: SocketError) -> Self {
        match error {
            SocketError::Reset => Self::RESET,
            SocketError::Refused => Self::REFUSED,
            SocketError::Unreachable => Self::TIMED_OUT,
            SocketError::Vanished => Self::IO,
            SocketError::Stale => Self::BAD_DESCRIPTOR,
        }
    }
}

impl From<ListenError> for Errno {
    fn from(error: ListenError) -> Self {
        match error {
            ListenError::InUse => Self::ADDRESS_IN_USE,
            ListenError::NotOurs => Self::ADDRESS_NOT_AVAILABLE,
            ListenError::TooMany => Self::NO_BUFFERS,
        }
    }
}

impl From<ConnectError> for Errno {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NoRoute => Self::NETWORK_UNREACHABLE,
            ConnectError::NoPort => Self::ADDRESS_NOT_AVAILABLE,
            ConnectError::InUse => Self::ADDRESS_IN_USE,
            ConnectError::TooMany => Self::NO_BUFFERS,
        }
    }
}
