//! Limits of connections by a key: `limit_conn_zone`, `limit_conn`.

use super::Template;
use crate::Text;

/// `limit_conn_zone KEY zone=NAME:SIZE`.
#[derive(Debug, Clone)]
pub struct ConnectionZone {
    pub name: Text,
    /// What connections are counted by; those for which it is empty are not.
    pub key: Template,
    /// The key as it is written.
    pub key_text: Text,
    /// How many keys it has room for, in bytes: 64 of each key, as in nginx.
    pub bytes: u64,
}

/// `limit_conn ZONE NUMBER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// The name of its zone, which exists.
    pub zone: Text,
    /// Most connections of a key.
    pub most: u32,
}
