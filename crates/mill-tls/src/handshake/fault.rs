//! Why there is no TLS on a connection that was to have it.

use crate::alert::AlertDescription;
use std::fmt;

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The client speaks plain HTTP.
    NotTls,
    /// The server wants no handshake for this name (`ssl_reject_handshake`).
    Rejected,
    /// There is no certificate for this name.
    NoCertificate(Absence),
    /// A client's first flight was refused before rustls saw it, and the client was told this.
    FirstFlight(AlertDescription),
    /// rustls' own words.
    Protocol(rustls::Error),
    /// The peer has ended the connection.
    Closed,
    /// Behind the handshake: a record could not be opened or must not come, and the peer was told this.
    Record(AlertDescription),
}

/// Why there is no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Its authority has not issued it yet.
    Awaited,
    /// Its files could not be loaded when the handshake asked for them.
    Unloadable,
}

impl Fault {
    /// The peer's certificate is not valid for us.
    pub const fn is_of_certificate(&self) -> bool {
        matches!(
            self,
            Self::Protocol(
                rustls::Error::InvalidCertificate(_) | rustls::Error::InvalidCertRevocationList(_)
            )
        )
    }
}

impl Fault {
    /// The name that the peer's certificate is not valid for, though all else is well.
    pub fn unmatched_name(&self) -> Option<String> {
        match self {
            Self::Protocol(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidForNameContext { expected, .. },
            )) => Some(expected.to_str().into_owned()),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls => formatter.write_str("http request"),
            Self::Rejected => formatter.write_str("handshake rejected"),
            Self::NoCertificate(Absence::Awaited) => {
                formatter.write_str("the certificate has not been issued yet")
            }
            Self::NoCertificate(Absence::Unloadable) => formatter.write_str("cert cb error"),
            Self::FirstFlight(description) => {
                write!(formatter, "first flight refused: {description:?}")
            }
            Self::Protocol(error) => write!(formatter, "{error}"),
            Self::Closed => formatter.write_str("peer closed connection in SSL handshake"),
            Self::Record(description) => write!(formatter, "{description:?}"),
        }
    }
}
