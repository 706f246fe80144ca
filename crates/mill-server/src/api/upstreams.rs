//! Groups of servers, and the state of each server.

use super::Clock;
use super::error::ApiError;
use crate::upstreams::Upstreams;
use mill_config::config::upstream::ResponseTime;
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// All blocks by their names. Hosts without a block are not shown, as in NGINX Plus: two may have one name.
pub(super) fn all(groups: &Upstreams, clock: &Clock) -> Value {
    let blocks = groups.iter().filter(|known| known.config().explicit);
    let named = blocks.map(|known| (name(known), group(known, clock)));
    Value::Object(named.collect())
}

/// The block of this name.
pub(super) fn named<'u>(wanted: &str, groups: &'u Upstreams) -> Result<&'u Arc<Group>, ApiError> {
    let mut blocks = groups.iter().filter(|known| known.config().explicit);
    let found = blocks.find(|known| name(known) == wanted);
    found.ok_or(ApiError::UPSTREAM_NOT_FOUND)
}

fn name(group: &Group) -> String {
    group.config().name.display().into_owned()
}

/// One group.
pub(super) fn group(group: &Arc<Group>, clock: &Clock) -> Value {
    let peers = group.peers();
    let peers = peers.all().map(|known| peer(known, clock));
    let zone = group.config().zone.as_ref();
    let mut document = json!({
        "peers": peers.collect::<Value>(),
        "keepalive": group.idle_connections(),
        "zombies": group.zombies(),
        "zone": zone.map_or_else(|| name(group), |zone| zone.name.display().into_owned()),
    });
    if let Some(queue) = &group.config().queue {
        let (size, overflows) = group.queue_counts();
        document["queue"] =
            json!({ "size": size, "max_size": queue.number, "overflows": overflows });
    }
    document
}

fn peer(peer: &Arc<Peer>, clock: &Clock) -> Value {
    let settings = &peer.settings;
    let load = peer.load();
    let counts = load.counts(clock.now);
    let checks = counts.health_checks;
    let mut document = Map::new();
    let mut add = |name: &str, value: Value| document.insert(String::from(name), value);
    add("id", json!(peer.id));
    add("server", json!(peer.name.display()));
    add("name", json!(settings.name.display()));
    add("backup", json!(settings.backup));
    add("weight", json!(settings.weight));
    add("state", json!(peer.state(clock.now).to_string()));
    add("active", json!(peer.active()));
    add("requests", json!(counts.requests));
    add(
        "responses",
        responses(&counts.answers, load.answers_by_status()),
    );
    add("sent", json!(counts.sent_bytes));
    add("received", json!(counts.received_bytes));
    add("fails", json!(counts.failures));
    add("unavail", json!(counts.unavailable));
    let mut health = json!({
        "checks": checks.checks, "fails": checks.fails, "unhealthy": checks.unhealthy,
    });
    if let Some(passed) = checks.last_passed {
        health["last_passed"] = json!(passed);
    }
    add("health_checks", health);
    add("downtime", json!(ms(counts.downtime)));
    if let Some(service) = &settings.service {
        add("service", json!(service.display()));
    }
    if settings.max_conns != 0 {
        add("max_conns", json!(settings.max_conns));
    }
    if let Some(since) = counts.down_since {
        add("downstart", json!(clock.date(since)));
    }
    if let Some(selected) = counts.selected {
        add("selected", json!(clock.date(selected)));
    }
    let times = [
        ("header_time", ResponseTime::Header),
        ("response_time", ResponseTime::LastByte),
    ];
    for (name, time) in times {
        let time = load.response_time(time);
        if !time.is_zero() {
            add(name, json!(ms(time)));
        }
    }
    Value::Object(document)
}

/// Answers by class and by status.
pub(super) fn responses(classes: &[u64; 5], statuses: impl Iterator<Item = (u16, u64)>) -> Value {
    let codes = statuses.map(|(status, count)| (status.to_string(), json!(count)));
    let codes: Map<String, Value> = codes.collect();
    json!({
        "1xx": classes[0],
        "2xx": classes[1],
        "3xx": classes[2],
        "4xx": classes[3],
        "5xx": classes[4],
        "codes": codes,
        "total": classes.iter().sum::<u64>(),
    })
}

fn ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
