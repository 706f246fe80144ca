//! Two sides, the wire between them, and their threads; the seed chooses what happens next.

use super::super::*;
use super::call::Call;
use super::exchange::{CLIENT, Exchange, SERVER};
use super::side::Side;
use super::thread::{Program, Scene, Thread};
use super::wire::Wire;
use crate::readiness::Readiness;
use mill_sim::random::Random;
use mill_tcp::time::Duration;

pub(super) struct World {
    pub(super) random: Random,
    pub(super) sides: [Side; 2],
    pub(super) exchanges: Vec<Exchange>,
    pub(super) threads: Vec<Thread>,
    /// Listeners are closed while clients connect.
    pub(super) has_left: bool,
    wire: Wire,
    now: Instant,
    is_over: bool,
    signals_per_million: u32,
    steps: u64,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Run(usize),
    Turn(usize),
    Flush(usize),
    Deliver(usize),
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let now = Instant::from_nanos(1_000_000_000 + random.up_to(1_000_000_000));
        let wire = Wire::new(&mut random);
        let mut sides = [
            Side::new(CLIENT, stack(1, now)),
            Side::new(SERVER, stack(2, now)),
        ];
        for side in &mut sides {
            side.sockets.link.sent_max = random.one_of(&[usize::MAX, usize::MAX, 3, 30]);
            if random.up_to(3) == 0 {
                (side.reading, side.writing) = (Readiness::RDNORM, Readiness::WRNORM);
            }
        }
        let signals_per_million = random.one_of(&[0, 2_000, 30_000]);
        Self {
            random,
            sides,
            exchanges: Vec::new(),
            threads: Vec::new(),
            has_left: false,
            wire,
            now,
            is_over: false,
            signals_per_million,
            steps: 0,
        }
    }

    pub(super) fn start(&mut self, side: usize, program: Box<dyn Program>) {
        self.threads.push(Thread::new(side, program));
    }

    /// Until all threads have ended.
    pub(super) fn run(&mut self) {
        while !self.threads.is_empty() {
            self.step();
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "no end: {}", self.told());
        self.send_signal();
        let possible = self.possible();
        if possible.is_empty() {
            self.check_idle();
            if !self.pass() {
                self.finish();
            }
            return;
        }
        match self.random.one_of(&possible) {
            Step::Run(thread) => self.run_thread(thread),
            Step::Turn(side) => self.turn(side),
            Step::Flush(side) => self.sides[side].sockets.flush(),
            Step::Deliver(to) => {
                let link = &mut self.sides[to].sockets.link;
                self.wire.deliver(to, link, self.now);
            }
        }
        self.now = self.now + Duration::from_nanos(self.random.up_to(20_000));
        self.carry();
        self.wake();
        self.check();
    }

    /// What may happen now.
    fn possible(&self) -> Vec<Step> {
        let threads = self.threads.iter().enumerate();
        let awake = threads.filter(|(_, thread)| thread.is_awake);
        let mut possible: Vec<Step> = awake.map(|(index, _)| Step::Run(index)).collect();
        let is_idle = possible.is_empty();
        for side in [CLIENT, SERVER] {
            let sockets = &self.sides[side].sockets;
            let is_due = sockets.next_turn().is_some_and(|at| at <= self.now);
            if is_due || !sockets.link.arrived.is_empty() {
                possible.push(Step::Turn(side));
            }
            if self.wire.has_arrived(side, self.now) {
                possible.push(Step::Deliver(side));
            }
            if !is_idle {
                possible.push(Step::Flush(side));
            }
        }
        possible
    }

    fn run_thread(&mut self, index: usize) {
        let side = self.threads[index].side;
        // A call that waits turns the stack first; one that does not wait may.
        if self.random.up_to(1) == 0 {
            self.turn(side);
        }
        let mut started = Vec::new();
        let mut scene = Scene {
            side: &mut self.sides[side],
            exchanges: &mut self.exchanges,
            random: &mut self.random,
            started: &mut started,
            has_left: &mut self.has_left,
            is_over: self.is_over,
        };
        let goes_on = self.threads[index].run(&mut scene, self.now);
        if self.threads[index].asleep().is_some() {
            self.sides[side].sockets.acknowledge_unanswered();
        }
        if !goes_on {
            self.threads.remove(index);
        }
        for program in started {
            self.start(side, program);
        }
    }

    fn turn(&mut self, side: usize) {
        let side = &mut self.sides[side];
        let is_due = side.sockets.next_turn().is_some_and(|at| at <= self.now);
        side.has_news |= side.sockets.turn(self.now) | is_due;
    }

    /// What the sides have sent is on its way.
    fn carry(&mut self) {
        for (from, side) in self.sides.iter_mut().enumerate() {
            let link = &mut side.sockets.link;
            self.wire.take(from, link, self.now, &mut self.random);
        }
    }

    /// Wakes the threads whose call may give something now. Those that wait for a set are woken only if it says so.
    fn wake(&mut self) {
        for side in &mut self.sides {
            let woken: Vec<_> = side.sockets.take_woken().collect();
            let touched = core::mem::take(&mut side.touched);
            let has_news = core::mem::take(&mut side.has_news);
            for thread in &mut self.threads {
                let Some(call) = thread.asleep().filter(|_| thread.side == side.index) else {
                    continue;
                };
                thread.is_awake = match call {
                    Call::Wait(set, _) => woken.contains(set),
                    Call::Answer(_) | Call::End(_) => call.is_due(side, &self.exchanges),
                    _ => has_news || touched.iter().any(|number| call.waits_for(*number)),
                };
            }
        }
    }

    fn send_signal(&mut self) {
        if self.threads.is_empty() || !self.random.happens(self.signals_per_million) {
            return;
        }
        let last = self.threads.len() as u64 - 1;
        let index = usize::try_from(self.random.up_to(last)).unwrap();
        let restarts = self.random.up_to(1) == 0;
        let thread = &mut self.threads[index];
        thread.signal = Some(thread.signal.unwrap_or(true) && restarts);
        thread.is_awake = true;
    }

    /// Nothing can happen now: goes to when something can, and says whether there is such a time.
    fn pass(&mut self) -> bool {
        let timers = self.sides.iter().map(|side| side.sockets.next_turn());
        let deadlines = self.threads.iter().map(Thread::deadline);
        let times = timers.chain(deadlines).chain([self.wire.next()]);
        let Some(next) = times.flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        for thread in &mut self.threads {
            thread.is_awake |= thread.deadline().is_some_and(|at| at <= self.now);
        }
        true
    }

    /// Nothing will happen any more. What is open may only be so because its peer was reset, and the reset was lost.
    fn finish(&mut self) {
        for side in &self.sides {
            for stream in &side.streams {
                let exchange = &self.exchanges[stream.exchange];
                let is_left = exchange.may_reset && self.is_gone(1 - side.index, stream.exchange);
                assert!(is_left, "{exchange:?} hangs: {}", self.told());
            }
        }
        let clients = self.threads.iter().filter(|it| it.side == CLIENT).count();
        let is_known = clients == 0 || self.exchanges.iter().any(|it| it.may_reset);
        assert!(is_known, "clients hang: {}", self.told());
        self.is_over = true;
        for thread in &mut self.threads {
            thread.signal = Some(false);
            thread.is_awake = true;
        }
    }

    /// Whether a side has nothing of an exchange any more, or never had.
    fn is_gone(&self, side: usize, exchange: usize) -> bool {
        let streams = &self.sides[side].streams;
        streams.iter().all(|stream| stream.exchange != exchange)
    }

    /// Closes all, waits until all waits are over, and looks whether anything is left.
    pub(super) fn end(&mut self) {
        for side in &mut self.sides {
            while let Some(stream) = side.streams.first() {
                let number = stream.number;
                side.close_all(&mut self.exchanges, number);
            }
            while let Some((number, _)) = side.listeners.first().copied() {
                side.close_listener(number);
            }
        }
        let end = self.now + PATIENCE;
        loop {
            self.carry();
            for side in [CLIENT, SERVER] {
                let link = &mut self.sides[side].sockets.link;
                self.wire.deliver(side, link, self.now);
                self.turn(side);
            }
            self.carry();
            if !self.pass() {
                break;
            }
            assert!(self.now < end, "{}", self.told());
        }
        self.check_empty();
    }

    /// What is told of a world that fails.
    pub(super) fn told(&self) -> String {
        let usage = self.sides.each_ref().map(|side| side.sockets.host.usage());
        let streams = self.sides.each_ref().map(|side| &side.streams);
        let exchanges = self.exchanges.iter().enumerate();
        let open: Vec<_> = exchanges
            .filter(|(index, _)| {
                streams
                    .iter()
                    .any(|it| it.iter().any(|it| it.exchange == *index))
            })
            .collect();
        format!(
            "threads {:?}, exchanges {open:?}, streams {streams:?}, {usage:?}",
            self.threads
        )
    }
}

/// Steps: many times what a world takes.
const STEPS_MAX: u64 = 300_000;

/// Longer than TIME-WAIT, and than all retransmissions to a peer that has gone.
const PATIENCE: Duration = Duration::from_secs(3600);
