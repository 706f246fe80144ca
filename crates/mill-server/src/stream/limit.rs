//! How many connections there are of a key: `limit_conn`. Counted for all workers together.

use super::SessionStatus;
use super::session::Session;
use crate::local::Local;
use crate::log::Text;
use crate::variables::session as variables;
use mill_config::config::{Config, ConnectionZone, LogLevel};
use mill_runtime::engine::Engine;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The zones of a configuration. One of the same name and key goes on counting over a reload.
#[derive(Debug, Default)]
pub struct ConnectionZones(Vec<(ConnectionZone, Arc<Counts>)>);

/// Connections by their key.
#[derive(Debug)]
struct Counts {
    keys_max: usize,
    by_key: Mutex<BTreeMap<Box<[u8]>, u32>>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<Counts>,
    key: Box<[u8]>,
}

/// `$limit_conn_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitStatus {
    Passed,
    Rejected,
    RejectedDryRun,
}

impl ConnectionZones {
    pub(crate) fn following(previous: Option<&Self>, config: &Config) -> Self {
        let configured = config.stream.iter().flat_map(|stream| &stream.limit_zones);
        let zones = configured.map(|zone| {
            let known = previous.iter().flat_map(|previous| &previous.0);
            let is_same = |(known, _): &&(ConnectionZone, _)| {
                (&known.name, &known.key_text, known.bytes)
                    == (&zone.name, &zone.key_text, zone.bytes)
            };
            let same = known.into_iter().find(is_same);
            let counts = same.map_or_else(
                || Arc::new(Counts::new(zone)),
                |(_, counts)| Arc::clone(counts),
            );
            (zone.clone(), counts)
        });
        Self(zones.collect())
    }
}

impl Counts {
    fn new(zone: &ConnectionZone) -> Self {
        Self {
            keys_max: usize::try_from(zone.bytes / BYTES_OF_KEY).unwrap_or(usize::MAX),
            by_key: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, u32>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more connection; `None` if there are as many as may be, of this key or of keys.
    fn enter(self: &Arc<Self>, key: &[u8], most: u32) -> Option<Counted> {
        let mut by_key = self.lock();
        let is_full = by_key.len() >= self.keys_max;
        match by_key.get_mut(key) {
            Some(count) if *count >= most => return None,
            Some(count) => *count += 1,
            None if is_full => return None,
            None => {
                by_key.insert(key.into(), 1);
            }
        }
        Some(Counted {
            counts: Arc::clone(self),
            key: key.into(),
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_key = self.counts.lock();
        if let Some(count) = by_key.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                by_key.remove(&self.key);
            }
        }
    }
}

/// Counts the session by all limits of its server, until the result is dropped; or ends it.
pub(super) fn enter<E: Engine>(
    session: &mut Session,
    local: &Local<E>,
) -> Result<Vec<Counted>, SessionStatus> {
    let mut all = Vec::new();
    let (server, site) = (Arc::clone(&session.server), Arc::clone(&session.site));
    let settings = &server.settings.stream;
    for limit in &settings.limits {
        let mut zones = site.connection_zones.0.iter();
        let Some((zone, counts)) = zones.find(|(zone, _)| zone.name == limit.zone) else {
            continue;
        };
        let key = variables::evaluate(&zone.key, session, local);
        if key.is_empty() {
            continue;
        }
        if key.len() > KEY_BYTES_MAX {
            let (name, key) = (Text(&zone.key_text), Text(&key));
            let line =
                format_args!("the value of the \"{name}\" key is more than 255 bytes: \"{key}\"");
            session.log_error(LogLevel::Error, line, local);
            continue;
        }
        session.limit_status = Some(LimitStatus::Passed);
        match counts.enter(&key, limit.most) {
            Some(counted) => all.push(counted),
            None => {
                let how = if settings.limit_dry_run {
                    ", dry run,"
                } else {
                    ""
                };
                let name = Text(&zone.name);
                let line = format_args!(
                    "limiting connections{how} by zone \"{name}\" while initializing session"
                );
                session.log_error(settings.limit_log_level, line, local);
                if settings.limit_dry_run {
                    session.limit_status = Some(LimitStatus::RejectedDryRun);
                    return Ok(Vec::new());
                }
                session.limit_status = Some(LimitStatus::Rejected);
                return Err(SessionStatus::UNAVAILABLE);
            }
        }
    }
    Ok(all)
}

impl fmt::Display for LimitStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Passed => "PASSED",
            Self::Rejected => "REJECTED",
            Self::RejectedDryRun => "REJECTED_DRY_RUN",
        })
    }
}

/// What nginx takes of a zone for a key on machines of 64 bits.
const BYTES_OF_KEY: u64 = 64;

/// Longest key (nginx).
const KEY_BYTES_MAX: usize = 255;
