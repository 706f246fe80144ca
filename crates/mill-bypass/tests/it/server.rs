//! The network of a test, the worker that it runs, and the servers it runs on it.

use crate::client::Client;
use mill_bypass::config::{HostConfig, Prefix};
use mill_bypass::{BypassEngine, BypassStream, StackOptions};
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, Events, ListenOptions, ListenerId, Park};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use mill_runtime::worker::{Turn, Worker};
use mill_sim::engine::SimEngine;
use mill_sim::files::SimFiles;
use mill_sim::packet::ethernet::{Ethernet, StationOptions};
use mill_sim::packet::sim_link::SimLink;
use mill_sim::world::World;
use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

pub(crate) type TestEngine = BypassEngine<SimLink, SimEngine>;
pub(crate) type TestStream = BypassStream<SimLink, SimEngine>;
pub(crate) type TestFiles = SimFiles;

pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;
type Accepted = Box<dyn FnMut(TestStream, ListenerId) -> Task>;

/// A world, the cable in it, and the host that all clients of a test share.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) world: Rc<World>,
    pub(crate) ethernet: Ethernet,
    pub(crate) clients: TestEngine,
    hosts: Rc<RefCell<u8>>,
}

thread_local! {
    static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
}

/// The network of this test, which has a thread of its own.
pub(crate) fn network() -> Network {
    NETWORK.with_borrow_mut(|network| network.get_or_insert_with(Network::new).clone())
}

impl Network {
    fn new() -> Self {
        let world = Rc::new(World::new(SEED));
        let ethernet = world.ethernet();
        let card = StationOptions::new(MTU);
        let clients = host(&world, &ethernet, CLIENTS, card, |_| {}).0;
        Self {
            world,
            ethernet,
            clients,
            hosts: Rc::default(),
        }
    }

    /// A new host's engine, its inner one, and where it is.
    pub(crate) fn host(
        &self,
        card: StationOptions,
        configure: impl FnOnce(&mut StackOptions<SimLink>),
    ) -> (TestEngine, SimEngine, Ipv4Addr) {
        let mut hosts = self.hosts.borrow_mut();
        *hosts += 1;
        let ip = Ipv4Addr::new(10, 77, 0, *hosts);
        let (engine, inner) = host(&self.world, &self.ethernet, ip, card, configure);
        (engine, inner, ip)
    }

    /// What frames and timers do to the clients; waits no longer than `park`.
    pub(crate) fn turn_clients(&self, park: Park) {
        let mut events = Events::default();
        self.clients.poll(park, &mut events);
        self.clients.settle();
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.now()
    }
}

fn host(
    world: &World,
    ethernet: &Ethernet,
    ip: Ipv4Addr,
    card: StationOptions,
    configure: impl FnOnce(&mut StackOptions<SimLink>),
) -> (TestEngine, SimEngine) {
    let inner = world.engine();
    let link = ethernet.plug(card, Some(&inner));
    let prefixes = [
        Prefix {
            address: IpAddr::V4(ip),
            len: 16,
        },
        Prefix {
            address: IpAddr::V6(v6_of(ip)),
            len: 64,
        },
    ];
    let secret = [ip.octets()[3]; 16];
    let mut options = StackOptions::new(link, HostConfig::new(prefixes.to_vec(), secret));
    configure(&mut options);
    (BypassEngine::new(inner.clone(), Some(options)), inner)
}

/// The IPv6 address of the host that has an IPv4 address.
pub(crate) fn v6_of(ip: Ipv4Addr) -> Ipv6Addr {
    let [_, _, net, host] = ip.octets();
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from_be_bytes([net, host]))
}

/// What a task is made with.
#[derive(Clone)]
pub(crate) struct Around {
    pub(crate) engine: TestEngine,
    pub(crate) scheduler: Rc<Scheduler>,
}

/// A worker with one listener.
pub(crate) struct Server {
    pub(crate) worker: Worker<TestEngine, Task, Accepted>,
    pub(crate) around: Around,
    pub(crate) listener: ListenerId,
    pub(crate) address: SocketAddr,
    pub(crate) network: Network,
}

/// Serves every connection with a task that `serve` makes.
pub(crate) fn start<F>(serve: impl FnMut(TestStream, Around) -> F + 'static) -> Server
where
    F: Future<Output = ()> + 'static,
{
    start_with(|_, _| {}, serve)
}

/// As [`start`], with so small a send buffer.
pub(crate) fn start_narrow<F>(
    send_buffer_bytes: usize,
    serve: impl FnMut(TestStream, Around) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    start_with(
        |_, listening| listening.send_buffer_bytes = Some(send_buffer_bytes),
        serve,
    )
}

/// Serves at a host and with a listener that `configure` has changed.
pub(crate) fn start_with<F>(
    configure: impl FnOnce(&mut StackOptions<SimLink>, &mut ListenOptions),
    serve: impl FnMut(TestStream, Around) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    let network = network();
    let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let mut listening = ListenOptions::new(Address::Ip(unspecified));
    let card = StationOptions::new(MTU);
    let (engine, _, ip) = network.host(card, |options| configure(options, &mut listening));
    if listening.address == Address::Ip(unspecified) {
        listening.address = Address::Ip(SocketAddr::from((ip, PORT)));
    }
    serve_at(network, engine, &listening, (ip, PORT).into(), serve)
}

/// Serves with an engine that is there.
pub(crate) fn serve_at<F>(
    network: Network,
    engine: TestEngine,
    listening: &ListenOptions,
    address: SocketAddr,
    mut serve: impl FnMut(TestStream, Around) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let listener = engine.listen(listening).expect("the address is free").id;
    let around = Around {
        engine: engine.clone(),
        scheduler: Rc::clone(&scheduler),
    };
    let for_tasks = around.clone();
    let accepted: Accepted =
        Box::new(move |stream, _| Box::pin(serve(stream, for_tasks.clone())) as Task);
    let mut worker = Worker::new(engine, scheduler, accepted);
    worker.add_listener(listener);
    Server {
        worker,
        around,
        listener,
        address,
        network,
    }
}

impl Server {
    pub(crate) fn now(&self) -> Instant {
        self.network.now()
    }

    /// Whether the stack of this server refuses whoever connects.
    pub(crate) fn refuses(&mut self) -> bool {
        let client = Client::connect(self.address);
        self.run_on();
        client.stream.poll_drained(0) == Poll::Ready(Err(StreamError::Refused))
    }

    /// One turn of the server and one of the clients; each waits a few milliseconds at the most.
    pub(crate) fn turn(&mut self) -> Turn {
        let until = self.now() + GLANCE;
        self.worker.set_alarm(until);
        let turn = self.worker.turn();
        self.network.turn_clients(Park::Until(until));
        turn
    }
}

/// After so long without what is expected, it was lost. Virtual time: it includes backed-off retransmissions.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// How long a turn waits before the test looks at its clients.
const GLANCE: Duration = Duration::from_millis(5);

/// Every test's world is the same; what differs is what happens in it.
const SEED: u64 = 5;

/// Any; each server has a host of its own.
pub(crate) const PORT: u16 = 80;

/// Bytes: Ethernet's.
pub(crate) const MTU: u16 = 1500;

pub(crate) const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);
