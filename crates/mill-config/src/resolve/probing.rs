//! The locations that probe servers.

use std::sync::Arc;

use crate::config::{Location, LocationTree, Server};

/// All locations with `health_check`, which only stands in locations.
pub(crate) fn locations(servers: &[Arc<Server>]) -> Vec<Arc<Location>> {
    let mut found = Vec::new();
    for server in servers {
        tree(&server.locations, &mut found);
        for (_, named) in &server.named_locations {
            location(named, &mut found);
        }
    }
    found
}

fn tree(locations: &LocationTree, found: &mut Vec<Arc<Location>>) {
    locations.iter().for_each(|inner| location(inner, found));
}

fn location(place: &Arc<Location>, found: &mut Vec<Arc<Location>>) {
    if !place.health_checks.is_empty() {
        found.push(Arc::clone(place));
    }
    tree(&place.locations, found);
}
