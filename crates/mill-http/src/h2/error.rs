//! Why a stream or a connection ends: RFC 9113 7.

use core::fmt;

/// An error code as it is sent. A peer may send others than those named here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

macro_rules! codes {
    ($($name:ident = $value:literal,)*) => {
        impl ErrorCode {
            $(pub const $name: Self = Self($value);)*

            /// Its name in RFC 9113; empty where it has none.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    _ => "",
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0,
    PROTOCOL_ERROR = 1,
    INTERNAL_ERROR = 2,
    FLOW_CONTROL_ERROR = 3,
    SETTINGS_TIMEOUT = 4,
    STREAM_CLOSED = 5,
    FRAME_SIZE_ERROR = 6,
    REFUSED_STREAM = 7,
    CANCEL = 8,
    COMPRESSION_ERROR = 9,
    CONNECT_ERROR = 10,
    ENHANCE_YOUR_CALM = 11,
    INADEQUATE_SECURITY = 12,
    HTTP_1_1_REQUIRED = 13,
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "" => write!(formatter, "error {}", self.0),
            name => formatter.write_str(name),
        }
    }
}
