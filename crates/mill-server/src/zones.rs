//! `status_zone`: requests, counted by server and by location for all workers; and those that caches count.
//!
//! Each worker has counters of its own, which are added up when they are read: counting takes no lock, and allocates at a
//! worker's first request of a zone only.

/// What one worker counts of a zone.
pub mod counts;

use crate::cache::counts::CountedInCache;
use crate::local::Local;
use crate::request::Request;
use counts::{Done, ZoneCounts, ZoneFigures};
use mill_config::Text;
use mill_config::config::{Config, Instruction, Location, LocationTree};
use mill_runtime::engine::Engine;
use mill_runtime::time::{Duration, Instant};
use std::sync::{Arc, OnceLock};

/// The zones of a configuration.
#[derive(Debug, Default)]
pub struct Zones {
    /// By the index of the name; `None` where only locations have this one.
    servers: Vec<Option<Arc<Zone>>>,
    /// `None` where only servers have this name.
    locations: Vec<Option<Arc<Zone>>>,
}

/// One zone: all servers, or all locations, with its name.
#[derive(Debug)]
pub struct Zone {
    name: Text,
    /// Two workers whose numbers are this far apart share counters.
    parts: [OnceLock<Arc<ZoneCounts>>; PARTS],
}

const PARTS: usize = 64;

/// A request under way in the zone of its server. One that is dropped, and not ended, has had no answer.
#[derive(Debug)]
pub(crate) struct Visit(Option<Arc<ZoneCounts>>);

impl Zones {
    /// The zones of `config`. Those that `previous` had as well go on counting.
    pub fn new(config: &Config, previous: Option<&Self>) -> Self {
        let Some(http) = &config.http else {
            return Self::default();
        };
        let mut used = Used::default();
        for server in &http.servers {
            used.servers.extend(server.location.status_zone);
            let named = server.named_locations.iter();
            named.for_each(|(_, location)| used.add(location));
            used.add_tree(&server.locations);
        }
        let zones = |used: &[usize], known: &[Option<Arc<Zone>>]| {
            let zone = |(index, name): (usize, &Text)| {
                used.contains(&index).then(|| {
                    let same = known.iter().flatten().find(|zone| zone.name == *name);
                    same.map_or_else(|| Arc::new(Zone::new(name)), Arc::clone)
                })
            };
            http.status_zones.iter().enumerate().map(zone).collect()
        };
        let none = Self::default();
        let previous = previous.unwrap_or(&none);
        Self {
            servers: zones(&used.servers, &previous.servers),
            locations: zones(&used.locations, &previous.locations),
        }
    }

    /// Those of servers.
    pub fn servers(&self) -> impl Iterator<Item = &Zone> {
        self.servers.iter().flatten().map(|zone| &**zone)
    }

    /// Those of locations.
    pub fn locations(&self) -> impl Iterator<Item = &Zone> {
        self.locations.iter().flatten().map(|zone| &**zone)
    }
}

/// The indices of names that servers, and locations, have.
#[derive(Default)]
struct Used {
    servers: Vec<usize>,
    locations: Vec<usize>,
}

impl Used {
    fn add_tree(&mut self, tree: &LocationTree) {
        tree.iter().for_each(|location| self.add(location));
    }

    fn add(&mut self, location: &Location) {
        self.locations.extend(location.status_zone);
        if let Some(limit) = &location.limit_except {
            self.locations.extend(limit.location.status_zone);
        }
        self.add_conditions(&location.instructions);
        self.add_tree(&location.locations);
    }

    fn add_conditions(&mut self, instructions: &[Instruction]) {
        for instruction in instructions {
            if let Instruction::If { body, location, .. } = instruction {
                self.add_conditions(body);
                location.iter().for_each(|location| self.add(location));
            }
        }
    }
}

impl Zone {
    fn new(name: &Text) -> Self {
        Self {
            name: name.clone(),
            parts: [const { OnceLock::new() }; PARTS],
        }
    }

    pub const fn name(&self) -> &Text {
        &self.name
    }

    /// The sum of what all workers have counted.
    pub fn figures(&self) -> ZoneFigures {
        let mut sum = ZoneFigures::default();
        let parts = self.parts.iter().filter_map(OnceLock::get);
        parts.for_each(|part| part.add_to(&mut sum));
        sum
    }

    /// Counts from zero again; requests under way stay.
    pub fn reset(&self) {
        let parts = self.parts.iter().filter_map(OnceLock::get);
        parts.for_each(|part| part.reset());
    }

    fn part(&self, worker: u32) -> &Arc<ZoneCounts> {
        self.parts[worker as usize % PARTS].get_or_init(Arc::default)
    }
}

impl Visit {
    /// The request is over.
    fn end(mut self, done: &Done) {
        if let Some(counts) = self.0.take() {
            counts.end(Some(done));
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(counts) = self.0.take() {
            counts.end(None);
        }
    }
}

/// A request begins: its server is known.
pub(crate) fn begin<E: Engine>(request: &mut Request, local: &Local<E>) {
    let zone = request.server.location.status_zone;
    let zone = zone.and_then(|index| request.site.zones.servers.get(index)?.as_ref());
    request.visit = zone.map(|zone| {
        let counts = zone.part(local.index());
        counts.begin();
        Visit(Some(Arc::clone(counts)))
    });
}

/// A request is over: it counts for its server, and for the location where it has ended.
#[inline]
pub(crate) fn end<E: Engine>(request: &mut Request, local: &Local<E>) {
    let is_in_zone = request.visit.is_some() || request.location.status_zone.is_some();
    if is_in_zone || request.cached.is_some() {
        Counted::new(request, local).end(0, local);
    }
}

/// What zones count of a request that lets go of the rest.
#[derive(Debug)]
pub(crate) struct Counted {
    server: Option<Visit>,
    location: Option<Arc<ZoneCounts>>,
    cache: Option<CountedInCache>,
    status: u16,
    received_bytes: u64,
    sent_bytes: u64,
    started: Instant,
}

impl Counted {
    /// `None` if no zone counts it.
    pub(crate) fn of<E: Engine>(request: &mut Request, local: &Local<E>) -> Option<Box<Self>> {
        let counted = Self::new(request, local);
        let is_in_zone =
            counted.server.is_some() || counted.location.is_some() || counted.cache.is_some();
        is_in_zone.then(|| Box::new(counted))
    }

    fn new<E: Engine>(request: &mut Request, local: &Local<E>) -> Self {
        let location = location_zone(request);
        Self {
            location: location.map(|zone| Arc::clone(zone.part(local.index()))),
            cache: CountedInCache::of(request, local.index()),
            server: request.visit.take(),
            status: request.sent.status,
            received_bytes: request.received_bytes(),
            sent_bytes: request.sent.bytes,
            started: request.started,
        }
    }

    /// The request is over, after so many bytes more.
    pub(crate) fn end<E: Engine>(self, more_sent_bytes: u64, local: &Local<E>) {
        let done = Done {
            status: self.status,
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes + more_sent_bytes,
            took: local.scheduler.now().since(self.started),
        };
        if let Some(visit) = self.server {
            visit.end(&done);
        }
        if let Some(counts) = self.location {
            counts.count_whole(&done);
        }
        if let Some(cache) = self.cache {
            cache.count(done.sent_bytes);
        }
    }
}

/// The zone of the location that the request is in. The settings of a server are no location.
fn location_zone(request: &Request) -> Option<&Arc<Zone>> {
    if Arc::ptr_eq(&request.location, &request.server.location) {
        return None;
    }
    let zones = &request.site.zones.locations;
    zones.get(request.location.status_zone?)?.as_ref()
}

/// Where equal requests with a kept answer are counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct HotZones {
    server: Option<Arc<ZoneCounts>>,
    location: Option<Arc<ZoneCounts>>,
    cache: Option<CountedInCache>,
}

impl HotZones {
    pub(crate) fn of<E: Engine>(request: &Request, local: &Local<E>) -> Self {
        let visit = request.visit.as_ref();
        let location = location_zone(request);
        Self {
            server: visit.and_then(|visit| visit.0.clone()),
            location: location.map(|zone| Arc::clone(zone.part(local.index()))),
            cache: CountedInCache::of(request, local.index()),
        }
    }

    /// A request was answered in the turn in which it arrived.
    #[inline]
    pub(crate) fn count(&self, status: u16, received_bytes: u64, sent_bytes: u64) {
        for counts in self.server.iter().chain(&self.location) {
            counts.count_whole(&Done {
                status,
                received_bytes,
                sent_bytes,
                took: Duration::ZERO,
            });
        }
        if let Some(cache) = &self.cache {
            cache.count(sent_bytes);
        }
    }
}
