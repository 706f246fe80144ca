//! Limits of requests, or of connections of `stream`, that are under way at a time: `limit_conn_zone`, `limit_conn`.

use super::Template;
use crate::Text;

/// `limit_conn_zone KEY zone=NAME:SIZE`.
#[derive(Debug, Clone)]
pub struct ConnectionZone {
    pub name: Text,
    /// What is counted by; requests for which it is empty are not.
    pub key: Template,
    /// The key as it is written.
    pub key_text: Text,
    /// The size of its table, in bytes as nginx takes them for a key.
    pub bytes: u64,
}

/// `limit_conn ZONE NUMBER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// The index of its zone, in [`super::Http::connection_zones`] or [`super::Stream::connection_zones`].
    pub zone: usize,
    /// Most requests of a key at a time.
    pub most: u32,
}
