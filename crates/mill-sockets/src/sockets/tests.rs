//! Two programs on two stacks that are joined in memory, in virtual time.

use super::*;
use crate::epoll_set::Interest;
use crate::readiness::Readiness;
use crate::socket::Options;
use crate::sockets::closing::Half;
use mill_stack::config::{HostConfig, Prefix};
use mill_stack::memory_link::MemoryLink;
use mill_tcp::time::Duration;

/// Streams: data both ways, ends, errors.
mod streams;

/// Sets of sets.
mod nested;

/// Connections that fail.
mod failures;

/// Options of open connections.
mod settings;

/// epoll sets.
mod sets;

/// Connections that come from another process.
mod leaving;

/// Connections that wait without a look.
mod neglecting;

/// Programs of several threads, in many worlds.
mod seeded;

/// A client and a server.
pub(super) struct World {
    pub(super) client: Sockets<MemoryLink>,
    pub(super) server: Sockets<MemoryLink>,
    now: Instant,
}

pub(super) const SERVER: &str = "10.0.0.2:80";

fn stack(number: u8, now: Instant) -> Sockets<MemoryLink> {
    let address = IpAddr::from([10, 0, 0, number]);
    let config = HostConfig::new(vec![Prefix { address, len: 24 }], [number; 16]);
    Sockets::new(config, MemoryLink::ethernet(number), now)
}

pub(super) fn waiting(waits: bool) -> Options {
    Options {
        waits,
        ..Options::default()
    }
}

impl World {
    pub(super) fn new() -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            client: stack(1, now),
            server: stack(2, now),
            now,
        }
    }

    /// Turns both until nothing is on its way.
    pub(super) fn settle(&mut self) {
        loop {
            for side in [&mut self.client, &mut self.server] {
                side.turn(self.now);
                // As a program that waits.
                side.acknowledge_unanswered();
                side.flush();
            }
            let (near, far) = (&mut self.client.link, &mut self.server.link);
            near.carry(far);
            far.carry(near);
            if near.arrived.is_empty() && far.arrived.is_empty() {
                return;
            }
        }
    }

    /// The same, again and again, for some time.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + Duration::from_millis(10);
            self.settle();
        }
    }

    pub(super) fn listen(&mut self, options: Options) -> SocketNumber {
        self.server
            .listen(SERVER.parse().unwrap(), options)
            .unwrap()
    }

    pub(super) fn connect(&mut self) -> SocketNumber {
        let target = SERVER.parse().unwrap();
        self.client.connect(target, None, waiting(false)).unwrap()
    }

    /// A connection: the client's end, and the server's.
    pub(super) fn connection(&mut self) -> (SocketNumber, SocketNumber) {
        let listener = self.listen(waiting(false));
        let near = self.connect();
        self.settle();
        let far = self.server.accept(listener).unwrap();
        (near, far.unwrap())
    }
}

/// Reads what there is; `None` where a call would wait.
pub(super) fn read(
    sockets: &mut Sockets<MemoryLink>,
    number: SocketNumber,
) -> Result<Option<Vec<u8>>, Errno> {
    sockets.read(number, |bytes| (bytes.len(), bytes.to_vec()))
}

pub(super) fn write(
    sockets: &mut Sockets<MemoryLink>,
    number: SocketNumber,
    bytes: &[u8],
) -> Result<Option<usize>, Errno> {
    sockets.write(number, false, |queue, room| {
        let count = bytes.len().min(room);
        queue.push(&bytes[..count]);
        count
    })
}

/// An interest with these conditions and flags.
pub(super) const fn interest(conditions: Readiness, flags: u32, data: u64) -> Interest {
    Interest {
        events: conditions.0 | flags,
        data,
    }
}

pub(super) const WRITING: Half = Half::Writing;

/// Or a round trip would be shorter than the path's, wherever a thread is preempted before it takes its frames.
#[test]
fn frames_have_arrived_when_they_were_taken_and_not_when_the_turn_began() {
    let mut world = World::new();
    world.listen(waiting(false));
    world.connect();
    let (near, far) = (&mut world.client, &mut world.server);
    near.turn(world.now);
    near.link.carry(&mut far.link);
    let taken = world.now + Duration::from_millis(25);
    assert!(far.turn_timed(world.now, || taken));
    assert_eq!(far.now, taken);
    // Without a frame no clock is read.
    let next = taken + Duration::from_millis(1);
    assert!(!far.turn_timed(next, || panic!("for nothing")));
    assert_eq!(far.now, next);
}
