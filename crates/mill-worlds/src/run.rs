//! A world from its beginning to its end.

/// Addresses, hosts and wires of a world.
mod build;
/// The load generator as one more client.
mod generator;
/// Hosts that do not have our stack.
mod others;

use crate::WorldEngine;
use crate::plain_tcp::application::Finding;
use crate::plain_tcp::forger::Forger;
use crate::plain_tcp::host::PlainHost;
use crate::plan::{Leave, PlainPlan, Plan};
use crate::servers::{HttpServer, Turn};
use crate::talk::{Client, Problem, Report};
use build::Built;
use generator::Load;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Duration;
use mill_runtime::worker::ConnectingWorker;
use mill_sim::packet::ethernet::Station;
use mill_sim::world::{Until, World};
use mill_stack::host::status::Usage;
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
    /// Time goes on although everybody has left.
    Restless,
}

/// Everybody in a world.
struct Actors {
    http: HttpServer,
    bytes: Turn,
    clients: Vec<Actor>,
    load: Option<Load>,
    plain: Option<PlainHost>,
    forger: Option<Forger>,
    /// Turns of engines that nobody else runs any more.
    idlers: Vec<Turn>,
}

struct Actor {
    client: Rc<Client>,
    turn: Turn,
    /// Tasks after the last turn.
    tasks: usize,
}

/// Runs the world of a plan. `traces` keeps every segment for the ladder.
pub fn run(plan: &Plan, traces: bool) -> Outcome {
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
    talk(plan, &world, &mut actors, &mut failures);
    let talks = actors.talks();
    judge(plan, &actors, &mut failures);
    if let Some(plain) = &actors.plain {
        judge_plain(plan, plain, &mut failures);
    }
    rest(plan, &world, &mut actors, &mut failures);
    let took = world.elapsed();
    let faults = actors.plain.as_ref().map(PlainHost::faults);
    failures.extend(faults.into_iter().flatten().map(Failure::Rule));
    look_for_leftovers(&actors, &engines, &stations, &mut failures);
    stations.extend(others);
    let frames = stations.iter().map(|station| station.counts().sent).sum();
    let segments = match (traces, failures.is_empty()) {
        (true, _) => world.segments(usize::MAX),
        (false, false) => world.segments(LINES_OF_A_FAILURE),
        (false, true) => String::new(),
    };
    Outcome {
        seed: plan.seed,
        took,
        frames,
        talks,
        failures,
        segments,
    }
}

/// Lets clients talk until all have done or too much time has passed.
fn talk(plan: &Plan, world: &World, actors: &mut Actors, failures: &mut Vec<Failure>) {
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
    for actor in &actors.clients {
        let client = actor.client.index;
        if actor.tasks > 0 && !plan.vanishes(client + 2) {
            failures.push(Failure::Stuck {
                client,
                tasks: actor.tasks,
            });
        }
    }
    if let Some(load) = &actors.load {
        failures.push(Failure::Load(format!("stuck: {load:?}")));
    }
    if let Some(plain) = actors.plain.as_ref().filter(|it| it.unfinished() > 0) {
        failures.push(Failure::Plain(format!("stuck: {}", plain.describe())));
    }
}

/// Whether what the clients found is as the plan says.
fn judge(plan: &Plan, actors: &Actors, failures: &mut Vec<Failure>) {
    for actor in &actors.clients {
        let station = actor.client.index + 2;
        for report in actor.client.reports.borrow().iter() {
            if !is_as_planned(plan, station, report) {
                failures.push(Failure::Talk(report.to_string()));
            }
            let longest = longest(plan, station, report);
            let is_timed = plan.is_faithful(station) && plan.is_ample();
            let is_for_plain = plan.talks[report.client][report.talk].is_for_plain;
            if is_timed && !is_for_plain && report.took > longest {
                failures.push(Failure::Slow(format!("{report}, more than {longest:?}")));
            }
        }
    }
}

/// Whether what the other TCP's clients found is as the plan says.
fn judge_plain(plan: &Plan, host: &PlainHost, failures: &mut Vec<Failure>) {
    let is_faithful = plan.plain.as_ref().is_none_or(PlainPlan::is_faithful);
    let talks = plan.plain.as_ref().map_or(&[][..], |plain| &plain.talks);
    for (number, finding) in host.findings() {
        let habits = &talks[number].habits;
        let is_patient = habits.is_patient();
        // What follows data that the SYN carried in vain is out of order, too.
        let is_in_order = is_faithful && !habits.data_with_syn;
        let is_as_planned = match &finding {
            Finding::Whole => true,
            Finding::Refused(_) if plan.may_refuse(is_in_order) => true,
            Finding::Refused(_) | Finding::Broken(_) => {
                plan.settings.limits_time && !(is_faithful && is_patient)
            }
            Finding::Open | Finding::Wrong(_) => false,
        };
        if !is_as_planned {
            failures.push(Failure::Plain(format!("talk {number}: {finding:?}")));
        }
    }
}

fn is_as_planned(plan: &Plan, station: usize, report: &Report) -> bool {
    match &report.result {
        Ok(()) => true,
        Err(Problem::WrongByte { .. } | Problem::Surplus | Problem::WrongHash) => false,
        // A host that has vanished notices nothing but that nobody answers; whoever leaves early may have been left.
        Err(problem) => {
            let is_for_plain = plan.talks[report.client][report.talk].is_for_plain;
            let is_refused = matches!(problem, Problem::Connect(_) | Problem::Refused(_));
            plan.vanishes(station)
                || plan.may_break(station, is_for_plain)
                || is_refused && !is_for_plain && plan.may_refuse(plan.is_faithful(station))
        }
    }
}

/// Virtual time that a talk may take on a faithful wire: generous, so that only what stands still is found.
fn longest(plan: &Plan, station: usize, report: &Report) -> Duration {
    let wires = &plan.stations[station];
    let rtt = wires.outward.delay + wires.inward.delay + wires.outward.jitter + wires.inward.jitter;
    let talk = &plan.talks[report.client][report.talk];
    let rates = [wires.outward.bits_per_second, wires.inward.bits_per_second];
    let rate = rates.into_iter().flatten().min();
    let all: usize = plan.talks[report.client]
        .iter()
        .map(|it| it.what.bytes())
        .sum();
    let sending = rate.map_or(Duration::ZERO, |rate| {
        Duration::from_nanos(all as u64 * 8 * 1_000_000_000 / rate)
    });
    // The smallest window of a plan, once in each round trip and the longest delay of an acknowledgement (a buffer of
    // less than two segments waits for it); and many round trips for each connection's beginning.
    let rtt = rtt + LONGEST_DELAYED_ACK;
    let windows = u32::try_from(talk.what.bytes() / SMALLEST_WINDOW_BYTES).unwrap_or(u32::MAX);
    let early = if talk.leaves == Leave::Whole { 1 } else { 2 };
    (Duration::from_secs(20) + sending * 5 + rtt * (windows + 200) + talk.pause * 3) * early
}

/// Everybody has left; lets all timers expire.
fn rest(plan: &Plan, world: &World, actors: &mut Actors, failures: &mut Vec<Failure>) {
    // A vanished host's clients would wait for ever: nobody told them, and they have nothing to say.
    for actor in &mut actors.clients {
        if plan.vanishes(actor.client.index + 2) {
            actor.turn = idler(actor.client.engine.clone());
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
    failures: &mut Vec<Failure>,
) {
    if actors.http.connections() > 0 {
        failures.push(Failure::Connections(actors.http.connections()));
    }
    if let Some(plain) = actors.plain.as_ref().filter(|it| it.connections() > 0) {
        failures.push(Failure::Plain(format!("left: {}", plain.describe())));
    }
    for (station, (engine, card)) in engines.iter().zip(stations).enumerate() {
        let mut left = |what| failures.push(Failure::Left { station, what });
        if engine.stack_streams() > 0 {
            left(format!("{} streams", engine.stack_streams()));
        }
        let usage = engine.usage().unwrap_or_default();
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

    fn turn(&mut self, world: &World) {
        self.http.turn();
        (self.bytes)();
        for actor in &mut self.clients {
            actor.tasks = (actor.turn)();
        }
        if let Some(load) = &mut self.load
            && load.turn(world)
        {
            // Its connections are closed, and their last segments under way.
            self.idlers.push(idler(load.engine.clone()));
            self.load = None;
        }
        if let Some(plain) = &mut self.plain {
            plain.turn();
        }
        if let Some(forger) = &mut self.forger {
            forger.turn();
        }
        for idler in &mut self.idlers {
            idler();
        }
    }
}

/// A worker without tasks: whoever used the engine has left, its host goes on.
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

/// The longest that a plan has.
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(200);

/// Bytes: the least receive buffer that a plan has, less what segments leave unused.
const SMALLEST_WINDOW_BYTES: usize = 1_400;

/// Lines of the ladder that a failed world shows.
const LINES_OF_A_FAILURE: usize = 300;
