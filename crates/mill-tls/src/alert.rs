//! Alerts (RFC 8446 6, RFC 5246 7.2).

use crate::record::HeaderError;

/// The descriptions that are sent or told apart here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertDescription {
    CloseNotify,
    UnexpectedMessage,
    BadRecordMac,
    RecordOverflow,
    IllegalParameter,
    DecodeError,
    ProtocolVersion,
    InternalError,
    InappropriateFallback,
    UserCanceled,
    NoRenegotiation,
    MissingExtension,
    UnrecognizedName,
    Other(u8),
}

/// An alert as it stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    pub is_fatal: bool,
    pub description: AlertDescription,
}

impl Alert {
    pub const CLOSE_NOTIFY: Self = Self {
        is_fatal: false,
        description: AlertDescription::CloseNotify,
    };

    pub const fn fatal(description: AlertDescription) -> Self {
        Self {
            is_fatal: true,
            description,
        }
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[level, description] = bytes else {
            return None;
        };
        Some(Self {
            is_fatal: level == 2,
            description: AlertDescription::from_byte(description),
        })
    }

    pub const fn emit(self) -> [u8; 2] {
        [if self.is_fatal { 2 } else { 1 }, self.description.byte()]
    }
}

impl AlertDescription {
    const fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::CloseNotify,
            10 => Self::UnexpectedMessage,
            20 => Self::BadRecordMac,
            22 => Self::RecordOverflow,
            47 => Self::IllegalParameter,
            50 => Self::DecodeError,
            70 => Self::ProtocolVersion,
            80 => Self::InternalError,
            86 => Self::InappropriateFallback,
            90 => Self::UserCanceled,
            100 => Self::NoRenegotiation,
            109 => Self::MissingExtension,
            112 => Self::UnrecognizedName,
            other => Self::Other(other),
        }
    }

    /// Its number in IANA's registry.
    pub const fn byte(self) -> u8 {
        match self {
            Self::CloseNotify => 0,
            Self::UnexpectedMessage => 10,
            Self::BadRecordMac => 20,
            Self::RecordOverflow => 22,
            Self::IllegalParameter => 47,
            Self::DecodeError => 50,
            Self::ProtocolVersion => 70,
            Self::InternalError => 80,
            Self::InappropriateFallback => 86,
            Self::UserCanceled => 90,
            Self::NoRenegotiation => 100,
            Self::MissingExtension => 109,
            Self::UnrecognizedName => 112,
            Self::Other(other) => other,
        }
    }
}

impl From<HeaderError> for AlertDescription {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::ContentType => Self::UnexpectedMessage,
            HeaderError::Version => Self::ProtocolVersion,
            HeaderError::Overflow => Self::RecordOverflow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_description_is_parsed_as_it_was_emitted() {
        for byte in 0..=255 {
            let alert = Alert::fatal(AlertDescription::from_byte(byte));
            assert_eq!(alert.emit(), [2, byte]);
            assert_eq!(Alert::parse(&alert.emit()), Some(alert));
        }
        assert_eq!(Alert::parse(b"\x02"), None);
    }
}
