//! Servers of a group: their settings.

use super::error::ApiError;
use mill_config::config::upstream::UpstreamServer;
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The settings of all servers.
pub(super) fn all(group: &Group) -> Value {
    group.peers().all().map(|peer| document(peer)).collect()
}

/// Those of one server.
pub(super) fn one(group: &Group, id: &str) -> Result<Value, ApiError> {
    let peer = find(group, parse_id(id)?)?;
    Ok(document(&peer))
}

fn parse_id(text: &str) -> Result<u32, ApiError> {
    text.parse().map_err(|_| ApiError::BAD_SERVER_ID)
}

fn find(group: &Group, id: u32) -> Result<Arc<Peer>, ApiError> {
    let peers = group.peers();
    let found = peers.all().find(|peer| peer.id == id);
    found
        .map(Arc::clone)
        .ok_or_else(|| ApiError::server_not_found(id))
}

fn document(peer: &Peer) -> Value {
    let settings: &UpstreamServer = &peer.settings;
    let mut document = json!({
        "id": peer.id,
        "server": peer.name.display(),
        "weight": settings.weight,
        "max_conns": settings.max_conns,
        "max_fails": settings.max_fails,
        "fail_timeout": time(settings.fail_timeout),
        "slow_start": time(settings.slow_start),
        "route": settings.route.as_ref().map_or_else(Default::default, |route| route.display()),
        "backup": settings.backup,
        "down": settings.down,
    });
    if settings.drain {
        document["drain"] = json!(true);
    }
    if settings.resolve {
        document["host"] = json!(settings.name.display());
    }
    if let Some(service) = &settings.service {
        document["service"] = json!(service.display());
    }
    document
}

/// As the configuration has it: `10s`, or `1500ms` if it is no whole number of seconds.
fn time(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}
