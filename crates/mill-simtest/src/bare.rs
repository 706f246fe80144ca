//! Two hosts on a cable, without engines.

use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::sim_link::SimLink;
use mill_sim::packet::wire::Wire;
use mill_sim::world::World;
use mill_stack::config::HostConfig;
use mill_stack::host::Host;
use mill_stack::link::Link;
use mill_stack::queue::ByteQueue;
use mill_stack::socket::{ListenerId, Ready};
use mill_tcp::time::Instant;

/// A world with two hosts and a cable.
#[derive(Debug)]
pub struct Pair {
    pub world: World,
    pub ends: [End; 2],
}

/// A host and its link.
#[derive(Debug)]
pub struct End {
    pub host: Host<ByteQueue>,
    pub link: SimLink,
    /// What changed in the last turn.
    pub ready: Vec<Ready>,
    pub acceptable: Vec<ListenerId>,
}

impl Pair {
    /// `outward` is the wire from the first host to the second.
    pub fn new(
        seed: u64,
        hosts: [HostConfig; 2],
        cards: [StationOptions; 2],
        outward: Wire,
        inward: Wire,
    ) -> Self {
        let world = World::new(seed);
        let ethernet = world.ethernet();
        let now = stack_time(&world);
        let [first, second] = hosts;
        let [first_card, second_card] = cards;
        let end = |config: HostConfig, card: StationOptions| {
            let link = ethernet.plug(card, None);
            let host = Host::new(config, link.properties(), now);
            End {
                host,
                link,
                ready: Vec::new(),
                acceptable: Vec::new(),
            }
        };
        let ends = [end(first, first_card), end(second, second_card)];
        ends[0].link.station().set_wires(outward, inward);
        Self { world, ends }
    }

    /// Runs until `act`, which is called for each host in each of its turns, says that it is done, or until so much time
    /// has passed since the world began, or until nothing happens any more. Says whether `act` was done.
    pub fn run(&mut self, until: Duration, mut act: impl FnMut(usize, &mut End) -> bool) -> bool {
        loop {
            let now = stack_time(&self.world);
            for (index, end) in self.ends.iter_mut().enumerate() {
                if end.turn(now, |end| act(index, end)) {
                    return true;
                }
            }
            if self.ends.iter().any(|end| end.link.has_frames()) {
                continue;
            }
            let expiries = self.ends.iter().filter_map(|end| end.host.next_expiry());
            let deadline = expiries
                .map(|at| mill_runtime::time::Instant::from_nanos(at.as_nanos()))
                .min();
            if self.world.elapsed() >= until || !self.world.step(deadline) {
                return false;
            }
        }
    }
}

impl End {
    /// A turn as an engine makes it.
    fn turn(&mut self, now: Instant, act: impl FnOnce(&mut Self) -> bool) -> bool {
        while self.host.receive(&mut self.link, now) > 0 {}
        self.host.expire(now);
        self.ready.clear();
        self.host.take_ready(&mut self.ready);
        self.acceptable.clear();
        self.host.take_acceptable(&mut self.acceptable);
        let done = act(self);
        self.host.transmit(&mut self.link, now);
        self.host.settle(&mut self.link);
        self.link.flush();
        done
    }
}

/// The world's time as the stack has it.
pub fn stack_time(world: &World) -> Instant {
    Instant::from_nanos(world.now().as_nanos())
}
