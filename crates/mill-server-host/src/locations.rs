//! All locations of a configuration.

use mill_config::config::{Config, Instruction, Location, LocationTree};

/// Passes each location to `visit`: those of servers, of blocks in them, of `if` and `limit_except`.
pub fn visit_all<'c>(config: &'c Config, visit: &mut dyn FnMut(&'c Location)) {
    let Some(http) = &config.http else { return };
    for server in &http.servers {
        one(&server.location, visit);
        tree(&server.locations, visit);
        for (_, location) in &server.named_locations {
            one(location, visit);
        }
    }
}

fn tree<'c>(locations: &'c LocationTree, visit: &mut dyn FnMut(&'c Location)) {
    for location in locations.iter() {
        one(location, visit);
    }
}

fn one<'c>(location: &'c Location, visit: &mut dyn FnMut(&'c Location)) {
    visit(location);
    instructions(&location.instructions, visit);
    if let Some(limit) = &location.limit_except {
        one(&limit.location, visit);
    }
    tree(&location.locations, visit);
}

fn instructions<'c>(body: &'c [Instruction], visit: &mut dyn FnMut(&'c Location)) {
    for instruction in body {
        if let Instruction::If { body, location, .. } = instruction {
            instructions(body, visit);
            if let Some(location) = location {
                one(location, visit);
            }
        }
    }
}
