//! Answers of servers that are kept: a zone for each `…_cache_path`, which all workers share.
//!
//! What a request does with them is in `proxy/caching.rs`; here is what they are, and where.

/// One answer as it is kept.
mod stored;

/// Contents in another form.
pub(crate) mod compressed;

/// What is counted of requests.
pub(crate) mod counts;

/// Its folder.
pub(crate) mod disk;

/// What a request and a cache had to do with each other.
pub(crate) mod note;

/// Purges.
mod purging;

/// Removing what is old.
pub(crate) mod sweeping;

/// How often keys that are not kept were asked for.
mod uses;

pub use counts::OutcomeFigures;
pub use disk::DiskReport;
pub use note::CacheOutcome;
pub(crate) use purging::{NotPurged, Purge};
pub(crate) use stored::{CompressedOf, Place, StoredAnswer, field_lines};

use crate::local::Local;
use counts::CacheCounts;
use disk::Disk;
use mill_cache::{Figures, Limits, Object, Seed, Zone};
use mill_config::config::{CachePath, Config};
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use uses::Uses;

/// An answer in its zone.
pub(crate) type Kept = Object<StoredAnswer>;

/// The zones of a configuration, by [`CachePath::index`].
#[derive(Debug, Default)]
pub struct CacheZones(Vec<Arc<CacheZone>>);

/// One zone. It outlives configurations as long as each of them has it in the same size.
#[derive(Debug)]
pub struct CacheZone {
    config: Arc<CachePath>,
    /// Made by the first worker that uses it, which draws its seed.
    store: OnceLock<Arc<Zone<StoredAnswer>>>,
    /// What is behind it; likewise.
    disk: OnceLock<Disk>,
    pub(crate) uses: Uses,
    /// Two workers whose numbers are this far apart share counters.
    parts: [OnceLock<Arc<CacheCounts>>; PARTS],
}

const PARTS: usize = 64;

/// What is told of a zone.
#[derive(Clone, Debug, Default)]
pub struct CacheFigures {
    /// By [`CacheOutcome`].
    pub outcomes: [OutcomeFigures; CacheOutcome::ALL.len()],
    /// What it holds, and what became of that.
    pub store: Figures,
    /// The same of its folder, if it has one.
    pub disk: Option<DiskReport>,
}

impl CacheZones {
    /// Those of `config`; what `previous` has kept in a zone of the same name and size stays.
    pub(crate) fn following(previous: Option<&Self>, config: &Config) -> Self {
        let configured = config.http.iter().flat_map(|http| &http.cache_zones);
        let zones = configured.map(|wanted| {
            let mut known = previous.iter().flat_map(|previous| &previous.0);
            let same = known.find(|zone| zone.serves(wanted));
            same.map_or_else(|| Arc::new(CacheZone::new(wanted)), Arc::clone)
        });
        Self(zones.collect())
    }

    pub(crate) fn zone(&self, index: usize) -> Option<&Arc<CacheZone>> {
        self.0.get(index)
    }

    /// In the order of their directives.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CacheZone>> {
        self.0.iter()
    }
}

impl CacheZone {
    fn new(config: &Arc<CachePath>) -> Self {
        Self {
            config: Arc::clone(config),
            store: OnceLock::new(),
            disk: OnceLock::new(),
            uses: Uses::default(),
            parts: [const { OnceLock::new() }; PARTS],
        }
    }

    /// Its directive.
    pub fn config(&self) -> &CachePath {
        &self.config
    }

    /// Most objects that it keeps.
    pub fn objects_max(&self) -> u64 {
        self.limits().keys
    }

    /// What all workers have counted, and what it holds; takes each of the store's locks once.
    pub fn figures(&self) -> CacheFigures {
        let mut outcomes = [OutcomeFigures::default(); CacheOutcome::ALL.len()];
        let parts = self.parts.iter().filter_map(OnceLock::get);
        parts.for_each(|part| part.add_to(&mut outcomes));
        let store = self.known().map(|store| store.figures());
        CacheFigures {
            outcomes,
            store: store.unwrap_or_default(),
            disk: self.disk.get().map(Disk::report),
        }
    }

    /// The `count` objects that take the most memory: the bytes of their keys, and how much they take. Looks at all
    /// objects, a thousand at a time.
    pub fn largest(&self, count: usize) -> Vec<(Box<[u8]>, u64)> {
        let largest = self.known().map(|store| store.largest(count));
        let objects = largest.unwrap_or_default().into_iter();
        objects
            .map(|object| (shown(object.key()), object.charge()))
            .collect()
    }

    /// What was counted of requests begins anew; what it holds stays.
    pub(crate) fn reset(&self) {
        let parts = self.parts.iter().filter_map(OnceLock::get);
        parts.for_each(|part| part.reset());
    }

    fn part(&self, worker: u32) -> &Arc<CacheCounts> {
        self.parts[worker as usize % PARTS].get_or_init(Arc::default)
    }

    fn serves(&self, wanted: &CachePath) -> bool {
        let known = &*self.config;
        (known.protocol, &known.zone) == (wanted.protocol, &wanted.zone)
            && known.zone_bytes == wanted.zone_bytes
            && known.memory_bytes == wanted.memory_bytes
            && known.inactive == wanted.inactive
            && (known.on_disk, &known.path, known.levels)
                == (wanted.on_disk, &wanted.path, wanted.levels)
            && known.max_size_bytes == wanted.max_size_bytes
            && known.min_free_bytes == wanted.min_free_bytes
    }

    /// What it holds; made at the first use.
    pub(crate) fn store<E: Engine>(&self, local: &Local<E>) -> &Arc<Zone<StoredAnswer>> {
        let seed = || Seed([local.engine.random(), local.engine.random()]);
        self.store.get_or_init(|| Zone::new(self.limits(), seed()))
    }

    /// The same, if a request has used it.
    pub(crate) fn known(&self) -> Option<&Arc<Zone<StoredAnswer>>> {
        self.store.get()
    }

    /// Its folder, unless it has none (`disk=off`); made at the first use.
    pub(crate) fn disk<E: Engine>(&self, local: &Local<E>) -> Option<&Disk> {
        if !self.config.on_disk {
            return None;
        }
        let made = || Disk::new(&self.config, self.objects_max(), local);
        Some(self.disk.get_or_init(made))
    }

    /// An object is whole: its folder takes it.
    pub(crate) fn stored<E: Engine>(&self, kept: &Arc<Kept>, local: &Local<E>) {
        // Parts, and what is compressed, are kept in memory alone.
        let is_whole = kept.meta().place.is_none() && kept.meta().compressed.is_none();
        if let Some(disk) = self.disk(local).filter(|_| is_whole) {
            disk.offer(kept);
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            bytes: self.config.memory_bytes,
            keys: self.config.zone_bytes / KEY_BYTES,
            // Its own limit, `cache_object_max`, is the request's.
            object_bytes: self.config.memory_bytes / 2,
            filling_bytes: self.config.memory_bytes,
            inactive: self.config.inactive,
            ..Limits::default()
        }
    }
}

impl CacheFigures {
    /// Requests for which the look-up had this outcome.
    pub const fn of(&self, outcome: CacheOutcome) -> &OutcomeFigures {
        &self.outcomes[outcome as usize]
    }
}

/// A key as it is told: what goes with an answer's key in brackets behind it, such as `(gzip)`.
fn shown(key: &[u8]) -> Box<[u8]> {
    match key.iter().position(|byte| *byte == 0) {
        None => key.into(),
        Some(end) => {
            let (own, related) = key.split_at(end);
            [own, b" (", related.get(1..).unwrap_or_default(), b")"]
                .concat()
                .into()
        }
    }
}

/// The time of zones: that of the worker's turn.
pub(crate) fn now<E: Engine>(local: &Local<E>) -> Duration {
    at(local.scheduler.now())
}

/// A moment as zones have it.
pub(crate) const fn at(moment: Instant) -> Duration {
    Duration::from_nanos(moment.as_nanos())
}

/// Bytes of `keys_zone` for a key: nginx says that a megabyte has room for about 8000.
const KEY_BYTES: u64 = 128;
