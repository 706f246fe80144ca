//! Numbers of errors, those of Linux.

use core::ffi::c_int;
use mill_stack::socket::{ConnectError, ListenError, SocketError};

/// What a call fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    pub const NO_ENTRY: Self = Self(2);
    pub const INTERRUPTED: Self = Self(4);
    pub const IO: Self = Self(5);
    pub const BAD_DESCRIPTOR: Self = Self(9);
    pub const AGAIN: Self = Self(11);
    pub const NO_MEMORY: Self = Self(12);
    pub const FAULT: Self = Self(14);
    pub const BUSY: Self = Self(16);
    pub const EXISTS: Self = Self(17);
    pub const IS_FOLDER: Self = Self(21);
    pub const INVALID: Self = Self(22);
    pub const NO_DESCRIPTOR: Self = Self(24);
    pub const ILLEGAL_SEEK: Self = Self(29);
    pub const DOMAIN: Self = Self(33);
    pub const BROKEN_PIPE: Self = Self(32);
    pub const NO_CALL: Self = Self(38);
    pub const MESSAGE_SIZE: Self = Self(90);
    pub const NO_OPTION: Self = Self(92);
    pub const NOT_SUPPORTED: Self = Self(95);
    pub const FAMILY: Self = Self(97);
    pub const ADDRESS_IN_USE: Self = Self(98);
    pub const ADDRESS_NOT_AVAILABLE: Self = Self(99);
    pub const NETWORK_UNREACHABLE: Self = Self(101);
    pub const CONNECTION_ABORTED: Self = Self(103);
    pub const RESET: Self = Self(104);
    pub const NO_BUFFERS: Self = Self(105);
    pub const IS_CONNECTED: Self = Self(106);
    pub const NOT_CONNECTED: Self = Self(107);
    pub const TIMED_OUT: Self = Self(110);
    pub const REFUSED: Self = Self(111);
    pub const ALREADY: Self = Self(114);
    pub const IN_PROGRESS: Self = Self(115);
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
            ConnectError::NoPort | ConnectError::InUse => Self::ADDRESS_NOT_AVAILABLE,
            ConnectError::TooMany => Self::NO_BUFFERS,
        }
    }
}
