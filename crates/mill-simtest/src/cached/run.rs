//! A world with a cache from its beginning to its end.

use super::client::{Client, Found, perform};
use super::judge::Judge;
use super::ledger::Ledger;
use super::origin;
use super::plan::{CachedPlan, LISTEN};
use super::trouble::Trouble;
use crate::parties::{Actor, Parties};
use crate::run::{Failure, Outcome};
use crate::servers::HttpServer;
use mill_runtime::time::Duration;
use mill_sim::engine::SimEngine;
use mill_sim::world::{Until, World};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Runs the world of a plan. `traces` keeps what arrived where, for the ladder.
pub fn run(plan: &CachedPlan, traces: bool) -> Outcome {
    let plan = Rc::new(plan.clone());
    let world = World::new(plan.seed);
    world.set_link(plan.link);
    world.files().create_directory("/temp");
    if plan.disk.is_used {
        let latency = Duration::from_millis(plan.disk.latency_ms);
        world.files().set_latency(latency);
    }
    let ledger = Rc::new(Ledger::new(world.now()));
    let mut actors = build(&plan, &world, &ledger);
    let has_ended = live(&plan, &world, &mut actors);
    let mut failures = ledger.faults.borrow().clone();
    let found = judge(&plan, &actors, &ledger, &mut failures);
    look_for_leftovers(&actors, &mut failures);
    let mut failures: Vec<_> = failures.into_iter().map(Failure::Proxied).collect();
    if !has_ended {
        failures.push(Failure::Restless);
    }
    Outcome {
        seed: plan.seed,
        took: world.elapsed(),
        frames: 0,
        talks: plan.requests().count(),
        found,
        failures,
        segments: if traces {
            world.ladder()
        } else {
            String::new()
        },
    }
}

fn build(plan: &Rc<CachedPlan>, world: &World, ledger: &Rc<Ledger>) -> Parties<Client> {
    let engines: Vec<_> = (0..plan.workers).map(|_| world.engine()).collect();
    let workers = engines.iter().map(|engine| {
        let mail = engine.mail_poster();
        (engine.clone(), mill_server::wakes::Doorbell::new(mail))
    });
    let server = HttpServer::of(workers.collect(), &plan.configuration());
    let origins = (0..plan.origins).map(|index| origin::start(world, index, plan, ledger));
    let clients = plan.talks.iter().map(|talks| {
        let engine = world.engine();
        let client = |scheduler| Client {
            engine: engine.clone(),
            scheduler,
            proxy: world.address(LISTEN),
            plan: Rc::clone(plan),
            ledger: Rc::clone(ledger),
            answers: Vec::new().into(),
            etags: BTreeMap::new().into(),
        };
        Actor::new(engine.clone(), engine.clone(), client, |client| {
            let talks = talks.iter().cloned();
            talks.map(|talk| perform(Rc::clone(client), talk)).collect()
        })
    });
    let (origins, clients) = (origins.collect(), clients.collect());
    Parties::new((server, engines), origins, clients)
}

/// Lets all act until the clients have ended and the server has come to rest. Returns whether that came about.
fn live(plan: &CachedPlan, world: &World, actors: &mut Parties<Client>) -> bool {
    let mut trouble = Trouble::new(plan);
    while world.elapsed() < LONGEST {
        let until = world.elapsed() + trouble.interval();
        world.run(|| actors.turn(world), Until::At(until));
        trouble.happen(world.files());
        if actors.clients.iter().all(Actor::has_ended) {
            // Answers that no client waits for any more, and idle connections.
            let until = world.elapsed() + REST;
            world.run(|| actors.turn(world), Until::At(until));
            return true;
        }
    }
    false
}

/// Says what must not be. Returns the requests by what became of them.
fn judge(
    plan: &CachedPlan,
    actors: &Parties<Client>,
    ledger: &Ledger,
    failures: &mut Vec<String>,
) -> BTreeMap<&'static str, u64> {
    let judge = Judge { plan, ledger };
    let mut counts = BTreeMap::new();
    failures.extend(actors.unfinished());
    for (index, actor) in actors.clients.iter().enumerate() {
        for answered in &*actor.client.answers.borrow() {
            *counts.entry(name(&answered.found)).or_default() += 1;
            if let Err(what) = judge.check(answered) {
                failures.push(format!("client {index}: {what}; {answered:?}"));
            }
        }
    }
    failures.extend(judge.check_economy());
    let removals = u64::try_from(ledger.removals.borrow().len());
    *counts.entry("that remove").or_default() += removals.unwrap_or(0);
    counts
}

fn name(found: &Found) -> &'static str {
    match found {
        Found::Answer(told) => match told.outcome.as_str() {
            "HIT" => "answered by a hit",
            "MISS" => "answered by a miss",
            "EXPIRED" => "answered after expiry",
            "STALE" | "UPDATING" => "answered by something stale",
            "REVALIDATED" => "answered after validation",
            _ => "answered otherwise",
        },
        Found::Status(_) => "refused by the proxy",
        Found::Cut => "cut",
        Found::Nothing { .. } => "not answered",
        Found::Late => "late",
        Found::Left(_) => "left",
        Found::Wrong(_) => "wrong",
    }
}

fn look_for_leftovers(actors: &Parties<Client>, failures: &mut Vec<String>) {
    let connections = actors.server.connections();
    if connections > 0 {
        failures.push(format!(
            "the server has {connections} connections of clients left"
        ));
    }
    let streams: usize = actors.server_engines.iter().map(SimEngine::streams).sum();
    if streams > 0 {
        failures.push(format!("the server has {streams} streams left"));
    }
}

/// Virtual time in which all ends.
const LONGEST: Duration = Duration::from_secs(3_000);

/// Longer than `keepalive_timeout` towards origins, and than any answer takes.
const REST: Duration = Duration::from_secs(300);
