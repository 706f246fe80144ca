//! Limits of the rate of requests: `limit_req_zone`, `limit_req`.
//!
//! Requests are counted in thousandths, as in nginx: a key owes 1000 for each request, and a rate of 1000 pays one back in
//! a second.

use super::Template;
use crate::Text;

/// `limit_req_zone KEY zone=NAME:SIZE rate=RATE`.
#[derive(Debug, Clone)]
pub struct RequestZone {
    pub name: Text,
    /// What requests are counted by; those for which it is empty are not.
    pub key: Template,
    /// The key as it is written.
    pub key_text: Text,
    /// The size of its table, in bytes as nginx takes them for a key.
    pub bytes: u64,
    /// Thousandths of a request in a second, at least 1.
    pub rate: u64,
}

/// `limit_req zone=NAME …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimit {
    /// The index of its zone in [`super::Http::request_zones`].
    pub zone: usize,
    /// `burst`: thousandths of requests beyond the rate from which on one is refused.
    pub burst: u64,
    /// `delay`: thousandths beyond the rate from which on a request waits; [`RequestLimit::NO_DELAY`] if none does.
    pub delay: u64,
}

impl RequestLimit {
    /// `nodelay`.
    pub const NO_DELAY: u64 = u64::MAX;
}
