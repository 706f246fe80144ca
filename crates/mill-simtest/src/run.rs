//! A world from its beginning to its end.

/// Addresses, hosts and wires of a world.
pub(crate) mod build;
/// The load generator as one more client.
mod generator;
/// Whether what was found is as the plan says.
mod judge;
/// Connections that a server gave up after it had closed them.
mod orphans;
/// Hosts that do not have our stack.
mod others;

use crate::WorldEngine;
use crate::plain_tcp::application::Finding;
use crate::plain_tcp::forger::Forger;
use crate::plain_tcp::host::PlainHost;
use crate::plan::Plan;
use crate::servers::{HttpServer, Turn};
use crate::talk::Client;
use build::Built;
use generator::Load;
use judge::Waiting;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Duration;
use mill_runtime::worker::ConnectingWorker;
use mill_sim::engine::SimEngine;
use mill_sim::packet::ethernet::Station;
use mill_sim::world::{Until, World};
use mill_stack::host::status::Usage;
use orphans::Orphans;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Ready;
use std::rc::Rc;

/// What is to be said of a world that has ended.
#[derive(Debug)]
pub struct Outcome {
    pub seed: u64,
    /// Virtual time.
    pub took: Duration,
    /// Frames that all hosts sent.
    pub frames: u64,
    pub talks: usize,
    /// Of a world with a proxy: requests by what became of them.
    pub found: BTreeMap<&'static str, u64>,
    /// Sentences, each about something that is not as it must be; none if all is well.
    pub failures: Vec<Failure>,
    /// The ladder, if it was asked for or something failed.
    pub segments: String,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A client found something wrong.
    Talk(String),
    /// A client has not come to an end.
    Stuck { client: usize, tasks: usize },
    /// Longer than its wires explain.
    Slow(String),
    /// The load generator's requests.
    Load(String),
    /// A client over another TCP found something wrong, or has not come to an end.
    Plain(String),
    /// Our stack broke a rule, in the eyes of another TCP.
    Rule(String),
    /// Something is left on a station's host.
    Left { station: usize, what: String },
    /// Connections that our server still has.
    Connections(u64),
    /// Something about a proxy.
    Proxied(String),
    /// Time goes on although all clients have ended.
    Restless,
}

/// All parties of a world.
struct Actors {
    http: HttpServer,
    bytes: Turn,
    clients: Vec<Actor>,
    load: Option<Load>,
    plain: Option<PlainHost>,
    forger: Option<Forger>,
    /// Turns of engines whose users have ended, by station.
    idlers: Vec<(usize, Turn)>,
    /// By station: only those are run that are due, for most wait most of the time.
    engines: Vec<SimEngine>,
    /// A party is new: in so many more turns all have a turn, due or not. The first does what is to be done, the second says
    /// what is waited for then.
    turns_of_all: u8,
}

struct Actor {
    client: Rc<Client>,
    turn: Turn,
    /// Tasks after the last turn.
    tasks: usize,
}

/// Runs the world of a plan. `traces` keeps every segment for the ladder.
pub fn run(plan: &Plan, traces: bool) -> Outcome {
    let mut outcome = run_once(plan, traces);
    // Whether what failed had to be shows in the whole trace, which costs too much to be kept always.
    if !traces && !outcome.failures.is_empty() {
        outcome = run_once(plan, true);
        let is_well = outcome.failures.is_empty();
        let lines = if is_well { 0 } else { LINES_OF_A_FAILURE };
        outcome.segments = last_lines(&outcome.segments, lines);
    }
    outcome
}

fn last_lines(text: &str, count: usize) -> String {
    let skipped = text.lines().count().saturating_sub(count);
    text.split_inclusive('\n').skip(skipped).collect()
}

fn run_once(plan: &Plan, traces: bool) -> Outcome {
    let world = World::new(plan.seed);
    if traces {
        world.keep_segments();
    }
    let Built {
        mut actors,
        engines,
        mut stations,
        others,
    } = build::build(plan, &world);
    let mut failures = Vec::new();
    talk(plan, &world, &mut actors);
    let orphans = if traces {
        Orphans::of(plan, &world)
    } else {
        Orphans::default()
    };
    let talks = actors.talks();
    judge::judge(plan, &actors, &orphans, &mut failures);
    rest(plan, &world, &mut actors, &mut failures);
    let took = world.elapsed();
    let faults = actors.plain.as_ref().map(PlainHost::faults);
    failures.extend(faults.into_iter().flatten().map(Failure::Rule));
    let waiting = judge::waiting(plan, &actors, &orphans);
    look_for_leftovers(&actors, &engines, &stations, &waiting, &mut failures);
    stations.extend(others);
    let frames = stations.iter().map(|station| station.counts().sent).sum();
    let segments = if traces {
        world.segments(usize::MAX)
    } else {
        String::new()
    };
    Outcome {
        seed: plan.seed,
        took,
        frames,
        talks,
        found: BTreeMap::new(),
        failures,
        segments,
    }
}

/// Lets clients talk until all have done or too much time has passed.
fn talk(plan: &Plan, world: &World, actors: &mut Actors) {
    while world.elapsed() < LONGEST_TALK {
        let until = world.elapsed() + Duration::from_secs(1);
        world.run(|| actors.turn(world), Until::At(until));
        let waits = |actor: &Actor| actor.tasks > 0 && !plan.vanishes(actor.client.index + 2);
        let plain = actors.plain.as_ref().map_or(0, PlainHost::unfinished);
        if !actors.clients.iter().any(waits) && actors.load.is_none() && plain == 0 {
            return;
        }
        if world.is_idle() {
            break;
        }
    }
}

/// All clients have ended; lets all timers expire.
fn rest(plan: &Plan, world: &World, actors: &mut Actors, failures: &mut Vec<Failure>) {
    // A vanished host's clients would wait for ever: no segment tells them, and they have nothing to send.
    for actor in &mut actors.clients {
        if plan.vanishes(actor.client.index + 2) {
            actor.turn = idler(actor.client.engine.clone());
            actors.turns_of_all = TURNS_OF_NEW;
        }
    }
    let end = world.elapsed() + LONGEST_REST;
    while world.elapsed() < end {
        let until = world.elapsed() + Duration::from_secs(10);
        world.run(|| actors.turn(world), Until::At(until));
        if world.is_idle() {
            return;
        }
    }
    failures.push(Failure::Restless);
}

fn look_for_leftovers(
    actors: &Actors,
    engines: &[WorldEngine],
    stations: &[Station],
    waiting: &Waiting,
    failures: &mut Vec<Failure>,
) {
    if actors.http.connections() > 0 {
        failures.push(Failure::Connections(actors.http.connections()));
    }
    let plain = actors.plain.as_ref();
    if let Some(plain) = plain.filter(|it| it.connections() > waiting.plain) {
        failures.push(Failure::Plain(format!("left: {}", plain.describe())));
    }
    for (station, (engine, card)) in engines.iter().zip(stations).enumerate() {
        let mut left = |what| failures.push(Failure::Left { station, what });
        // Of a connection that waits for ever, itself is left and what it has not read, but nothing that a task waits for.
        let kept = waiting.of_station(station);
        if engine.stack_streams() != kept {
            left(format!("{} streams", engine.stack_streams()));
        }
        let mut usage = engine.usage().unwrap_or_default();
        if kept > 0 && (usage.connections, usage.flows) == (kept, kept) {
            usage = Usage {
                timers: usage.timers,
                held_frames: usage.held_frames,
                waiting: usage.waiting,
                ..Usage::default()
            };
        }
        if usage != Usage::default() {
            left(format!("{usage:?}"));
        }
        if card.held() > 0 {
            left(format!("{} frames", card.held()));
        }
    }
}

impl Actors {
    /// Talks that have ended.
    fn talks(&self) -> usize {
        let reports = |actor: &Actor| actor.client.reports.borrow().len();
        let ours: usize = self.clients.iter().map(reports).sum();
        let findings = self.plain.as_ref().map(PlainHost::findings);
        let ended = findings.into_iter().flatten();
        ours + ended.filter(|(_, it)| *it != Finding::Open).count()
    }

    /// One turn of all parties that are due; if none is, time passes.
    fn turn(&mut self, world: &World) {
        let has_new = self.turns_of_all > 0;
        self.turns_of_all = self.turns_of_all.saturating_sub(1);
        let is_due = |station: usize| has_new || self.engines[station].is_due();
        let mut has_run = false;
        if is_due(0) {
            self.http.turn();
            has_run = true;
        }
        if is_due(1) {
            (self.bytes)();
            has_run = true;
        }
        for (client, actor) in self.clients.iter_mut().enumerate() {
            if is_due(client + 2) {
                actor.tasks = (actor.turn)();
                has_run = true;
            }
        }
        for (station, idler) in &mut self.idlers {
            if is_due(*station) {
                idler();
                has_run = true;
            }
        }
        let generator = self.clients.len() + 2;
        if let Some(load) = &mut self.load
            && is_due(generator)
        {
            has_run = true;
            if load.turn(world) {
                // Its connections are closed, and their last segments under way.
                self.idlers.push((generator, idler(load.engine.clone())));
                self.load = None;
                self.turns_of_all = TURNS_OF_NEW;
            }
        }
        if let Some(plain) = self.plain.as_mut().filter(|it| has_new || it.is_due()) {
            plain.turn();
            has_run = true;
        }
        if let Some(forger) = self.forger.as_mut().filter(|it| has_new || it.is_due()) {
            forger.turn();
            has_run = true;
        }
        if !has_run {
            world.wait();
        }
    }
}

/// A worker without tasks: the user of the engine has ended, its host goes on.
fn idler(engine: WorldEngine) -> Turn {
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let mut worker = ConnectingWorker::<_, Ready<()>>::connecting(engine, scheduler);
    Box::new(move || {
        worker.turn();
        worker.tasks()
    })
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.failures.is_empty() {
            "all is well"
        } else {
            "FAILED"
        };
        let seconds = self.took.as_secs_f64();
        writeln!(
            formatter,
            "seed {}: {verdict}; {} talks, {} frames, {seconds:.3} s of virtual time",
            self.seed, self.talks, self.frames
        )?;
        if !self.found.is_empty() {
            writeln!(formatter, "  {:?}", self.found)?;
        }
        for failure in &self.failures {
            writeln!(formatter, "  {failure:?}")?;
        }
        Ok(())
    }
}

/// Virtual time in which every talk ends that ends at all: a partition of 30 s, and the timers that then have doubled
/// for two minutes, several times over.
const LONGEST_TALK: Duration = Duration::from_secs(2_900);

/// Virtual time after which nothing may be left: retransmissions to a host that has vanished end after 15 doublings up to
/// two minutes each, about 1700 s; our server's timeouts are 3000 s.
const LONGEST_REST: Duration = Duration::from_secs(8_000);

/// Turns until the engine of a new party knows what is waited for.
const TURNS_OF_NEW: u8 = 2;

/// Lines of the ladder that a failed world shows.
const LINES_OF_A_FAILURE: usize = 300;
