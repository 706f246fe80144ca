//! Two hosts behind one address, one after the other.

use super::pair::turn_of;
use super::*;
use crate::config::Prefix;
use crate::queue::ByteQueue;
use crate::socket::{ListenOptions, SocketId};
use alloc::collections::VecDeque;

/// A client and a server, and the server's successor, which takes the wire over at some moment.
pub(super) struct Succession {
    pub(super) pair: Pair,
    pub(super) younger: Option<(Host<ByteQueue>, MemoryLink)>,
}

impl Succession {
    pub(super) fn new(change: impl Fn(&mut HostConfig)) -> Self {
        let (client, server) = (MemoryLink::ethernet(1), MemoryLink::ethernet(2));
        Self {
            pair: Pair::over(client, server, change),
            younger: None,
        }
    }

    /// From now on the newer host has the wire, listening or not.
    pub(super) fn succeed(&mut self, is_listening: bool) {
        let now = self.pair.now;
        let mut link = MemoryLink::ethernet(2);
        link.handed = Some(VecDeque::new());
        let prefix = |address: &str, len| Prefix {
            address: address.parse().unwrap(),
            len,
        };
        let addresses = alloc::vec![prefix("10.0.0.1", 24), prefix("fd00::1", 64)];
        let mut host = Host::new(HostConfig::new(addresses, [77; 16]), link.properties(), now);
        if is_listening {
            let options = ListenOptions::default();
            host.listen(SERVER_V4.parse().unwrap(), &options).unwrap();
        }
        self.younger = Some((host, link));
    }

    /// One turn of all hosts; returns whether anything moved.
    pub(super) fn turn(&mut self) -> bool {
        let Some((host, link)) = &mut self.younger else {
            return self.pair.turn();
        };
        let pair = &mut self.pair;
        let mut moved = turn_of(&mut pair.client, &mut pair.client_link, pair.now);
        moved += pair.client_link.carry(link);
        moved += turn_of(host, link, pair.now);
        pair.server_link
            .arrived
            .append(link.handed.as_mut().unwrap());
        moved += turn_of(&mut pair.server, &mut pair.server_link, pair.now);
        moved += pair.server_link.carry(&mut pair.client_link);
        moved += link.carry(&mut pair.client_link);
        moved > 0
    }

    pub(super) fn run(&mut self) {
        while self.turn() {}
    }

    pub(super) fn younger(&mut self) -> &mut Host<ByteQueue> {
        &mut self.younger.as_mut().unwrap().0
    }

    /// A connection of the client's, and whether it is established.
    pub(super) fn connect(&mut self, target: &str) -> (SocketId, bool) {
        let target = target.parse().unwrap();
        let socket = self.pair.client.connect(target, None, true, 7).unwrap();
        self.run();
        (socket, self.pair.client.is_established(socket))
    }
}
