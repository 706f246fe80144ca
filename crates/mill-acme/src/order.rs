//! Orders and their authorizations, as the authority has them (RFC 8555 7.1.3, 7.1.4).

use crate::challenge::ChallengeKind;
use crate::identifier::Identifier;
use crate::problem::Problem;
use serde::Deserialize;

/// An order for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Order {
    pub(crate) status: OrderStatus,
    #[serde(default)]
    pub(crate) authorizations: Vec<String>,
    pub(crate) finalize: String,
    pub(crate) certificate: Option<String>,
    pub(crate) error: Option<Problem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OrderStatus {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
}

/// What is asked for one name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Authorization {
    pub(crate) identifier: Identifier,
    pub(crate) status: AuthorizationStatus,
    #[serde(default)]
    pub(crate) challenges: Vec<Challenge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthorizationStatus {
    Pending,
    Valid,
    Invalid,
    Deactivated,
    Expired,
    Revoked,
}

/// A way to prove a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Challenge {
    #[serde(rename = "type")]
    kind: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) token: String,
    pub(crate) error: Option<Problem>,
}

/// What an account is like.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Account {
    pub(crate) status: String,
}

impl Authorization {
    pub(crate) fn challenge(&self, kind: ChallengeKind) -> Option<&Challenge> {
        let mut known = self.challenges.iter();
        known.find(|challenge| challenge.kind == kind.name())
    }
}

impl Challenge {
    /// Whether its token may stand in a path (RFC 8555 8.3: the alphabet of base64url).
    pub(crate) fn has_token(&self) -> bool {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let length = 1..=TOKEN_BYTES_MAX;
        length.contains(&self.token.len()) && self.token.bytes().all(is_letter)
    }
}

const TOKEN_BYTES_MAX: usize = 512;
