//! A simulated network as a testbed, and the servers that run in it.

use crate::directory::SimDirectory;
use mill_bypass::{BypassEngine, BypassStream, StackOptions};
use mill_conformance::stream_peer::{PeerNetwork, StreamPeer, turn};
use mill_conformance::{Around, Listener, Testbed};
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, ListenOptions, Park};
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use mill_sim::engine::SimEngine;
use mill_sim::files::SimFiles;
use mill_sim::packet::ethernet::{Ethernet, StationOptions};
use mill_sim::packet::sim_link::SimLink;
use mill_sim::world::World;
use mill_stack::config::{HostConfig, Prefix};
use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::task::Poll;

pub(crate) type TestEngine = BypassEngine<SimLink, SimEngine>;
pub(crate) type TestStream = BypassStream<SimLink, SimEngine>;

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

/// The files of this test's world.
pub(crate) fn sim_files() -> SimFiles {
    network().world.files().clone()
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

pub(crate) type Server = mill_conformance::Server<Network>;

/// A stream of another host.
pub(crate) type Client = mill_conformance::Client<StreamPeer<Network>>;

impl PeerNetwork for Network {
    type Engine = TestEngine;

    fn peers() -> TestEngine {
        network().clients
    }
}

impl Testbed for Network {
    type Engine = TestEngine;
    type Peer = StreamPeer<Self>;
    type Directory = SimDirectory;

    /// Virtual time: it includes backed-off retransmissions.
    const TIMEOUT: Duration = Duration::from_secs(300);

    /// The clients' host has no large receive buffers for clients that do not read.
    fn listen(send_buffer_bytes: Option<usize>) -> Listener<Self> {
        listening(|_, options| options.send_buffer_bytes = send_buffer_bytes)
    }

    fn peers(&self) -> (TestEngine, IpAddr) {
        (self.clients.clone(), CLIENTS.into())
    }

    fn turn(&mut self, until: Instant) {
        turn(&self.clients, Park::Until(until));
    }

    fn refuses(server: &mut Server) -> bool {
        let client = server.connect();
        server.run_on();
        client.peer.0.poll_drained(0) == Poll::Ready(Err(StreamError::Refused))
    }
}

/// Serves every connection with a task that `serve` makes.
pub(crate) fn start<F>(serve: impl FnMut(TestStream, Around<TestEngine>) -> F + 'static) -> Server
where
    F: Future<Output = ()> + 'static,
{
    Server::start(serve)
}

/// Serves at a host and with a listener that `configure` has changed.
pub(crate) fn start_with<F>(
    configure: impl FnOnce(&mut StackOptions<SimLink>, &mut ListenOptions),
    serve: impl FnMut(TestStream, Around<TestEngine>) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    Server::on(listening(configure), serve)
}

fn listening(
    configure: impl FnOnce(&mut StackOptions<SimLink>, &mut ListenOptions),
) -> Listener<Network> {
    let network = network();
    let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let mut options = ListenOptions::new(Address::Ip(unspecified));
    let card = StationOptions::new(MTU);
    let (engine, _, ip) = network.host(card, |host| configure(host, &mut options));
    if options.address == Address::Ip(unspecified) {
        options.address = Address::Ip(SocketAddr::from((ip, PORT)));
    }
    listening_at(network, engine, &options, (ip, PORT).into())
}

/// Serves with an existing engine.
pub(crate) fn serve_at<F>(
    network: Network,
    engine: TestEngine,
    options: &ListenOptions,
    address: SocketAddr,
    serve: impl FnMut(TestStream, Around<TestEngine>) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    Server::on(listening_at(network, engine, options, address), serve)
}

fn listening_at(
    network: Network,
    engine: TestEngine,
    options: &ListenOptions,
    address: SocketAddr,
) -> Listener<Network> {
    let id = engine.listen(options).expect("the address is free").id;
    Listener {
        testbed: network,
        engine,
        id,
        address,
    }
}

/// Every test's world is the same; what differs is what happens in it.
const SEED: u64 = 5;

/// Any host number; each server has a host of its own.
pub(crate) const PORT: u16 = 80;

/// Bytes: Ethernet's.
pub(crate) const MTU: u16 = 1500;

pub(crate) const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);
