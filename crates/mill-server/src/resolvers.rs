//! A worker's resolvers, and what those of all workers have counted.

use mill_config::Text;
use mill_config::config::{Config, Location, LocationTree, NameServers};
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::scheduler::Scheduler;
use mill_upstream::resolver::Resolver;
use mill_upstream::resolver::counters::ResolverCounters;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// One resolver for each directive `resolver` that this worker has used, in any configuration that is still in use.
pub struct WorkerResolvers {
    known: RefCell<Vec<Rc<Resolver>>>,
    make: Make,
}

type Make = Box<dyn Fn(&Arc<NameServers>, &Arc<ResolverCounters>) -> Rc<Resolver>>;

impl WorkerResolvers {
    pub(crate) fn new<E: DatagramEngine>(engine: &E, scheduler: &Rc<Scheduler>) -> Self {
        let (engine, scheduler) = (engine.clone(), Rc::clone(scheduler));
        let make = move |name_servers: &_, counters: &_| {
            Resolver::new(&engine, &scheduler, name_servers, counters)
        };
        Self {
            known: RefCell::default(),
            make: Box::new(make),
        }
    }

    /// This worker's resolver for a directive, made at its first use.
    pub(crate) fn of(
        &self,
        name_servers: &Arc<NameServers>,
        zones: &ResolverZones,
    ) -> Rc<Resolver> {
        let mut known = self.known.borrow_mut();
        let mut all = known.iter();
        if let Some(resolver) = all.find(|known| Arc::ptr_eq(known.options(), name_servers)) {
            return Rc::clone(resolver);
        }
        let new = (self.make)(name_servers, &zones.counters(name_servers));
        known.push(Rc::clone(&new));
        new
    }

    /// Forgets resolvers of configurations that nothing else holds any more.
    pub(crate) fn forget_unused(&self) {
        let is_used = |resolver: &Rc<Resolver>| {
            Rc::strong_count(resolver) > 1 || Arc::strong_count(resolver.options()) > 1
        };
        self.known.borrow_mut().retain(is_used);
    }
}

impl fmt::Debug for WorkerResolvers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(&*self.known.borrow())
            .finish()
    }
}

/// The counters of each `status_zone` of a configuration, for all workers together.
#[derive(Debug, Default)]
pub struct ResolverZones(Vec<(Text, Arc<ResolverCounters>)>);

impl ResolverZones {
    /// The zones of `config`. Those that `previous` had as well go on counting.
    pub fn new(config: &Config, previous: Option<&Self>) -> Self {
        let mut zones = Self::default();
        if let Some(stream) = &config.stream {
            let of_servers = stream
                .servers
                .iter()
                .map(|server| &server.settings.resolver.name_servers);
            let groups = stream.upstreams.iter().map(|group| &group.name_servers);
            let all = of_servers.chain(groups).flatten();
            all.for_each(|name_servers| zones.add(name_servers, previous));
        }
        let Some(http) = &config.http else {
            return zones;
        };
        let groups = http
            .upstreams
            .iter()
            .filter_map(|group| group.name_servers.as_ref());
        groups.for_each(|name_servers| zones.add(name_servers, previous));
        for server in &http.servers {
            let named = server.named_locations.iter().map(|(_, location)| location);
            for location in named.chain([&server.location]) {
                zones.add_location(location, previous);
            }
            zones.add_locations(&server.locations, previous);
        }
        zones
    }

    /// Each zone's name and counters, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Arc<ResolverCounters>)> {
        self.0.iter().map(|(name, counters)| (name, counters))
    }

    fn counters(&self, name_servers: &NameServers) -> Arc<ResolverCounters> {
        let zone = name_servers.status_zone.as_ref();
        let known = zone.and_then(|zone| self.named(zone));
        known.map_or_else(Arc::default, Arc::clone)
    }

    fn named(&self, zone: &Text) -> Option<&Arc<ResolverCounters>> {
        let mut all = self.iter();
        all.find(|(name, _)| *name == zone)
            .map(|(_, counters)| counters)
    }

    fn add(&mut self, name_servers: &NameServers, previous: Option<&Self>) {
        let Some(zone) = &name_servers.status_zone else {
            return;
        };
        if self.named(zone).is_none() {
            let known = previous.and_then(|previous| previous.named(zone));
            let counters = known.map_or_else(Arc::default, Arc::clone);
            self.0.push((zone.clone(), counters));
        }
    }

    fn add_locations(&mut self, tree: &LocationTree, previous: Option<&Self>) {
        for location in tree.iter() {
            self.add_location(location, previous);
        }
    }

    fn add_location(&mut self, location: &Location, previous: Option<&Self>) {
        if let Some(name_servers) = &location.resolver.name_servers {
            self.add(name_servers, previous);
        }
        self.add_locations(&location.locations, previous);
    }
}
