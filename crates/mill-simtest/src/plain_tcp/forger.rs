//! Forged segments: SYNs from addresses that do not answer, and acknowledgements that guess (RFC 4987).

use super::header::{ACK, RST, SYN, Segment};
use super::neighbours::{answer, hardware_address};
use super::segment_arrives::answer_to_stranger;
use crate::plan::FloodPlan;
use mill_runtime::engine::{Engine, Events, Park};
use mill_runtime::time::Instant;
use mill_sim::engine::SimEngine;
use mill_sim::packet::sim_link::SimLink;
use mill_sim::random::Random;
use mill_stack::link::{Burst, Link, Offload};
use std::net::{IpAddr, SocketAddr};

/// A host that forges.
#[derive(Debug)]
pub struct Forger {
    engine: SimEngine,
    link: SimLink,
    plan: FloodPlan,
    /// Its own address, whose neighbours' names it uses.
    address: IpAddr,
    target: SocketAddr,
    random: Random,
    began: Instant,
    sent: u32,
}

impl Forger {
    pub fn new(
        engine: SimEngine,
        link: SimLink,
        plan: FloodPlan,
        (address, target): (IpAddr, SocketAddr),
        seed: u64,
    ) -> Self {
        Self {
            began: engine.now(),
            engine,
            link,
            plan,
            address,
            target,
            random: Random::new(seed),
            sent: 0,
        }
    }

    /// Whether a turn would do something.
    pub fn is_due(&self) -> bool {
        self.engine.is_due()
    }

    pub fn turn(&mut self) {
        let next = (self.sent < self.plan.segments).then(|| self.due_at(self.sent));
        let park = next.map_or(Park::Forever, Park::Until);
        self.engine.poll(park, &mut Events::default());
        let now = self.engine.now();
        self.receive();
        while self.sent < self.plan.segments && self.due_at(self.sent) <= now {
            let segment = self.forge();
            self.send(&segment);
            self.sent += 1;
        }
        self.link.flush();
    }

    fn due_at(&self, number: u32) -> Instant {
        self.began + self.plan.at + self.plan.pause * number
    }

    fn forge(&mut self) -> Segment {
        let (forged, port) = (self.forged_address(), self.number16());
        let is_guess = self.random.happens(self.plan.guesses_per_million);
        // A guess never comes from where a SYN came from: a world holds every sender to what its SYNs agreed on.
        let port = if is_guess { port | 1 } else { port.max(2) & !1 };
        let source = SocketAddr::new(forged, port);
        let options = self
            .random
            .one_of(&[&[][..], &[2, 4, 5, 0xb4], &FULL_OPTIONS]);
        Segment {
            source,
            target: self.target,
            seq: self.number32(),
            ack: if is_guess { self.number32() } else { 0 },
            flags: if is_guess { ACK } else { SYN },
            window: self.number16(),
            urgent: 0,
            reserved: 0,
            ecn: 0,
            options: if is_guess {
                Vec::new()
            } else {
                options.to_vec()
            },
            payload: Vec::new(),
        }
    }

    /// One of the addresses that no host has.
    fn forged_address(&mut self) -> IpAddr {
        let last = FIRST_NOBODY + u8::try_from(self.random.up_to(NOBODIES)).unwrap_or(0);
        with_last(self.address, last)
    }

    fn number16(&mut self) -> u16 {
        u16::try_from(self.random.up_to(0xffff)).unwrap_or(0)
    }

    fn number32(&mut self) -> u32 {
        u32::try_from(self.random.up_to(0xffff_ffff)).unwrap_or(0)
    }

    /// The forged addresses may belong to hosts, which answer as hosts that know nothing of the connection.
    fn receive(&mut self) {
        let mut burst = Burst::new(64);
        loop {
            burst.clear();
            self.link.receive(&mut burst);
            if burst.as_slice().is_empty() {
                return;
            }
            for received in burst.as_slice() {
                let frame = self.link.frame(received.id).to_vec();
                self.link.release(received.id);
                if self.plan.answers {
                    self.on_frame(&frame);
                }
            }
        }
    }

    fn on_frame(&mut self, frame: &[u8]) {
        let own = hardware_address(self.address);
        let is_nobody = |address: IpAddr| {
            let last = last_of(address);
            address == with_last(self.address, last) && last >= FIRST_NOBODY
        };
        if let Some(answer) = answer(frame, own, is_nobody) {
            self.transmit(&answer);
        } else if let Ok(Some(segment)) = Segment::read(frame, false)
            && is_nobody(segment.target.ip())
            && !segment.has(RST)
        {
            self.send(&answer_to_stranger(&segment));
        }
    }

    fn send(&mut self, segment: &Segment) {
        let to = hardware_address(segment.target.ip());
        let frame = segment.write(hardware_address(self.address), to);
        self.transmit(&frame);
    }

    fn transmit(&mut self, frame: &[u8]) {
        if let Some(room) = self.link.reserve(frame.len()) {
            room.copy_from_slice(frame);
            self.link.transmit(frame.len(), Offload::default());
        }
    }
}

fn with_last(address: IpAddr, last: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c, last].into()
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[15] = last;
            octets.into()
        }
    }
}

fn last_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}

/// Last bytes of addresses that no host of a world has.
const FIRST_NOBODY: u8 = 100;
const NOBODIES: u64 = 150;

/// What Linux's SYNs have: segment size, SACK, timestamps, window scale.
const FULL_OPTIONS: [u8; 20] = [
    2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
];
