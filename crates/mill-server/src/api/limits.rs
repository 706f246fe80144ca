//! What zones of `limit_req` and `limit_conn` have made of requests and sessions.

use super::error::ApiError;
use crate::limits::{LimitedConnections, LimitedRequests};
use mill_config::Text;
use serde_json::{Value, json};

/// A zone of either kind.
pub(super) trait LimitZone {
    const NOT_FOUND: ApiError;

    fn name(&self) -> &Text;

    fn document(&self) -> Value;

    fn reset(&self);
}

impl LimitZone for LimitedRequests {
    const NOT_FOUND: ApiError = ApiError::LIMIT_REQ_NOT_FOUND;

    fn name(&self) -> &Text {
        &self.config.name
    }

    fn document(&self) -> Value {
        let figures = self.figures();
        json!({
            "passed": figures.passed,
            "delayed": figures.delayed,
            "rejected": figures.rejected,
            "delayed_dry_run": figures.delayed_dry_run,
            "rejected_dry_run": figures.rejected_dry_run,
        })
    }

    fn reset(&self) {
        Self::reset(self);
    }
}

impl LimitZone for LimitedConnections {
    const NOT_FOUND: ApiError = ApiError::LIMIT_CONN_NOT_FOUND;

    fn name(&self) -> &Text {
        &self.config.name
    }

    fn document(&self) -> Value {
        let figures = self.figures();
        json!({
            "passed": figures.passed,
            "rejected": figures.rejected,
            "rejected_dry_run": figures.rejected_dry_run,
        })
    }

    fn reset(&self) {
        Self::reset(self);
    }
}

/// All zones by their names.
pub(super) fn all<Z: LimitZone>(zones: &[Z]) -> Value {
    let named = zones
        .iter()
        .map(|zone| (zone.name().display().into_owned(), zone.document()));
    Value::Object(named.collect())
}

/// The zone of this name.
pub(super) fn one<Z: LimitZone>(name: &str, zones: &[Z]) -> Result<Value, ApiError> {
    named(name, zones).map(Z::document)
}

/// Its statistics begin anew; what its keys owe, and what is under way, stays.
pub(super) fn reset<Z: LimitZone>(name: &str, zones: &[Z]) -> Result<(), ApiError> {
    named(name, zones).map(Z::reset)
}

fn named<'z, Z: LimitZone>(name: &str, zones: &'z [Z]) -> Result<&'z Z, ApiError> {
    let mut zones = zones.iter();
    let found = zones.find(|zone| zone.name().as_bytes() == name.as_bytes());
    found.ok_or(Z::NOT_FOUND)
}
