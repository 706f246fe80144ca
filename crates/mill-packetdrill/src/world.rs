//! The host, a wire without a device, and a clock that moves when a call waits.

use crate::world::descriptors::Descriptors;
use crate::world::settings::Settings;
use crate::world::wire::Wire;
use mill_stack::host::Host;
use mill_stack::queue::ByteQueue;
use mill_tcp::time::{Duration, Instant};
use std::collections::VecDeque;

/// Calls on connections and listeners.
mod calls;

/// What programs hold.
mod descriptors;

/// Fast Open, as a client and by sysctl.
mod fast_open;

/// Options of sockets.
pub(crate) mod options;

/// What sysctl and the flags say.
pub(crate) mod settings;

/// Frames to and from packets.
mod wire;

/// Everything that packetdrill looks at.
#[derive(Debug)]
pub(crate) struct World {
    settings: Settings,
    /// Made when it is needed first: until then sysctl may change what it is made with.
    host: Option<Host<ByteQueue>>,
    wire: Wire,
    /// Microseconds since 1970, or any other time that is not 0.
    now_us: u64,
    /// IP packets of the stack, with the time they left at.
    sent: VecDeque<(u64, Vec<u8>)>,
    descriptors: Descriptors,
}

/// When the clock begins, in microseconds; timestamps must not depend on it.
const BEGIN_US: u64 = 1_000_000_000;

/// Turns at one time before the stack is left alone; it has never taken more than a few.
const TURNS_MAX: u32 = 1000;

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let wire = Wire::new(settings.mtu);
        Self {
            settings,
            host: None,
            wire,
            now_us: BEGIN_US,
            sent: VecDeque::new(),
            descriptors: Descriptors::default(),
        }
    }

    pub(crate) const fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(crate) const fn look_at_clock(&mut self) -> u64 {
        self.now_us += 1;
        self.now_us
    }

    pub(crate) fn take_sent(&mut self) -> Option<(u64, Vec<u8>)> {
        self.sent.pop_front()
    }

    /// An IP packet arrives.
    pub(crate) fn receive(&mut self, packet: &[u8]) {
        self.host();
        self.wire.push(packet);
        self.turn();
    }

    /// Goes to the next timer or to `until`, whichever is first; says whether `until` is still ahead.
    pub(crate) fn step(&mut self, until: u64) -> bool {
        let expiry = self.host.as_ref().and_then(Host::next_expiry);
        let due = expiry
            .map(|at| at.as_micros() + 1)
            .filter(|due| *due < until);
        // A timer that is overdue moves the clock all the same, so that this ends.
        self.now_us = due
            .unwrap_or(until)
            .max(self.now_us + 1)
            .min(until.max(self.now_us));
        self.turn();
        self.now_us < until
    }

    fn instant(&self) -> Instant {
        Instant::from_nanos(0) + Duration::from_micros(self.now_us)
    }

    fn host(&mut self) -> &mut Host<ByteQueue> {
        let now = self.instant();
        let settings = &mut self.settings;
        let wire = &self.wire;
        self.host.get_or_insert_with(|| {
            settings.read_file();
            Host::new(settings.host_config(), wire.link(), now)
        })
    }

    /// Takes what sysctl was told since, as far as the stack can be told so while it runs.
    fn refresh(&mut self) {
        self.settings.read_file();
    }

    /// One turn of the stack, and more while its neighbours answer.
    fn turn(&mut self) {
        let now = self.instant();
        let Some(host) = &mut self.host else { return };
        for _ in 0..TURNS_MAX {
            while host.receive(&mut self.wire, now) > 0 {}
            host.expire(now);
            host.transmit(&mut self.wire, now);
            host.settle(&mut self.wire);
            let packets = self.wire.take_sent();
            self.sent
                .extend(packets.map(|packet| (self.now_us, packet)));
            if !self.wire.has_arriving() {
                return;
            }
        }
    }
}
