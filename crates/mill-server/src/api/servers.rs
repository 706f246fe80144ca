//! Servers of a group: their settings.

/// Settings from a JSON document.
mod settings;

use super::error::ApiError;
use mill_config::Text;
use mill_config::config::upstream::{UpstreamAddress, UpstreamServer, UpstreamTarget};
use mill_upstream::group::names::NamedServer;
use mill_upstream::group::{Group, PeerSet};
use mill_upstream::peer::Peer;
use serde_json::{Value, json};
use settings::{Changes, Known};
use std::sync::Arc;
use std::time::Duration;

/// The settings of all servers, and of the names among them.
pub(super) fn all(group: &Group) -> Value {
    let (names, peers) = (group.names(), group.peers());
    let names = names.iter().map(|name| (name.id, of_name(name)));
    let peers = peers.all().map(|peer| (peer.id, of_peer(peer, group)));
    let mut all: Vec<(u32, Value)> = names.chain(peers).collect();
    all.sort_by_key(|(id, _)| *id);
    all.into_iter().map(|(_, document)| document).collect()
}

/// Those of one server.
pub(super) fn one(group: &Group, id: &str) -> Result<Value, ApiError> {
    let id = parse_id(id)?;
    if let Some(name) = group.name(id) {
        return Ok(of_name(&name));
    }
    let peers = group.peers();
    let found = peers.all().find(|peer| peer.id == id);
    let found = found.ok_or_else(|| ApiError::server_not_found(id))?;
    Ok(of_peer(found, group))
}

/// Adds the server that the content describes.
pub(super) fn add(group: &Group, content: &[u8]) -> Result<Value, ApiError> {
    let changes = Changes::parse(content, group)?;
    let target = changes.target.as_ref().ok_or(ApiError::NO_SERVER)?;
    let mut settings = UpstreamServer::new(Text::from(""), target.clone());
    changes.apply(&mut settings, None)?;
    let Some(address) = address_of(target) else {
        let added = group.add_name(settings);
        return added
            .map(|name| of_name(&name))
            .ok_or(ApiError::ENTRY_EXISTS);
    };
    let added = group.add_peer(address, &settings);
    let added = added.ok_or(ApiError::ENTRY_EXISTS)?;
    Ok(of_peer(&added, group))
}

/// `None` of a name.
fn address_of(target: &UpstreamTarget) -> Option<&UpstreamAddress> {
    match target {
        UpstreamTarget::Addresses(addresses) => addresses.first(),
        UpstreamTarget::Name { .. } => None,
    }
}

/// Changes what the content names.
pub(super) fn change(group: &Group, id: &str, content: &[u8]) -> Result<Value, ApiError> {
    let id = parse_id(id)?;
    let changes = Changes::parse(content, group)?;
    let of_known = |settings: &UpstreamServer, target: &UpstreamTarget| {
        let mut settings = settings.clone();
        changes.apply(&mut settings, Some(Known { id, target }))?;
        Ok::<_, ApiError>(settings)
    };
    let changed = group.change_name(id, |settings| of_known(settings, &settings.target));
    if let Some(changed) = changed {
        return changed.map(|name| of_name(&name));
    }
    let changed = group.change_peer(id, |peer: &Peer, known: &PeerSet| {
        let target = UpstreamTarget::Addresses(vec![peer.address.clone()]);
        let settings = of_known(&peer.settings, &target)?;
        let address = changes.target.as_ref().and_then(address_of);
        let address = address.unwrap_or(&peer.address);
        if *address != peer.address && known.all().any(|other| other.address == *address) {
            return Err(ApiError::ENTRY_EXISTS);
        }
        Ok((address.clone(), settings))
    });
    let changed: Arc<Peer> = changed.ok_or_else(|| ApiError::server_not_found(id))??;
    Ok(of_peer(&changed, group))
}

/// Removes a server, or a name with all servers that it stands for; returns the settings of those that are left.
pub(super) fn remove(group: &Group, id: &str) -> Result<Value, ApiError> {
    let id = parse_id(id)?;
    if group.remove_name(id) {
        return Ok(all(group));
    }
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

/// A server at an address, maybe one that a name stands for.
fn of_peer(peer: &Peer, group: &Group) -> Value {
    let mut document = document(peer.id, &peer.name, &peer.settings);
    if peer.settings.resolve {
        document["host"] = json!(peer.settings.name.display());
        let names = group.names();
        if let Some(name) = names.iter().find(|name| name.has(peer)) {
            document["parent"] = json!(name.id.to_string());
        }
    }
    document
}

/// A name.
fn of_name(name: &NamedServer) -> Value {
    document(name.id, &name.settings.name, &name.settings)
}

fn document(id: u32, server: &Text, settings: &UpstreamServer) -> Value {
    let mut document = json!({
        "id": id,
        "server": server.display(),
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
