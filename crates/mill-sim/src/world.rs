//! The world as a test sees it: engines, clients, time.

use crate::agenda::Event;
use crate::client::Client;
use crate::endpoint::{ClientSide, Owner};
use crate::engine::SimEngine;
use crate::files::SimFiles;
use crate::link::Link;
use crate::network::{Net, Network, START, run_due};
use crate::packet::SentSegment;
use crate::packet::ethernet::Ethernet;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, ListenOption};
use mill_runtime::stream::StreamOption;
use mill_runtime::time::{Duration, Instant, UnixTime};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;

/// A world with a clock, files, links and what uses them. A test that fails prints the seed and what
/// happened last.
#[derive(Debug)]
pub struct World {
    seed: u64,
    net: Net,
    files: SimFiles,
}

/// How far [`World::run`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing is on its way and no client has anything left to do; the workers' timers are not waited for.
    Quiet,
    /// Nothing waits any more, not even for a timer.
    Idle,
    /// So much time has passed since the world began.
    At(Duration),
}

impl World {
    pub fn new(seed: u64) -> Self {
        let net = Rc::new(RefCell::new(Network::new(seed)));
        let files = SimFiles::new(Rc::clone(&net));
        Self { seed, net, files }
    }

    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// An engine for one worker. A world has as many workers as one likes; time moves when all of them wait.
    pub fn engine(&self) -> SimEngine {
        SimEngine::new(&self.net, self.files.clone())
    }

    /// The files of all workers.
    pub const fn files(&self) -> &SimFiles {
        &self.files
    }

    /// `10.0.0.1:80`, `[::1]:80` or `unix:/path`. Panics on anything else.
    pub fn address(&self, text: &str) -> Address {
        if let Some(path) = text.strip_prefix("unix:") {
            return Address::Unix(Rc::from(path.as_bytes()));
        }
        let address: SocketAddr = text
            .parse()
            .expect("an address is `ip:port` or `unix:path`");
        address.into()
    }

    /// The way of connections that are made from now on.
    pub fn set_link(&self, link: Link) {
        self.net.borrow_mut().link = link;
    }

    /// A network of frames, beside the connections of this world: a switch without stations.
    pub fn ethernet(&self) -> Ethernet {
        let mut net = self.net.borrow_mut();
        net.packets.switches += 1;
        Ethernet::new(Rc::clone(&self.net), net.packets.switches)
    }

    /// Keeps every frame for [`World::segments`], from now on.
    pub fn keep_segments(&self) {
        self.net.borrow_mut().packets.trace.keep_all();
    }

    /// The ladder of what was sent over the world's Ethernets, and what their wires did to it: the last `lines_max`
    /// frames, of all if [`World::keep_segments`] was called, else of the last two thousand.
    pub fn segments(&self, lines_max: usize) -> String {
        self.net.borrow().packets.trace.text(lines_max)
    }

    /// The TCP segments among the frames that [`World::segments`] shows, in the order in which they were sent.
    pub fn tcp_segments(&self) -> Vec<SentSegment> {
        self.net.borrow().packets.trace.tcp_segments().collect()
    }

    /// When a station, counted from 0, asked for a neighbour, among the same frames.
    pub fn neighbor_questions(&self, station: usize) -> Vec<Instant> {
        let net = self.net.borrow();
        net.packets.trace.neighbor_questions(station).collect()
    }

    /// Lets happen what is due, then moves time to the next thing that happens, or to `deadline` if that is earlier;
    /// false if there is neither. For hosts without engines: their driver looks after each step whether frames
    /// have come.
    pub fn step(&self, deadline: Option<Instant>) -> bool {
        run_due(&self.net);
        let mut net = self.net.borrow_mut();
        let planned = net.agenda.next_at();
        let Some(next) = planned.into_iter().chain(deadline).min() else {
            return false;
        };
        net.now = net.now.max(next);
        drop(net);
        run_due(&self.net);
        true
    }

    /// The options of the connection that an engine has opened last.
    pub fn opened_last(&self) -> ConnectOptions {
        self.net.borrow().opened_last.clone()
    }

    /// No listener of this world has the option.
    pub fn lack_listen_option(&self, option: ListenOption) {
        self.net.borrow_mut().lacking_listen.push(option);
    }

    /// No stream of this world has the option, whatever value it carries.
    pub fn lack_stream_option(&self, option: StreamOption) {
        self.net.borrow_mut().lacking_stream.push(option);
    }

    /// A client that connects now to an address at which an engine listens.
    pub fn connect(&self, target: &str) -> Client {
        self.connect_at(self.elapsed(), target)
    }

    /// A client that connects when so much time has passed since the world began.
    pub fn connect_at(&self, elapsed: Duration, target: &str) -> Client {
        self.open(elapsed, target, None)
    }

    /// A client that connects now from a given address.
    pub fn connect_from(&self, source: &str, target: &str) -> Client {
        let source = self.address(source);
        self.open(self.elapsed(), target, Some(&source))
    }

    fn open(&self, elapsed: Duration, target: &str, source: Option<&Address>) -> Client {
        let target = self.address(target);
        let mut net = self.net.borrow_mut();
        let (link, owner) = (net.link, Owner::Client(ClientSide::default()));
        let end = net.connect(&target, source, link, owner, START + elapsed);
        Client {
            net: Rc::clone(&self.net),
            end,
            at: None,
        }
    }

    /// Does something when so much time has passed since the world began.
    pub fn at(&self, elapsed: Duration, act: impl FnOnce() + 'static) {
        let event = Event::Call(Box::new(act));
        self.net.borrow_mut().agenda.enter(START + elapsed, event);
    }

    /// Runs `turn`, which runs one turn of each worker, again and again.
    ///
    /// Panics when the workers go on working without letting time pass.
    pub fn run<T>(&self, mut turn: impl FnMut() -> T, until: Until) {
        {
            let mut net = self.net.borrow_mut();
            net.until = until;
            net.at_rest = false;
        }
        let mut turns_without_rest = 0;
        let mut before = self.now();
        while !self.net.borrow().at_rest {
            turn();
            if self.net.borrow().has_no_workers() {
                run_due(&self.net);
                self.net.borrow_mut().advance();
            }
            turns_without_rest = if self.now() == before {
                turns_without_rest + 1
            } else {
                0
            };
            before = self.now();
            assert!(
                turns_without_rest < TURNS_AT_ONE_INSTANT_MAX,
                "the workers do not come to rest at {:?}: {}",
                self.elapsed(),
                self.net.borrow().busy_workers()
            );
        }
        self.net.borrow_mut().until = Until::Idle;
    }

    /// Lets time pass until an engine is due, or as far as [`World::run`] goes. For turns that run only those that are
    /// ([`SimEngine::is_due`]), when none is.
    pub fn wait(&self) {
        loop {
            run_due(&self.net);
            if !self.net.borrow_mut().advance() {
                return;
            }
        }
    }

    /// Whether the last poll of an engine found nothing left to wait for; for loops other than [`World::run`].
    pub fn is_at_rest(&self) -> bool {
        self.net.borrow().at_rest
    }

    /// Whether nothing will happen any more, and no worker waits for a timer.
    pub fn is_idle(&self) -> bool {
        self.net.borrow().is_idle()
    }

    /// Runs `turn` while so much time passes.
    pub fn advance<T>(&self, turn: impl FnMut() -> T, duration: Duration) {
        self.run(turn, Until::At(self.elapsed() + duration));
    }

    /// The time since the world began.
    pub fn elapsed(&self) -> Duration {
        self.net.borrow().elapsed()
    }

    pub fn now(&self) -> Instant {
        self.net.borrow().now
    }

    /// The wall-clock time; 2026-01-01T00:00:00Z at first.
    pub fn wall_clock(&self) -> UnixTime {
        self.net.borrow().wall_clock()
    }

    /// Sets the wall-clock time, as an administrator or NTP does; the monotonic clock goes on.
    pub fn set_wall_clock(&self, now: UnixTime) {
        self.net.borrow_mut().set_wall_clock(now);
    }

    /// What happened, one line per arrival: time, connection, direction, what.
    pub fn ladder(&self) -> String {
        self.last_steps(usize::MAX)
    }

    fn last_steps(&self, count_max: usize) -> String {
        let net = self.net.borrow();
        let lines = net.ladder.lines();
        let mut text = String::new();
        for line in lines.iter().skip(lines.len().saturating_sub(count_max)) {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && self.net.try_borrow().is_ok() {
            let steps = self.last_steps(STEPS_SHOWN) + &self.segments(STEPS_SHOWN);
            #[expect(
                clippy::print_stderr,
                reason = "tells the reader of a failed test how to repeat it"
            )]
            {
                eprintln!(
                    "the world had seed {}; what happened last:\n{steps}",
                    self.seed
                );
            }
        }
    }
}

/// Turns that a world's workers may take at one instant before the test is taken for one that never ends.
/// A test of ten thousand connections that all arrive at once takes a few thousand.
const TURNS_AT_ONE_INSTANT_MAX: u32 = 200_000;

/// Lines of the ladder that a failed test shows.
const STEPS_SHOWN: usize = 40;
