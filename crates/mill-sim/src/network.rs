//! Everything that carries connections: ends, listening sockets, engines; and the time that they share.

/// Sockets of datagrams.
pub(crate) mod datagrams;
/// Listening, connecting, accepting.
mod listening;
/// Sending, arriving, reading, closing.
mod transport;

use crate::agenda::{Agenda, Event};
use crate::endpoint::{Endpoint, EndpointId, Owner};
use crate::ladder::Ladder;
use crate::link::Link;
use crate::packet::Packets;
use crate::random::Random;
use crate::socket::{Listener, Socket};
use crate::world::Until;
use datagrams::DatagramSocket;
use mill_runtime::engine::{ConnectOptions, Events, ListenOption, ListenerId, Park};
use mill_runtime::stream::StreamOption;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant, UnixTime};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How the world's parts refer to it. Nothing of the test's or the server's runs while it is borrowed.
pub(crate) type Net = Rc<RefCell<Network>>;

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: Instant,
    /// The wall-clock time at [`START`].
    pub(crate) wall_clock_start: UnixTime,
    pub(crate) agenda: Agenda,
    pub(crate) ladder: Ladder,
    pub(crate) random: Random,
    /// The way of connections that are made from now on.
    pub(crate) link: Link,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) sockets: Vec<Socket>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) datagram_sockets: Vec<DatagramSocket>,
    /// The network of frames, beside the connections above.
    pub(crate) packets: Packets,
    pub(crate) engines: Vec<EngineState>,
    /// The options of the connection that an engine has opened last.
    pub(crate) opened_last: ConnectOptions,
    pub(crate) lacking_listen: Vec<ListenOption>,
    pub(crate) lacking_stream: Vec<StreamOption>,
    /// How far the test lets time go.
    pub(crate) until: Until,
    /// Nothing happens any more within `until`.
    pub(crate) at_rest: bool,
    /// Unread bytes are lent to a closure, which must not use a stream meanwhile.
    pub(crate) lending: bool,
}

/// One worker's engine.
#[derive(Debug)]
pub(crate) struct EngineState {
    pub(crate) ready: Vec<TaskId>,
    pub(crate) mail: Arc<AtomicBool>,
    parking: Parking,
    /// Ends that were written to in this turn.
    pub(crate) unsettled: Vec<EndpointId>,
    /// Streams that are open, and how many may be.
    pub(crate) streams: usize,
    pub(crate) streams_max: usize,
    pub(crate) random: Random,
}

/// Whether time may move as far as one worker is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parking {
    /// It was never polled, or is gone: nothing waits for it.
    Absent,
    Running,
    Until(Instant),
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: START,
            wall_clock_start: UnixTime::from_seconds(START_DATE_SECONDS),
            agenda: Agenda::default(),
            ladder: Ladder::default(),
            random: Random::new(seed),
            link: Link::IDEAL,
            endpoints: Vec::new(),
            sockets: Vec::new(),
            listeners: Vec::new(),
            datagram_sockets: Vec::new(),
            packets: Packets::new(),
            engines: Vec::new(),
            opened_last: ConnectOptions::default(),
            lacking_listen: Vec::new(),
            lacking_stream: Vec::new(),
            until: Until::Idle,
            at_rest: false,
            lending: false,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.now.since(START)
    }

    pub(crate) fn wall_clock(&self) -> UnixTime {
        let elapsed = self.elapsed();
        let nanos = u64::from(self.wall_clock_start.nanos) + u64::from(elapsed.subsec_nanos());
        let seconds = elapsed.as_secs() + nanos / NANOS_PER_SECOND;
        UnixTime {
            seconds: self
                .wall_clock_start
                .seconds
                .saturating_add_unsigned(seconds),
            nanos: u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or(0),
        }
    }

    pub(crate) fn set_wall_clock(&mut self, now: UnixTime) {
        let elapsed = self.elapsed();
        // The start's nanoseconds go below zero by borrowing a second.
        let borrow = u32::from(now.nanos < elapsed.subsec_nanos());
        self.wall_clock_start = UnixTime {
            seconds: now
                .seconds
                .saturating_sub_unsigned(elapsed.as_secs() + u64::from(borrow)),
            nanos: now.nanos + borrow * 1_000_000_000 - elapsed.subsec_nanos(),
        };
    }

    pub(crate) fn add_engine(&mut self) -> usize {
        let seed = self.random.next();
        self.engines.push(EngineState {
            ready: Vec::new(),
            mail: Arc::default(),
            parking: Parking::Absent,
            unsettled: Vec::new(),
            streams: 0,
            streams_max: usize::MAX,
            random: Random::new(seed),
        });
        self.engines.len() - 1
    }

    /// The engine's worker is gone.
    pub(crate) fn remove_engine(&mut self, engine: usize) {
        self.engines[engine].parking = Parking::Absent;
        for index in 0..self.listeners.len() {
            if self.listeners[index].engine == engine {
                self.close_listener(index);
            }
        }
    }

    pub(crate) fn end(&mut self, id: EndpointId) -> &mut Endpoint {
        &mut self.endpoints[id.0]
    }

    /// Has the task polled that uses this end, if a task does.
    pub(crate) fn report(&mut self, id: EndpointId) {
        if let Owner::Task { engine, task } = self.endpoints[id.0].owner {
            let ready = &mut self.engines[engine].ready;
            if ready.last() != Some(&task) {
                ready.push(task);
            }
        }
    }

    /// Another task uses this end from now on.
    pub(crate) fn hand_over(&mut self, id: EndpointId, to: TaskId) {
        if let Owner::Task { task, .. } = &mut self.endpoints[id.0].owner {
            *task = to;
        }
    }

    /// A call to the file system does not know its task, so every task that has a stream is polled.
    pub(crate) fn report_all(&mut self) {
        for index in 0..self.endpoints.len() {
            self.report(EndpointId(index));
        }
    }

    /// Takes the next event that is due. One that calls the test has to be run by the caller, without a borrow.
    pub(crate) fn take_due(&mut self) -> Option<Event> {
        self.agenda.take_due(self.now)
    }

    pub(crate) fn park(&mut self, engine: usize, park: Park) {
        self.at_rest = false;
        self.engines[engine].parking = Parking::Until(match park {
            Park::No => self.now,
            Park::Until(deadline) => deadline,
            Park::Forever => Instant::FAR,
        });
    }

    /// Gives an engine what happened to it; false if nothing did.
    pub(crate) fn take_events(&mut self, engine: usize, events: &mut Events) -> bool {
        if !self.has_events(engine) {
            return false;
        }
        let acceptable = self.acceptable(engine).map(index_as_id);
        events.acceptable.extend(acceptable);
        self.packets.on_woken(engine);
        let state = &mut self.engines[engine];
        events.ready.append(&mut state.ready);
        events.mail |= state.mail.swap(false, Ordering::AcqRel);
        state.parking = Parking::Running;
        true
    }

    /// Whether a turn of this engine's worker would do something.
    pub(crate) fn is_due(&self, engine: usize) -> bool {
        match self.engines[engine].parking {
            Parking::Absent | Parking::Running => true,
            Parking::Until(parked) => parked <= self.now || self.has_events(engine),
        }
    }

    fn has_events(&self, engine: usize) -> bool {
        let state = &self.engines[engine];
        !state.ready.is_empty()
            || state.mail.load(Ordering::Acquire)
            || self.packets.concerns(engine)
            || self.acceptable(engine).next().is_some()
    }

    /// No worker has polled its engine yet, or all are gone.
    pub(crate) fn has_no_workers(&self) -> bool {
        let mut engines = self.engines.iter();
        engines.all(|engine| engine.parking == Parking::Absent)
    }

    /// What keeps each engine from waiting.
    pub(crate) fn busy_workers(&self) -> String {
        let of_engine = |(index, state): (usize, &EngineState)| {
            let waits = match state.parking {
                Parking::Absent => String::from("absent"),
                Parking::Running => String::from("running"),
                Parking::Until(Instant::FAR) => String::from("waits"),
                Parking::Until(at) => format!("waits until {:?}", at.since(START)),
            };
            let has = if self.has_events(index) {
                ", has events"
            } else {
                ""
            };
            format!("engine {index} {waits}{has}")
        };
        let engines: Vec<String> = self.engines.iter().enumerate().map(of_engine).collect();
        engines.join("; ")
    }

    /// Nothing will happen any more, and no worker waits for a timer.
    pub(crate) fn is_idle(&self) -> bool {
        let waits = |state: &EngineState| {
            !matches!(
                state.parking,
                Parking::Absent | Parking::Until(Instant::FAR)
            )
        };
        self.agenda.next_at().is_none() && !self.engines.iter().any(waits)
    }

    /// Moves time to the next instant at which something happens. False if a worker has to run first, or if
    /// the test lets time go no further.
    pub(crate) fn advance(&mut self) -> bool {
        let mut deadline = Instant::FAR;
        for (engine, state) in self.engines.iter().enumerate() {
            match state.parking {
                Parking::Absent => {}
                Parking::Until(parked) if !self.is_due(engine) => deadline = deadline.min(parked),
                Parking::Running | Parking::Until(_) => return false,
            }
        }
        let planned = self.agenda.next_at();
        let target = planned.map_or(deadline, |at| at.min(deadline));
        let target = match self.until {
            Until::At(end) => target.min(START + end),
            Until::Quiet if planned.is_none() => Instant::FAR,
            Until::Quiet | Until::Idle => target,
        };
        if target == Instant::FAR || target <= self.now {
            self.at_rest = true;
            return false;
        }
        self.now = target;
        true
    }
}

/// Does what is due now.
pub(crate) fn run_due(net: &Net) {
    loop {
        let due = net.borrow_mut().take_due();
        match due {
            None => return,
            Some(Event::Call(call)) => call(),
            Some(event) => net.borrow_mut().happen(event),
        }
    }
}

fn index_as_id(index: usize) -> ListenerId {
    ListenerId(u32::try_from(index).expect("fewer than 2^32 listeners fit in memory"))
}

/// When a world begins on its monotonic clock: not at the clock's origin, so that subtracting a duration from a
/// test's early instants does not saturate.
pub(crate) const START: Instant = Instant::from_nanos(1_000_000_000_000);

/// Seconds: 2026-01-01T00:00:00Z, a Thursday.
pub(crate) const START_DATE_SECONDS: i64 = 1_767_225_600;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
