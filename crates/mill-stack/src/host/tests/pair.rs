//! A client and a server in memory, and virtual time.

use crate::config::{HostConfig, Prefix};
use crate::host::Host;
use crate::host::status::Usage;
use crate::link::Link;
use crate::memory_link::MemoryLink;
use crate::queue::ByteQueue;
use crate::socket::{ListenOptions, ListenerId, SocketId};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use mill_tcp::time::Instant;

/// A client and a server, a wire between them, and virtual time.
pub(super) struct Pair {
    pub(super) client: Host<ByteQueue>,
    pub(super) server: Host<ByteQueue>,
    pub(super) client_link: MemoryLink,
    pub(super) server_link: MemoryLink,
    pub(super) now: Instant,
}

pub(super) const SERVER_V4: &str = "10.0.0.1:80";
pub(super) const SERVER_V6: &str = "[fd00::1]:80";

impl Pair {
    pub(super) fn new() -> Self {
        Self::over(MemoryLink::ethernet(1), MemoryLink::ethernet(2), |_| {})
    }

    pub(super) fn over(
        client_link: MemoryLink,
        server_link: MemoryLink,
        change: impl Fn(&mut HostConfig),
    ) -> Self {
        let now = Instant::from_nanos(5_000_000_000);
        let host = |number: u8, link: &MemoryLink| {
            let prefix = |address: &str, len| Prefix {
                address: address.parse::<IpAddr>().unwrap(),
                len,
            };
            let v4 = alloc::format!("10.0.0.{number}");
            let v6 = alloc::format!("fd00::{number}");
            let addresses = alloc::vec![prefix(&v4, 24), prefix(&v6, 64)];
            let mut config = HostConfig::new(addresses, [number; 16]);
            change(&mut config);
            Host::new(config, link.properties(), now)
        };
        Self {
            client: host(2, &client_link),
            server: host(1, &server_link),
            client_link,
            server_link,
            now,
        }
    }

    /// One turn of each side; says whether anything moved.
    pub(super) fn turn(&mut self) -> bool {
        let mut moved = turn_of(&mut self.client, &mut self.client_link, self.now);
        moved += self.client_link.carry(&mut self.server_link);
        moved += turn_of(&mut self.server, &mut self.server_link, self.now);
        moved += self.server_link.carry(&mut self.client_link);
        moved > 0
    }

    /// Turns until nothing moves at this instant.
    pub(super) fn run(&mut self) {
        for _ in 0..10_000 {
            if !self.turn() {
                return;
            }
        }
        panic!("the two never come to rest");
    }

    /// Lets time pass, from timer to timer.
    pub(super) fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let next = [self.client.next_expiry(), self.server.next_expiry()];
            match next.into_iter().flatten().min() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
            self.run();
        }
        self.now = end;
        self.run();
    }

    pub(super) fn listen(&mut self, address: &str) -> ListenerId {
        let options = ListenOptions::default();
        self.server
            .listen(address.parse().unwrap(), &options)
            .unwrap()
    }

    /// An established connection, both ends.
    pub(super) fn connect(&mut self, listener: ListenerId, target: &str) -> (SocketId, SocketId) {
        let target: SocketAddr = target.parse().unwrap();
        let client = self.client.connect(target, None, true, 7).unwrap();
        self.run();
        assert!(self.client.is_established(client));
        let server = self.server.accept(listener, 9).unwrap();
        assert!(self.server.is_established(server));
        assert_eq!(self.server.peer(server), self.client.local(client));
        assert_eq!(self.client.peer(client), Some(target));
        (client, server)
    }

    pub(super) fn usages(&self) -> [Usage; 2] {
        [self.client.usage(), self.server.usage()]
    }
}

pub(super) fn turn_of(host: &mut Host<ByteQueue>, link: &mut MemoryLink, now: Instant) -> usize {
    let mut received = 0;
    loop {
        let count = host.receive(link, now);
        received += count;
        if count == 0 {
            break;
        }
    }
    host.expire(now);
    host.transmit(link, now);
    host.settle(link);
    assert_eq!(link.held(), 0);
    received
}

pub(super) fn write(host: &mut Host<ByteQueue>, socket: SocketId, bytes: &[u8]) {
    host.queue(socket).unwrap().push(bytes);
    host.wrote(socket);
}

pub(super) fn read(host: &mut Host<ByteQueue>, link: &mut MemoryLink, socket: SocketId) -> Vec<u8> {
    host.read(socket, link, |bytes| (bytes.len(), bytes.to_vec()))
}

pub(super) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| u8::try_from((at * 31 + at / 251 + seed) % 256).unwrap())
        .collect()
}
