//! Servers of a group: their settings.

/// Settings from a JSON document.
mod settings;

use super::error::ApiError;
use mill_config::Text;
use mill_config::config::upstream::{UpstreamServer, UpstreamTarget};
use mill_upstream::group::{Group, PeerSet};
use mill_upstream::peer::Peer;
use serde_json::{Value, json};
use settings::Changes;
use std::sync::Arc;
use std::time::Duration;

/// The settings of all servers.
pub(super) fn all(group: &Group) -> Value {
    group.peers().all().map(|peer| document(peer)).collect()
}

/// Those of one server.
pub(super) fn one(group: &Group, id: &str) -> Result<Value, ApiError> {
    let id = parse_id(id)?;
    let peers = group.peers();
    let found = peers.all().find(|peer| peer.id == id);
    let found = found.ok_or_else(|| ApiError::server_not_found(id))?;
    Ok(document(found))
}

/// Adds the server that the content describes.
pub(super) fn add(group: &Group, content: &[u8]) -> Result<Value, ApiError> {
    let changes = Changes::parse(content, group)?;
    let address = changes.address.as_ref().ok_or(ApiError::NO_SERVER)?;
    let target = UpstreamTarget::Addresses(vec![address.clone()]);
    let mut settings = UpstreamServer::new(Text::from(""), target);
    changes.apply(&mut settings, None)?;
    let added = group.add_peer(address, &settings);
    let added = added.ok_or(ApiError::ENTRY_EXISTS)?;
    Ok(document(&added))
}

/// Changes what the content names.
pub(super) fn change(group: &Group, id: &str, content: &[u8]) -> Result<Value, ApiError> {
    let id = parse_id(id)?;
    let changes = Changes::parse(content, group)?;
    let changed = group.change_peer(id, |peer: &Peer, known: &PeerSet| {
        let mut settings = peer.settings.clone();
        changes.apply(&mut settings, Some(peer))?;
        let address = changes.address.as_ref().unwrap_or(&peer.address);
        if *address != peer.address && known.all().any(|other| other.address == *address) {
            return Err(ApiError::ENTRY_EXISTS);
        }
        Ok((address.clone(), settings))
    });
    let changed: Arc<Peer> = changed.ok_or_else(|| ApiError::server_not_found(id))??;
    Ok(document(&changed))
}

/// Removes a server; returns the settings of those that are left.
pub(super) fn remove(group: &Group, id: &str) -> Result<Value, ApiError> {
    let id = parse_id(id)?;
    let removed = group.remove_peer(id, |peer| match peer.settings.resolve {
        true => Err(ApiError::immutable(format!(
            "server \"{id}\" not removable"
        ))),
        false => Ok(()),
    });
    removed.ok_or_else(|| ApiError::server_not_found(id))??;
    Ok(all(group))
}

fn parse_id(text: &str) -> Result<u32, ApiError> {
    text.parse().map_err(|_| ApiError::BAD_SERVER_ID)
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
