//! A virtual server.

use std::sync::Arc;

use super::acme::AcmeOrder;
use super::{Location, LocationTree, Pattern};
use crate::Text;

/// One `server` block.
#[derive(Debug)]
pub struct Server {
    /// Its index in the configuration, from 0: stable within one configuration.
    pub index: usize,
    /// The first `server_name`, for redirects and `$server_name`; empty when there is none.
    pub name: Text,
    /// All of `server_name`.
    pub names: Vec<ServerName>,
    /// `acme_certificate`.
    pub acme: Option<Arc<AcmeOrder>>,
    /// Settings and rewrite instructions outside any location.
    pub location: Arc<Location>,
    /// Its locations.
    pub locations: LocationTree,
    /// `location @name`, sorted by name.
    pub named_locations: Vec<(Text, Arc<Location>)>,
}

impl Server {
    /// The named location; `name` includes its `@`.
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
    /// `.example.org`: the name itself and all names below it; stored without the dot.
    Domain(Text),
    /// `*.example.org`; stored without `*.`.
    Below(Text),
    /// `www.example.*`; stored without `.*`.
    Prefix(Text),
    /// `~expression`.
    Pattern(Arc<Pattern>),
}
