//! Removing what caches hold, by key, prefix, host, tag, or all of it.

use super::caches;
use super::error::ApiError;
use crate::cache::{CacheZone, CacheZones, StoredAnswer, is_of_host};
use crate::proxy::caching::forget;
use mill_cache::{KeyPredicate, PurgeMode, Zone};
use mill_http::status::Status;
use serde_json::Value;

/// What is removed.
enum Purge {
    Key(Vec<u8>),
    Prefix(Vec<u8>),
    Host(Vec<u8>),
    Tag(Vec<u8>),
    All,
}

/// Removes what the document names; nothing if a part of it is wrong.
pub(super) fn purge(name: &str, content: &[u8], zones: &CacheZones) -> Result<(), ApiError> {
    let zone = caches::named(name, zones)?;
    let document: Value = serde_json::from_slice(content).map_err(|_| ApiError::JSON)?;
    let purges = Purge::all_of(&document)?;
    let Some(store) = zone.known() else {
        return Ok(());
    };
    purges
        .iter()
        .try_for_each(|purge| purge.carry_out(zone, store))
}

impl Purge {
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

    fn carry_out(&self, zone: &CacheZone, store: &Zone<StoredAnswer>) -> Result<(), ApiError> {
        let matching: KeyPredicate = match self {
            Self::Key(key) => {
                forget(zone, key);
                return Ok(());
            }
            Self::Tag(tag) => {
                store.purge_tag(tag, PurgeMode::Remove);
                return Ok(());
            }
            Self::All => {
                store.purge_all(PurgeMode::Remove);
                return Ok(());
            }
            Self::Prefix(prefix) => {
                let prefix = prefix.clone();
                Box::new(move |key: &[u8]| key.starts_with(&prefix))
            }
            Self::Host(host) => {
                let host = host.clone();
                Box::new(move |key: &[u8]| is_of_host(key, &host))
            }
        };
        let purged = store.purge_matching(matching, PurgeMode::Remove);
        purged.map_err(|too_many| ApiError {
            status: Status::SERVICE_UNAVAILABLE,
            code: "TooManyPurges",
            text: too_many.to_string().into(),
        })
    }
}
