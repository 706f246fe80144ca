//! A world with a proxy from its beginning to its end.

use super::client::{Client, Found, perform};
use super::origin::{self, Seen};
use super::plan::ProxiedPlan;
use super::secured::Securing;
use crate::WorldEngine;
use crate::parties::{Actor, Parties, Party};
use crate::run::build::{enter, plug};
use crate::run::{Failure, Outcome};
use crate::servers::HttpServer;
use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::Station;
use mill_sim::random::Random;
use mill_sim::world::{Until, World};
use mill_stack::host::status::Usage;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Runs the world of a plan. `traces` keeps every segment for the ladder.
pub fn run(plan: &ProxiedPlan, traces: bool) -> Outcome {
    let world = World::new(plan.seed);
    if traces {
        world.keep_segments();
    }
    world.files().create_directory("/temp");
    let seen = Rc::new(Seen::default());
    let (mut actors, engines, stations) = build(plan, &world, &seen);
    let has_rested = live(&world, &mut actors);
    let mut failures = Vec::new();
    let found = judge(plan, &actors, &seen, &mut failures);
    look_for_leftovers(&actors, &engines[0], &stations[0], &mut failures);
    let mut failures: Vec<_> = failures.into_iter().map(Failure::Proxied).collect();
    if !has_rested {
        failures.push(Failure::Restless);
    }
    let segments = traces.then(|| world.segments(usize::MAX));
    Outcome {
        seed: plan.seed,
        took: world.elapsed(),
        frames: stations.iter().map(|station| station.counts().sent).sum(),
        talks: plan.requests().count(),
        found,
        failures,
        segments: segments.unwrap_or_default(),
    }
}

fn build(
    plan: &ProxiedPlan,
    world: &World,
    seen: &Rc<Seen>,
) -> (Parties<Client>, Vec<WorldEngine>, Vec<Station>) {
    let ethernet = world.ethernet();
    let mut random = Random::new(plan.seed ^ SECRETS);
    let (mut engines, mut inner_engines, mut stations) = (Vec::new(), Vec::new(), Vec::new());
    for (index, properties) in plan.stations.iter().enumerate() {
        let inner = world.engine();
        inner_engines.push(inner.clone());
        let prefix = plan.prefix(index);
        let (engine, station) = plug(properties, prefix, inner, &ethernet, &mut random, |_| {});
        engines.push(engine);
        stations.push(station);
    }
    for change in &plan.changes {
        let properties = &plan.stations[change.station];
        enter(change, properties, world, stations[change.station].clone());
    }
    let proxy = HttpServer::alone(engines[0].clone(), &plan.configuration());
    let origins = (1..=plan.origins).map(|station| Party {
        engine: inner_engines[station].clone(),
        turn: origin::start(engines[station].clone(), station, plan, seen),
    });
    let clients = plan.talks.iter().enumerate().map(|(index, talks)| {
        let station = plan.station_of(index);
        let engine = engines[station].clone();
        let client = |scheduler| Client {
            engine: engine.clone(),
            scheduler,
            proxy: plan.socket(0).into(),
            is_http2: plan.is_http2,
            securing: (plan.secured).map(|secured| Securing::new(secured, plan.is_http2)),
            multiplexed: None.into(),
            results: Vec::new().into(),
        };
        Actor::new(
            engine.clone(),
            inner_engines[station].clone(),
            client,
            |client| {
                let talks = talks.iter().cloned();
                talks.map(|talk| perform(Rc::clone(client), talk)).collect()
            },
        )
    });
    let (origins, clients) = (origins.collect(), clients.collect());
    let server = (proxy, vec![inner_engines[0].clone()]);
    (Parties::new(server, origins, clients), engines, stations)
}

/// Lets all act until no timer is left. Returns whether that came about.
fn live(world: &World, actors: &mut Parties<Client>) -> bool {
    while world.elapsed() < LONGEST {
        let until = world.elapsed() + Duration::from_secs(10);
        world.run(|| actors.turn(world), Until::At(until));
        if world.is_idle() {
            return true;
        }
    }
    false
}

/// Says what must not be. Returns the requests by what became of them.
fn judge(
    plan: &ProxiedPlan,
    actors: &Parties<Client>,
    seen: &Seen,
    failures: &mut Vec<String>,
) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    failures.extend(seen.faults.borrow().iter().cloned());
    let heads = seen.heads.borrow();
    for request in plan.requests() {
        let came = heads.get(&request.number).copied().unwrap_or(0);
        if request.posted.is_some() && came > 1 {
            failures.push(format!(
                "POST {} reached origins {came} times",
                request.number
            ));
        }
        if came > REPEATED_MAX {
            failures.push(format!("request {} was sent {came} times", request.number));
        }
        if request.posted.is_none() && came > 1 {
            *counts.entry("repeated").or_default() += 1;
        }
    }
    failures.extend(actors.unfinished());
    for (index, actor) in actors.clients.iter().enumerate() {
        let is_faithful = plan.is_faithful(plan.station_of(index));
        for (number, found) in &*actor.client.results.borrow() {
            *counts.entry(name(found)).or_default() += 1;
            let was_answered = matches!(found, Found::Answer | Found::Left);
            let may_be = match found {
                Found::Wrong(_) => false,
                Found::Status(504) if plan.may_time_out(*number) => true,
                _ if plan.must_answer(index) => was_answered,
                Found::Late | Found::NoConnection(_) | Found::Nothing { is_first: true } => {
                    !is_faithful
                }
                Found::Answer | Found::Left | Found::Cut | Found::Nothing { .. } => true,
                Found::Status(status) => matches!(status, 502..=504),
            };
            if !may_be {
                failures.push(format!("client {index}, request {number}: {found:?}"));
            }
        }
    }
    counts
}

const fn name(found: &Found) -> &'static str {
    match found {
        Found::Answer => "answered",
        Found::Status(_) => "refused by the proxy",
        Found::Cut => "cut",
        Found::Nothing { .. } => "not answered",
        Found::NoConnection(_) => "not connected",
        Found::Late => "late",
        Found::Left => "left",
        Found::Wrong(_) => "wrong",
    }
}

fn look_for_leftovers(
    actors: &Parties<Client>,
    engine: &WorldEngine,
    station: &Station,
    failures: &mut Vec<String>,
) {
    let connections = actors.server.connections();
    if connections > 0 {
        failures.push(format!(
            "the proxy has {connections} connections of clients left"
        ));
    }
    if engine.stack_streams() > 0 {
        failures.push(format!(
            "the proxy has {} streams left",
            engine.stack_streams()
        ));
    }
    let usage = engine.usage().unwrap_or_default();
    if usage != Usage::default() {
        failures.push(format!("the proxy's host has left {usage:?}"));
    }
    if station.held() > 0 {
        failures.push(format!("the proxy's card holds {} frames", station.held()));
    }
}

/// Virtual time in which all ends: each request with its tries and timeouts, then retransmissions to hosts that are gone.
const LONGEST: Duration = Duration::from_secs(20_000);

/// How often a request that may be repeated comes at most: once to each origin, and once more for each kept connection
/// that its origin has closed.
const REPEATED_MAX: u32 = 11;

/// Mixed into the seed for what hosts keep secret.
const SECRETS: u64 = 0x5ec2_e75e_ed00_0002;
