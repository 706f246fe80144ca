//! Removing what caches hold, by key, prefix, host, tag, or all of it.

use super::caches;
use super::error::ApiError;
use crate::cache::{CacheZones, NotPurged, Purge};
use crate::local::Local;
use mill_cache::{PENDING_PURGES_MAX, PurgeMode};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use serde_json::Value;

/// What is removed.
enum Wanted {
    Key(Vec<u8>),
    Prefix(Vec<u8>),
    Host(Vec<u8>),
    Tag(Vec<u8>),
    All,
}

/// Removes what the document names; nothing if a part of it is wrong.
pub(super) fn purge<E: Engine>(
    name: &str,
    content: &[u8],
    zones: &CacheZones,
    local: &Local<E>,
) -> Result<(), ApiError> {
    let zone = caches::named(name, zones)?;
    let document: Value = serde_json::from_slice(content).map_err(|_| ApiError::JSON)?;
    for wanted in Wanted::all_of(&document)? {
        let purged = zone.purge(wanted.purge(), PurgeMode::Remove, local);
        purged.map_err(refused)?;
    }
    Ok(())
}

fn refused(why: NotPurged) -> ApiError {
    let (status, code, text) = match why {
        NotPurged::TooMany => (
            Status::SERVICE_UNAVAILABLE,
            "TooManyPurges",
            format!("{PENDING_PURGES_MAX} purges are not carried out yet"),
        ),
        NotPurged::Unwritten => (
            Status::INTERNAL_SERVER_ERROR,
            "PurgeNotWritten",
            String::from(
                "memory is purged; the purge could not be written to the cache's directory",
            ),
        ),
    };
    ApiError {
        status,
        code,
        text: text.into(),
    }
}

impl Wanted {
    fn all_of(document: &Value) -> Result<Vec<Self>, ApiError> {
        let fields = document.as_object().ok_or_else(Self::malformed)?;
        let mut purges = Vec::new();
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("all", Value::Bool(true)) => purges.push(Self::All),
                ("all", Value::Bool(false)) => {}
                (_, Value::Array(values)) => {
                    for value in values {
                        purges.push(Self::of(name, value)?);
                    }
                }
                _ => purges.push(Self::of(name, value)?),
            }
        }
        Some(purges)
            .filter(|all| !all.is_empty())
            .ok_or_else(Self::malformed)
    }

    fn of(name: &str, value: &Value) -> Result<Self, ApiError> {
        let text = value.as_str().filter(|text| !text.is_empty());
        let text = text.ok_or_else(Self::malformed)?.as_bytes().to_vec();
        match name {
            "key" => Ok(Self::Key(text)),
            "prefix" => Ok(Self::Prefix(text)),
            "host" => Ok(Self::Host(text)),
            "tag" => Ok(Self::Tag(text)),
            _ => Err(Self::malformed()),
        }
    }

    fn malformed() -> ApiError {
        let text = "\"key\", \"prefix\", \"host\", \"tag\" with a string or a list of them, or \"all\": true";
        ApiError::bad("CachePurgeFormatError", text.to_owned())
    }

    fn purge(&self) -> Purge<'_> {
        match self {
            Self::Key(key) => Purge::Key(key),
            Self::Prefix(prefix) => Purge::Prefix(prefix),
            Self::Host(host) => Purge::Host(host),
            Self::Tag(tag) => Purge::Tag(tag),
            Self::All => Purge::All,
        }
    }
}
