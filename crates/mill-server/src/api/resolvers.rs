//! What resolvers with a `status_zone` have counted.

use super::error::ApiError;
use crate::resolvers::ResolverZones;
use mill_upstream::resolver::counters::ResolverCounters;
use serde_json::{Value, json};

/// All of them by the names of their zones.
pub(super) fn all(zones: &ResolverZones) -> Value {
    let named = zones
        .iter()
        .map(|(name, counters)| (name.display().into_owned(), document(counters)));
    Value::Object(named.collect())
}

/// The zone of this name.
pub(super) fn one(wanted: &str, zones: &ResolverZones) -> Result<Value, ApiError> {
    named(wanted, zones).map(document)
}

/// Its statistics begin anew.
pub(super) fn reset(wanted: &str, zones: &ResolverZones) -> Result<(), ApiError> {
    named(wanted, zones).map(ResolverCounters::reset)
}

fn named<'z>(wanted: &str, zones: &'z ResolverZones) -> Result<&'z ResolverCounters, ApiError> {
    let mut all = zones.iter();
    let found = all.find(|(name, _)| name.as_bytes() == wanted.as_bytes());
    let counters = found.map(|(_, counters)| &**counters);
    counters.ok_or(ApiError::RESOLVER_NOT_FOUND)
}

fn document(counters: &ResolverCounters) -> Value {
    let counts = counters.counts();
    json!({
        // Addresses are never resolved to names.
        "requests": { "name": counts.names, "srv": counts.services, "addr": 0 },
        "responses": {
            "noerror": counts.noerror,
            "formerr": counts.formerr,
            "servfail": counts.servfail,
            "nxdomain": counts.nxdomain,
            "notimp": counts.notimp,
            "refused": counts.refused,
            "timedout": counts.timedout,
            "unknown": counts.unknown,
        },
    })
}
