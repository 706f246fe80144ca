//! Counting what is under way by a key: the table of a `limit_conn_zone`.

use super::shards::{KeyHash, Shards};
use super::status::ConnectionStatus;
use super::table::{Table, bytes_for_keys};
use super::zones::{ZoneFigures, ZoneTable};
use super::{Limited, LimitedConnections};
use crate::local::Local;
use crate::log::Text;
use mill_config::config::settings::LimitConnSettings;
use mill_config::config::{ConnectionZone, LogLevel};
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// The keys of a zone, each with how many there are of it.
#[derive(Debug)]
pub struct ConnectionTable {
    shards: Shards<Part>,
}

#[derive(Debug)]
struct Part {
    keys: Table<u32>,
    figures: ConnectionFigures,
}

/// What became of those that a zone has counted, and how many keys are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFigures {
    pub keys: u64,
    pub passed: u64,
    pub rejected: u64,
    pub rejected_dry_run: u64,
}

/// A request or session that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    table: Arc<ConnectionTable>,
    hash: KeyHash,
    slot: u32,
}

/// What the limits of a request or session make of it.
#[derive(Debug, Default)]
pub(crate) struct Entered {
    /// `None` if it has no key.
    pub(crate) status: Option<ConnectionStatus>,
    pub(crate) counted: Vec<Counted>,
}

/// Why there is no room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// There are as many of the key as may be.
    Beyond,
    /// There is no room for the key.
    Full,
}

/// Counts `subject` by all limits, until the result is dropped. One that is refused is counted by none.
///
/// `during` ends the line about a refusal.
pub(crate) fn enter<E: Engine>(
    subject: &mut impl Limited,
    settings: &LimitConnSettings,
    zones: &[LimitedConnections],
    during: &str,
    local: &Local<E>,
) -> Entered {
    let mut entered = Entered::default();
    for limit in &settings.limits {
        let Some(zone) = zones.get(limit.zone) else {
            continue;
        };
        let key = subject.evaluate(&zone.config.key);
        if key.is_empty() {
            continue;
        }
        if key.len() > KEY_BYTES_MAX {
            let (name, key) = (Text(&zone.config.key_text), Text(&key));
            let line =
                format_args!("the value of the \"{name}\" key is more than 255 bytes: \"{key}\"");
            subject.log(LogLevel::Error, line);
            continue;
        }
        entered.status = Some(ConnectionStatus::Passed);
        let dry_run = settings.dry_run;
        match ConnectionTable::enter(&zone.table, &key, limit.most, dry_run, local) {
            Ok(counted) => entered.counted.push(counted),
            Err(refusal) => {
                let name = Text(&zone.config.name);
                let how = if dry_run { ", dry run," } else { "" };
                match refusal {
                    Refusal::Beyond => subject.log(
                        settings.log_level,
                        format_args!("limiting connections{how} by zone \"{name}\"{during}"),
                    ),
                    Refusal::Full => subject.log(
                        LogLevel::Crit,
                        format_args!("ngx_slab_alloc() failed: no memory in limit_conn_zone \"{name}\"{during}"),
                    ),
                }
                let status = match dry_run {
                    true => ConnectionStatus::RejectedDryRun,
                    false => ConnectionStatus::Rejected,
                };
                return Entered {
                    status: Some(status),
                    counted: Vec::new(),
                };
            }
        }
    }
    entered
}

impl ConnectionTable {
    fn enter<E: Engine>(
        self: &Arc<Self>,
        key: &[u8],
        most: u32,
        dry_run: bool,
        local: &Local<E>,
    ) -> Result<Counted, Refusal> {
        let (hash, mut part) = self.shards.lock(key, local, Part::new);
        let slot = part.enter(hash, key, most);
        let figure = match (slot, dry_run) {
            (Ok(_), _) => &mut part.figures.passed,
            (Err(_), false) => &mut part.figures.rejected,
            (Err(_), true) => &mut part.figures.rejected_dry_run,
        };
        *figure += 1;
        let table = Arc::clone(self);
        slot.map(|slot| Counted { table, hash, slot })
    }
}

impl ZoneTable for ConnectionTable {
    type Directive = ConnectionZone;
    type Figures = ConnectionFigures;

    fn new(zone_bytes: u64) -> Self {
        Self {
            shards: Shards::new(bytes_for_keys(zone_bytes, ROOT_BYTES)),
        }
    }

    fn figures(&self) -> ConnectionFigures {
        let mut sum = ConnectionFigures::default();
        self.shards.for_each(|part| {
            sum.keys += part.keys.len() as u64;
            sum.passed += part.figures.passed;
            sum.rejected += part.figures.rejected;
            sum.rejected_dry_run += part.figures.rejected_dry_run;
        });
        sum
    }

    fn reset(&self) {
        self.shards
            .for_each(|part| part.figures = ConnectionFigures::default());
    }
}

impl ZoneFigures for ConnectionFigures {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn by_outcome(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("passed", self.passed),
            ("rejected", self.rejected),
            ("rejected_dry_run", self.rejected_dry_run),
        ]
    }
}

impl Part {
    fn new(bytes: u64) -> Self {
        Self {
            keys: Table::new(bytes, NODE_BYTES),
            figures: ConnectionFigures::default(),
        }
    }

    fn enter(&mut self, hash: KeyHash, key: &[u8], most: u32) -> Result<u32, Refusal> {
        let known = self.keys.find(hash.0, key);
        let slot = known
            .or_else(|| self.keys.insert(hash.0, key))
            .ok_or(Refusal::Full)?;
        let count = self.keys.value(slot);
        if *count >= most {
            return Err(Refusal::Beyond);
        }
        *count += 1;
        Ok(slot)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(mut part) = self.table.shards.lock_again(self.hash) else {
            return;
        };
        let count = part.keys.value(self.slot);
        *count -= 1;
        if *count == 0 {
            part.keys.remove(self.slot);
        }
    }
}

/// What a key takes in nginx beside its own bytes.
const NODE_BYTES: u64 = 36;

/// What the root of its tree takes there.
const ROOT_BYTES: u64 = 64;

/// Longest key (nginx).
const KEY_BYTES_MAX: usize = 255;
