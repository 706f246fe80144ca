//! What caches hold, and what they were to requests.

use super::error::ApiError;
use crate::cache::{CacheFigures, CacheOutcome, CacheZone, CacheZones, DiskReport};
use serde_json::{Value, json};
use std::sync::Arc;

/// All caches by their names.
pub(super) fn all(zones: &CacheZones) -> Value {
    let named = zones.iter().map(|zone| (name(zone), document(zone)));
    Value::Object(named.collect())
}

/// The cache of this name.
pub(super) fn one(name: &str, zones: &CacheZones) -> Result<Value, ApiError> {
    named(name, zones).map(|zone| document(zone))
}

/// Its statistics begin anew; what it holds stays.
pub(super) fn reset(name: &str, zones: &CacheZones) -> Result<(), ApiError> {
    named(name, zones).map(|zone| zone.reset())
}

pub(super) fn named<'z>(
    wanted: &str,
    zones: &'z CacheZones,
) -> Result<&'z Arc<CacheZone>, ApiError> {
    let found = zones.iter().find(|zone| name(zone) == wanted);
    found.ok_or(ApiError::CACHE_NOT_FOUND)
}

fn name(zone: &CacheZone) -> String {
    zone.config().zone.display().into_owned()
}

fn document(zone: &CacheZone) -> Value {
    let figures = zone.figures();
    let mut document = json!({
        "size": figures.store.bytes,
        "max_size": zone.config().memory_bytes,
        "cold": figures.disk.is_some_and(|disk| !disk.is_loaded),
    });
    if let Some(disk) = &figures.disk {
        document["disk"] = on_disk(disk);
    }
    for outcome in CacheOutcome::ALL {
        document[outcome.word().to_lowercase()] = answers(outcome, &figures);
    }
    document
}

/// Ours: NGINX Plus has `size` and `max_size` for its files, which are all that it has.
fn on_disk(disk: &DiskReport) -> Value {
    json!({
        "files": disk.index.files,
        "size": disk.index.bytes,
        "max_size": Some(disk.bytes_max).filter(|bytes| *bytes != u64::MAX),
        "written": { "responses": disk.written, "bytes": disk.written_bytes },
        "queued": disk.queued,
        "restored": disk.restored,
        "skipped": disk.skipped,
        "failed": disk.failed,
        "damaged": disk.damaged,
        "evicted": disk.index.evicted,
        "inactive": disk.index.inactive,
        "purges": disk.purges,
    })
}

fn answers(outcome: CacheOutcome, figures: &CacheFigures) -> Value {
    let figures = figures.of(outcome);
    let mut answers = json!({ "responses": figures.responses, "bytes": figures.bytes });
    if !outcome.is_of_cache() {
        answers["responses_written"] = json!(figures.stored_responses);
        answers["bytes_written"] = json!(figures.stored_bytes);
    }
    answers
}
