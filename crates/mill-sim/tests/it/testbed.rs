//! A world as a testbed for what every engine must do.

use crate::directory::SimDirectory;
use mill_conformance::stream_peer::{PeerNetwork, StreamPeer, turn};
use mill_conformance::{Listener, Server, Testbed};
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, ListenOptions, Park};
use mill_runtime::time::{Duration, Instant};
use mill_sim::engine::SimEngine;
use mill_sim::files::SimFiles;
use mill_sim::link::Link;
use mill_sim::world::World;
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The world of this test, which has a thread of its own, and the engine of its peers.
pub(crate) struct TestWorld {
    world: World,
    peers: SimEngine,
    servers: Cell<u8>,
}

thread_local! {
    static WORLD: RefCell<Option<TestWorld>> = const { RefCell::new(None) };
}

fn with_world<R>(look: impl FnOnce(&TestWorld) -> R) -> R {
    WORLD.with_borrow_mut(|world| {
        look(world.get_or_insert_with(|| {
            let world = World::new(5);
            world.set_link(Link::with_window(WINDOW_BYTES));
            let peers = world.engine();
            TestWorld {
                world,
                peers,
                servers: Cell::new(0),
            }
        }))
    })
}

/// Each server has an address of its own.
pub(crate) struct Sim;

impl PeerNetwork for Sim {
    type Engine = SimEngine;

    fn peers() -> SimEngine {
        with_world(|world| world.peers.clone())
    }
}

impl Testbed for Sim {
    type Engine = SimEngine;
    type Peer = StreamPeer<Self>;
    type Directory = SimDirectory;

    const TIMEOUT: Duration = Duration::from_secs(300);

    fn listen(send_buffer_bytes: Option<usize>) -> Listener<Self> {
        let (engine, address) = with_world(|world| {
            world.servers.set(world.servers.get() + 1);
            let ip = Ipv4Addr::new(10, 0, 0, world.servers.get());
            (world.world.engine(), SocketAddr::from((ip, 80)))
        });
        let options = ListenOptions {
            send_buffer_bytes: send_buffer_bytes.map(|bytes| bytes.max(SEND_BUFFER_BYTES_MIN)),
            ..ListenOptions::new(Address::Ip(address))
        };
        let id = engine.listen(&options).expect("the address is free").id;
        Listener {
            testbed: Self,
            engine,
            id,
            address,
        }
    }

    fn peers(&self) -> (SimEngine, IpAddr) {
        (
            <Self as PeerNetwork>::peers(),
            Ipv4Addr::new(10, 1, 0, 1).into(),
        )
    }

    /// A world has all addresses.
    fn addresses(server: &Server<Self>) -> Vec<IpAddr> {
        vec![server.address.ip(), Ipv4Addr::new(10, 2, 0, 1).into()]
    }

    fn turn(&mut self, until: Instant) {
        turn(&<Self as PeerNetwork>::peers(), Park::Until(until));
    }
}

/// The files of this test's world.
pub(crate) fn sim_files() -> SimFiles {
    with_world(|world| world.world.files().clone())
}

/// Bytes: what is lost when a stream closes over more than a window is no more than at kernel sockets.
const WINDOW_BYTES: u64 = 1 << 20;

/// Bytes: Linux's smallest send buffer (`SOCK_MIN_SNDBUF`).
const SEND_BUFFER_BYTES_MIN: usize = 4608;
