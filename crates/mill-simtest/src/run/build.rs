//! Addresses, hosts and wires of a world.

use super::generator::Load;
use super::others::Others;
use super::{Actor, Actors, TURNS_OF_NEW};
use crate::WorldEngine;
use crate::plan::{Change, Plan, StationPlan, WireChange};
use crate::servers::{HttpServer, Turn, bytes_server, write_files};
use crate::talk::{Addresses, Client, perform};
use mill_bypass::StackOptions;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Duration;
use mill_runtime::worker::Worker;
use mill_sim::engine::SimEngine;
use mill_sim::packet::ethernet::{Ethernet, Station};
use mill_sim::packet::sim_link::SimLink;
use mill_sim::packet::wire::Wire;
use mill_sim::random::Random;
use mill_sim::world::World;
use mill_stack::config::{HostConfig, Prefix};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

/// A world with all its parties.
pub(super) struct Built {
    pub(super) actors: Actors,
    /// By station, the load generator's last.
    pub(super) engines: Vec<WorldEngine>,
    pub(super) stations: Vec<Station>,
    /// Of hosts without our stack.
    pub(super) others: Vec<Station>,
}

pub(super) fn build(plan: &Plan, world: &World) -> Built {
    write_files(plan, world.files());
    let ethernet = world.ethernet();
    let mut random = Random::new(plan.seed ^ SECRETS);
    let mut engines = Vec::new();
    let mut inner_engines = Vec::new();
    let mut stations = Vec::new();
    // The load generator is at one more station, which is as the first client's.
    let extra = plan.load.map(|_| 2);
    for (index, like) in (0..plan.stations.len()).chain(extra).enumerate() {
        let inner = world.engine();
        inner_engines.push(inner.clone());
        let (engine, station) = host(plan, (index, like), inner, &ethernet, &mut random);
        engines.push(engine);
        stations.push(station);
    }
    for change in &plan.changes {
        let properties = &plan.stations[change.station];
        enter(change, properties, world, stations[change.station].clone());
    }
    let clients = plan.talks.len();
    let others = Others::build(plan, world, &ethernet, engines.len());
    let addresses = addresses(plan, others.plain_address);
    let actors = Actors {
        idlers: Vec::new(),
        engines: inner_engines,
        turns_of_all: TURNS_OF_NEW,
        http: HttpServer::new(engines[0].clone(), &addresses.http, plan),
        bytes: bytes_server(engines[1].clone(), &addresses, plan),
        clients: (0..clients)
            .map(|index| actor(plan, index, engines[index + 2].clone(), &addresses))
            .collect(),
        load: plan.load.map(|(requests, connections)| {
            let engine = engines[clients + 2].clone();
            let (target, is_faithful) = load_target(plan, &addresses);
            Load::new(engine, target, (requests, connections), is_faithful, world)
        }),
        plain: others.plain,
        forger: others.forger,
    };
    Built {
        actors,
        engines,
        stations,
        others: others.stations,
    }
}

fn addresses(plan: &Plan, plain: Option<usize>) -> Addresses {
    Addresses {
        http: socket(plan, 0, 80).into(),
        hash: socket(plan, 1, 7000).into(),
        echo: socket(plan, 1, 7001).into(),
        plain: plain.map(|station| socket(plan, station, 80).into()),
    }
}

/// What the load generator asks, and whether nothing can make its requests fail.
fn load_target<'a>(plan: &Plan, addresses: &'a Addresses) -> (&'a Address, bool) {
    let is_faithful = plan.is_faithful(2) && plan.is_ample();
    let plain = plan.plain.as_ref().filter(|it| it.has_load);
    match (plain, &addresses.plain) {
        (Some(plain), Some(address)) => (address, is_faithful && plain.is_faithful()),
        _ => (&addresses.http, is_faithful),
    }
}

/// A station with a stack. Number `index` has the properties of station `like` of the plan.
fn host(
    plan: &Plan,
    (index, like): (usize, usize),
    inner: SimEngine,
    ethernet: &Ethernet,
    random: &mut Random,
) -> (WorldEngine, Station) {
    let properties = &plan.stations[like];
    let prefix = Prefix {
        address: address(plan, index),
        len: if plan.is_ipv6 { 64 } else { 24 },
    };
    plug(properties, prefix, inner, ethernet, random, |options| {
        if index < SERVERS {
            options.host.limits = plan.settings.limits.clone();
        }
        options.opened.fast_open = plan.settings.asks_fast_open;
    })
}

/// The same for any plan; `set` sets what is not drawn here.
pub(crate) fn plug(
    properties: &StationPlan,
    prefix: Prefix,
    inner: SimEngine,
    ethernet: &Ethernet,
    random: &mut Random,
    set: impl FnOnce(&mut StackOptions<SimLink>),
) -> (WorldEngine, Station) {
    let link = ethernet.plug(properties.card.options(), Some(&inner));
    let station = link.station();
    station.set_wires(properties.outward, properties.inward);
    let mut secret = [0; 16];
    for byte in &mut secret {
        *byte = random.next().to_le_bytes()[0];
    }
    let mut config = HostConfig::new(vec![prefix], secret);
    config.tcp = properties.tcp.clone();
    let mut options = StackOptions::new(link, config);
    set(&mut options);
    options.send_buffer_bytes = random.one_of(&[20_000, 200_000, options.send_buffer_bytes]);
    (WorldEngine::new(inner, Some(options)), station)
}

/// Has a change of these properties happen when its time has come.
pub(crate) fn enter(change: &Change, properties: &StationPlan, world: &World, station: Station) {
    let (out, inwards) = (properties.outward, properties.inward);
    let (outward, inward) = match change.what {
        WireChange::Heal => (out, inwards),
        WireChange::Cut { outward, inward } => (
            Wire {
                cut: outward,
                ..out
            },
            Wire {
                cut: inward,
                ..inwards
            },
        ),
        WireChange::Mtu(mtu) => {
            let mtu = Some(mtu);
            (Wire { mtu, ..out }, Wire { mtu, ..inwards })
        }
    };
    world.at(change.at, move || station.set_wires(outward, inward));
}

fn actor(plan: &Plan, index: usize, engine: WorldEngine, addresses: &Addresses) -> Actor {
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let client = Rc::new(Client {
        index,
        engine: engine.clone(),
        scheduler: Rc::clone(&scheduler),
        addresses: addresses.clone(),
        reports: Vec::new().into(),
        ends: vec![None; plan.talks[index].len()].into(),
        asks_fast_open: plan.settings.asks_fast_open,
    });
    let mut worker = Worker::connecting(engine, scheduler);
    for (number, talk) in plan.talks[index].iter().enumerate() {
        worker.spawn(perform(Rc::clone(&client), number, talk.clone()));
    }
    let turn: Turn = Box::new(move || {
        worker.turn();
        worker.tasks()
    });
    let tasks = plan.talks[index].len();
    Actor {
        client,
        turn,
        tasks,
    }
}

/// 10.0.0.1 and on, or fd00::1 and on.
pub(super) fn address(plan: &Plan, station: usize) -> IpAddr {
    let last = u8::try_from(station + 1).unwrap_or(u8::MAX);
    if plan.is_ipv6 {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into()
    } else {
        Ipv4Addr::new(10, 0, 0, last).into()
    }
}

pub(super) fn socket(plan: &Plan, station: usize, port: u16) -> SocketAddr {
    SocketAddr::new(address(plan, station), port)
}

/// Stations that serve come first.
const SERVERS: usize = 2;

/// Mixed into the seed for what hosts keep secret, so that it is not what the plan was drawn with.
const SECRETS: u64 = 0x5ec2_e75e_ed00_0001;

/// The first load generator's turns need no finer time than this.
pub(super) const GENERATOR_STEP: Duration = Duration::from_millis(20);
