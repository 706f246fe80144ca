//! The locations that probe servers.

use std::sync::Arc;

use crate::config::{Location, LocationTree, ProbingLocation, Server};

/// All locations with `health_check`, which only stands in locations.
pub(crate) fn locations(servers: &[Arc<Server>]) -> Vec<ProbingLocation> {
    let mut found = Vec::new();
    for server in servers {
        tree(server, &server.locations, &mut found);
        for (_, named) in &server.named_locations {
            location(server, named, &mut found);
        }
    }
    found
}

fn tree(server: &Arc<Server>, locations: &LocationTree, found: &mut Vec<ProbingLocation>) {
    locations
        .iter()
        .for_each(|inner| location(server, inner, found));
}

fn location(server: &Arc<Server>, place: &Arc<Location>, found: &mut Vec<ProbingLocation>) {
    if !place.health_checks.is_empty() {
        found.push(ProbingLocation {
            server: Arc::clone(server),
            location: Arc::clone(place),
        });
    }
    tree(server, &place.locations, found);
}
