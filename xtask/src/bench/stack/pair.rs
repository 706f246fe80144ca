//! Two hosts on one cable, and their common clock.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use mill_stack::config::{HostConfig, Prefix};
use mill_stack::host::Host;
use mill_stack::socket::{ListenOptions, ListenerId};
use mill_sys::clock;
use mill_tcp::time::Instant;

use super::cable::Port;
use super::pattern::Pattern;

/// A host, its device, and its CPU time so far.
pub(super) struct Side {
    pub(super) host: Host<Pattern>,
    pub(super) port: Port,
    pub(super) spent: Duration,
}

/// A client and a server. Time between them is virtual: the measurement advances it.
pub(super) struct Pair {
    pub(super) client: Side,
    pub(super) server: Side,
    pub(super) listener: ListenerId,
    pub(super) now: Instant,
}

/// Where the server listens.
pub(super) const TARGET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);

impl Pair {
    /// The client has `addresses` addresses, so that one server can have that many times a range of ports of
    /// connections.
    pub(super) fn new(addresses: u8, offload: bool) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let clients = (0..addresses).map(|n| Ipv4Addr::new(10, 0, 1, n + 1));
        let client = Side::new(2, clients.collect(), offload, now);
        let mut server = Side::new(1, vec![Ipv4Addr::new(10, 0, 0, 1)], offload, now);
        let options = ListenOptions {
            backlog: 4096,
            ..ListenOptions::default()
        };
        let listener = server
            .host
            .listen(TARGET, &options)
            .expect("no other socket listens in a new host");
        Self {
            client,
            server,
            listener,
            now,
        }
    }

    /// Advances the time, and runs the timers that are due.
    pub(super) fn advance(&mut self, duration: Duration) {
        self.now = self.now + duration;
        let now = self.now;
        self.client.timed(|side| side.host.expire(now));
        self.server.timed(|side| side.host.expire(now));
    }

    /// Moves the client's frames to the server; returns how many.
    pub(super) fn pass_to_server(&mut self) -> usize {
        pass(&mut self.client, &mut self.server, self.now)
    }

    pub(super) fn pass_to_client(&mut self) -> usize {
        pass(&mut self.server, &mut self.client, self.now)
    }

    /// Moves frames both ways until neither host has one to send at this instant.
    pub(super) fn settle(&mut self) {
        while self.pass_to_server() + self.pass_to_client() > 0 {}
    }
}

/// One burst from one side to the other: transmitting counts for `from`, receiving for `to`, the move for neither.
fn pass(from: &mut Side, to: &mut Side, now: Instant) -> usize {
    from.timed(|side| side.host.transmit(&mut side.port, now));
    let frames = from.port.sent();
    from.port.carry(&mut to.port);
    to.timed(|side| while side.port.has_arrived() && side.host.receive(&mut side.port, now) > 0 {});
    frames
}

impl Side {
    fn new(number: u8, addresses: Vec<Ipv4Addr>, offload: bool, now: Instant) -> Self {
        let prefix = |address| Prefix {
            address: IpAddr::V4(address),
            len: 16,
        };
        let mut config = HostConfig::new(addresses.into_iter().map(prefix).collect(), [number; 16]);
        config.ephemeral_ports = 1024..=65535;
        config.tcp.nodelay = true;
        let port = Port::new(number, offload);
        Self {
            host: Host::new(config, mill_stack::link::Link::properties(&port), now),
            port,
            spent: Duration::ZERO,
        }
    }

    /// Runs `act` at this side's cost.
    pub(super) fn timed<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        let begin = clock::monotonic();
        let result = act(self);
        self.spent += clock::monotonic() - begin;
        result
    }

    /// The time spent since the last call.
    pub(super) fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }
}
