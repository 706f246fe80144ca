//! What zones of `limit_req` and `limit_conn` have made of requests and sessions.

use super::error::ApiError;
use crate::limits::{ConnectionTable, LimitedZone, RequestTable, ZoneFigures, ZoneTable};
use serde_json::{Map, Value};

/// A table whose zones the API tells.
pub(super) trait ToldTable: ZoneTable {
    /// What a name of no zone is refused with.
    const NOT_FOUND: ApiError;
}

impl ToldTable for RequestTable {
    const NOT_FOUND: ApiError = ApiError::LIMIT_REQ_NOT_FOUND;
}

impl ToldTable for ConnectionTable {
    const NOT_FOUND: ApiError = ApiError::LIMIT_CONN_NOT_FOUND;
}

/// All zones by their names.
pub(super) fn all<T: ToldTable>(zones: &[LimitedZone<T>]) -> Value {
    let named = zones
        .iter()
        .map(|zone| (zone.name().display().into_owned(), document(zone)));
    Value::Object(named.collect())
}

/// The zone of this name.
pub(super) fn one<T: ToldTable>(name: &str, zones: &[LimitedZone<T>]) -> Result<Value, ApiError> {
    named(name, zones).map(document)
}

/// Its statistics begin anew; what its keys owe, and what is under way, stays.
pub(super) fn reset<T: ToldTable>(name: &str, zones: &[LimitedZone<T>]) -> Result<(), ApiError> {
    named(name, zones).map(LimitedZone::reset)
}

fn document<T: ToldTable>(zone: &LimitedZone<T>) -> Value {
    let outcomes = zone.figures().by_outcome().into_iter();
    let members: Map<String, Value> = outcomes
        .map(|(outcome, count)| (outcome.to_owned(), count.into()))
        .collect();
    Value::Object(members)
}

fn named<'z, T: ToldTable>(
    name: &str,
    zones: &'z [LimitedZone<T>],
) -> Result<&'z LimitedZone<T>, ApiError> {
    let mut zones = zones.iter();
    let found = zones.find(|zone| zone.name().as_bytes() == name.as_bytes());
    found.ok_or(T::NOT_FOUND)
}
