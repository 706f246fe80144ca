//! A virtual server.

use std::sync::Arc;
use std::time::Duration;

use super::settings::settings;
use super::{Location, LocationTree, Pattern};
use crate::Text;

/// One `server` block.
#[derive(Debug)]
pub struct Server {
    /// Its place in the configuration, from 0: stable within one configuration.
    pub index: usize,
    /// The first `server_name`, for redirects and `$server_name`; empty when there is none.
    pub name: Text,
    /// All of `server_name`.
    pub names: Vec<ServerName>,
    /// Settings of connections and request heads.
    pub settings: ServerSettings,
    /// Settings and rewrite instructions outside any location.
    pub location: Arc<Location>,
    /// Its locations.
    pub locations: LocationTree,
    /// `location @name`, sorted by name.
    pub named_locations: Vec<(Text, Arc<Location>)>,
}

impl Server {
    /// The named location, its `@` included in the name.
    pub fn named_location(&self, name: &[u8]) -> Option<&Arc<Location>> {
        let index = self
            .named_locations
            .binary_search_by(|(known, _)| (**known).cmp(name))
            .ok()?;
        self.named_locations
            .get(index)
            .map(|(_, location)| location)
    }
}

/// One name of a server. Names are lower-cased.
#[derive(Debug, Clone)]
pub enum ServerName {
    /// `example.org` (or the empty name, for requests without Host).
    Exact(Text),
    /// `.example.org`: itself and everything below it; kept without the dot.
    Domain(Text),
    /// `*.example.org`; kept without `*.`.
    Below(Text),
    /// `www.example.*`; kept without `.*`.
    Prefix(Text),
    /// `~expression`.
    Pattern(Arc<Pattern>),
}

settings! {
    /// What holds before a location is known: the default server of the address decides until
    /// the Host field is read.
    ServerSettings, ServerSettingsDraft {
        /// `client_header_timeout`, for the whole head.
        client_header_timeout: Duration = Duration::from_secs(60),
        /// `client_header_buffer_size` in bytes.
        client_header_buffer_size: u64 = 1 << 10,
        /// `large_client_header_buffers`: number.
        large_header_buffers: u64 = 4,
        /// `large_client_header_buffers`: bytes of each; the longest request line and field.
        large_header_buffer_size: u64 = 8 << 10,
        /// `max_headers`: fields in a request.
        max_headers: u64 = 1000,
        /// `ignore_invalid_headers`.
        ignore_invalid_headers: bool = true,
        /// `accept_bare_lf`: lines of a head may end in LF alone.
        accept_bare_lf: bool = false,
        /// `underscores_in_headers`.
        underscores_in_headers: bool = false,
        /// `merge_slashes`.
        merge_slashes: bool = true,
    }
}
