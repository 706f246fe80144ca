//! A host with this TCP at a simulated network.

use super::application::{Application, Finding};
use super::connection::{Connection, State};
use super::habits::Habits;
use super::header::{ACK, Fault, RST, SYN, Segment};
use super::neighbours::{answer, hardware_address};
use super::segment_arrives::answer_to_stranger;
use crate::plan::{PlainTalk, Talk};
use mill_runtime::engine::{Engine, Events, Park};
use mill_runtime::time::Instant;
use mill_sim::engine::SimEngine;
use mill_sim::packet::sim_link::SimLink;
use mill_sim::random::Random;
use mill_stack::link::{Burst, Link, Offload, ReceivedChecksum};
use std::net::{IpAddr, SocketAddr};

/// One host, with a listener, clients, or both.
#[derive(Debug)]
pub struct PlainHost {
    /// It waits; nothing else of it is used.
    engine: SimEngine,
    link: SimLink,
    options: PlainHostOptions,
    random: Random,
    began: Instant,
    connections: Vec<Connection>,
    /// Talks that have not begun, the first last.
    planned: Vec<(usize, PlainTalk)>,
    findings: Vec<(usize, Finding)>,
    faults: Vec<String>,
    /// Connections that there ever were.
    opened: u32,
    frames: Vec<Vec<u8>>,
}

/// What a host is made with.
#[derive(Clone, Debug)]
pub struct PlainHostOptions {
    pub address: IpAddr,
    /// It listens, with these habits.
    pub serves: Option<(u16, Habits)>,
    /// Where our servers are: of HTTP, of hashes, of echoes.
    pub targets: [SocketAddr; 3],
    pub world: Circumstances,
    pub seed: u64,
}

/// What the world is like, for what is right depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Its wires neither overtake nor double.
    pub is_orderly: bool,
    /// They flip no bits.
    pub is_clean: bool,
    /// Its servers answer some SYNs with cookies.
    pub has_cookies: bool,
}

impl PlainHost {
    pub fn new(
        engine: SimEngine,
        link: SimLink,
        options: PlainHostOptions,
        talks: &[PlainTalk],
    ) -> Self {
        let mut planned: Vec<_> = talks.iter().cloned().enumerate().collect();
        planned.sort_by_key(|(_, talk)| std::cmp::Reverse(talk.at));
        Self {
            began: engine.now(),
            engine,
            link,
            random: Random::new(options.seed),
            options,
            connections: Vec::new(),
            planned,
            findings: Vec::new(),
            faults: Vec::new(),
            opened: 0,
            frames: Vec::new(),
        }
    }

    /// Whether a turn would do something.
    pub fn is_due(&self) -> bool {
        self.engine.is_due()
    }

    /// Waits until something is to be done, and does it.
    pub fn turn(&mut self) {
        let park = self.deadline().map_or(Park::Forever, Park::Until);
        let mut events = Events::default();
        self.engine.poll(park, &mut events);
        let now = self.engine.now();
        self.receive(now);
        self.begin_talks(now);
        for connection in &mut self.connections {
            connection.expire(now);
            while let Some(segment) = connection.next_segment(now, &mut self.random) {
                self.frames.push(frame_of(&segment));
            }
        }
        self.bury();
        self.transmit();
    }

    /// Clients that have not come to their end.
    pub fn unfinished(&self) -> usize {
        let talking =
            |it: &&Connection| matches!(it.application.finding(), Some((_, Finding::Open)));
        self.planned.len() + self.connections.iter().filter(talking).count()
    }

    /// Connections that there are, in whatever state.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// What each client has found, by its number in the plan; of all that are at their end.
    pub fn findings(&self) -> Vec<(usize, Finding)> {
        let open = self
            .connections
            .iter()
            .filter_map(|it| it.application.finding());
        let open = open.map(|(number, finding)| (number, finding.clone()));
        self.findings.iter().cloned().chain(open).collect()
    }

    /// The own end of the connection of a talk.
    pub fn end_of(&self, talk: usize) -> SocketAddr {
        let port = FIRST_PORT + u16::try_from(talk).unwrap_or(0);
        SocketAddr::new(self.options.address, port)
    }

    /// Rules that others broke.
    pub fn faults(&self) -> Vec<String> {
        let open = self.connections.iter().filter_map(|it| it.fault.as_ref());
        self.faults.iter().chain(open).cloned().collect()
    }

    pub fn describe(&self) -> String {
        let mut text = String::new();
        for it in &self.connections {
            text += &format!("{:?} {} > {}; ", it.state, it.local, it.remote);
        }
        text
    }

    fn deadline(&self) -> Option<Instant> {
        let timers = self.connections.iter().filter_map(Connection::deadline);
        let next = self.planned.last().map(|(_, talk)| self.began + talk.at);
        timers.chain(next).min()
    }

    fn receive(&mut self, now: Instant) {
        let mut burst = Burst::new(BURST_FRAMES);
        loop {
            burst.clear();
            self.link.receive(&mut burst);
            if burst.as_slice().is_empty() {
                return;
            }
            for received in burst.as_slice() {
                let frame = self.link.frame(received.id).to_vec();
                self.link.release(received.id);
                let lacks_sum = received.checksum == ReceivedChecksum::MaybePartial;
                self.on_frame(&frame, lacks_sum, now);
            }
        }
    }

    fn on_frame(&mut self, frame: &[u8], lacks_sum: bool, now: Instant) {
        let own = hardware_address(self.options.address);
        // Groups are for all (IEEE 802 8.2.2).
        if frame.get(..6) != Some(&own[..]) && frame.first().is_none_or(|byte| byte & 1 == 0) {
            return;
        }
        let address = self.options.address;
        if let Some(answer) = answer(frame, own, |asked| asked == address) {
            self.frames.push(answer);
            return;
        }
        match Segment::read(frame, lacks_sum) {
            Ok(Some(mut segment)) if segment.target.ip() == address => {
                // No checksum covers IPv6's header: a wire may have flipped this.
                if !self.options.world.is_clean {
                    segment.ecn = 0;
                }
                self.on_segment(&segment, now);
            }
            Ok(_) => {}
            Err(fault) => self.on_fault(fault),
        }
    }

    /// A frame that can't be read: the wire may have flipped a bit of it.
    fn on_fault(&mut self, fault: Fault) {
        if self.options.world.is_clean {
            self.faults
                .push(format!("a frame that can't be read: {fault:?}"));
        }
    }

    fn on_segment(&mut self, segment: &Segment, now: Instant) {
        let ends = (segment.target, segment.source);
        let mut connections = self.connections.iter_mut();
        let known = connections.find(|it| (it.local, it.remote) == ends);
        if let Some(connection) = known {
            connection.on_segment(segment, now);
            return;
        }
        let serves = self
            .options
            .serves
            .filter(|(port, _)| *port == ends.0.port());
        match serves {
            // 3.10.7.2: a listener.
            Some(_) if segment.has(RST) => {}
            Some((_, habits)) if segment.has(SYN) && !segment.has(ACK) => {
                let application = Application::server();
                let number = self.open(ends, State::SynReceived, habits, application, now);
                self.connections[number].on_first_syn(segment, now);
            }
            // 3.10.7.1: no connection and no listener.
            _ if segment.has(RST) => {}
            _ => self.frames.push(frame_of(&answer_to_stranger(segment))),
        }
    }

    fn begin_talks(&mut self, now: Instant) {
        while let Some((_, talk)) = self.planned.last()
            && self.began + talk.at <= now
            && let Some((number, talk)) = self.planned.pop()
        {
            let local = self.end_of(number);
            let [http, hash, echo] = self.options.targets;
            let remote = match talk.what {
                Talk::Get { .. } | Talk::Post { .. } => http,
                Talk::Hash { .. } => hash,
                Talk::Echo { .. } => echo,
            };
            let application = Application::client(number, &talk);
            let ends = (local, remote);
            self.open(ends, State::SynSent, talk.habits, application, now);
        }
    }

    /// Its place.
    fn open(
        &mut self,
        ends: (SocketAddr, SocketAddr),
        state: State,
        mut habits: Habits,
        application: Application,
        now: Instant,
    ) -> usize {
        // Each connection's first number follows the last one's, near enough to begin again in turn.
        habits.iss = habits.iss.wrapping_add(self.opened * ISS_STEP);
        self.opened += 1;
        let world = self.options.world;
        let connection = Connection::new(ends, state, habits, application, world, now);
        self.connections.push(connection);
        self.connections.len() - 1
    }

    /// Forgets connections that are closed; what they found stays.
    fn bury(&mut self) {
        let (findings, faults) = (&mut self.findings, &mut self.faults);
        self.connections.retain_mut(|it| {
            if it.state != State::Closed {
                return true;
            }
            let finding = it.application.finding();
            findings.extend(finding.map(|(number, finding)| (number, finding.clone())));
            faults.extend(it.fault.take());
            false
        });
    }

    fn transmit(&mut self) {
        for frame in self.frames.drain(..) {
            // A card of a plain host takes everything.
            let Some(room) = self.link.reserve(frame.len()) else {
                continue;
            };
            room.copy_from_slice(&frame);
            self.link.transmit(frame.len(), Offload::default());
        }
        self.link.flush();
    }
}

fn frame_of(segment: &Segment) -> Vec<u8> {
    let from = hardware_address(segment.source.ip());
    let to = hardware_address(segment.target.ip());
    segment.write(from, to)
}

const BURST_FRAMES: usize = 64;

const FIRST_PORT: u16 = 40_000;

/// Numbers between the first ones of two connections.
const ISS_STEP: u32 = 64_021;
