//! The parties of worlds with a server between clients and origins, and whose turn it is.

use crate::servers::HttpServer;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::worker::Worker;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::Cell;
use std::rc::Rc;

/// All parties of a world. Clients have what `C` is, by which it is judged what they got.
pub(crate) struct Parties<C> {
    pub(crate) server: HttpServer,
    /// Those of its workers: the server is due if one of them is.
    pub(crate) server_engines: Vec<SimEngine>,
    pub(crate) clients: Vec<Actor<C>>,
    origins: Vec<Party>,
    /// In so many more turns all have one, due or not.
    turns_of_all: u8,
}

/// One that acts when its engine has something for it.
pub(crate) struct Party {
    pub(crate) engine: SimEngine,
    pub(crate) turn: Box<dyn FnMut()>,
}

/// A client.
pub(crate) struct Actor<C> {
    pub(crate) client: Rc<C>,
    /// What it has still to do.
    tasks: Rc<Cell<usize>>,
    party: Party,
}

impl<C> Actor<C> {
    /// One that does all of `tasks` over `engine`; `inner` is what that stands on, and tells when something is due.
    pub(crate) fn new<E, F>(
        engine: E,
        inner: SimEngine,
        client: impl FnOnce(Rc<Scheduler>) -> C,
        tasks: impl FnOnce(&Rc<C>) -> Vec<F>,
    ) -> Self
    where
        E: Engine + 'static,
        F: Future<Output = ()> + 'static,
    {
        let (now, wall_clock) = engine.clock();
        let scheduler = Scheduler::new(now, wall_clock);
        let client = Rc::new(client(Rc::clone(&scheduler)));
        let mut worker = Worker::connecting(engine, scheduler);
        let tasks = tasks(&client);
        let left = Rc::new(Cell::new(tasks.len()));
        tasks.into_iter().for_each(|task| {
            worker.spawn(task);
        });
        let tasks = Rc::clone(&left);
        let turn = Box::new(move || {
            worker.turn();
            left.set(worker.tasks());
        });
        let engine = inner;
        Self {
            client,
            tasks,
            party: Party { engine, turn },
        }
    }

    /// It has done all.
    pub(crate) fn has_ended(&self) -> bool {
        self.tasks.get() == 0
    }
}

impl<C> Parties<C> {
    pub(crate) fn new(
        (server, server_engines): (HttpServer, Vec<SimEngine>),
        origins: Vec<Party>,
        clients: Vec<Actor<C>>,
    ) -> Self {
        Self {
            server,
            server_engines,
            clients,
            origins,
            turns_of_all: TURNS_OF_NEW,
        }
    }

    /// One turn of all parties that are due; if none is, time passes.
    pub(crate) fn turn(&mut self, world: &World) {
        let has_new = self.turns_of_all > 0;
        self.turns_of_all = self.turns_of_all.saturating_sub(1);
        let is_due = |engine: &SimEngine| has_new || engine.is_due();
        let mut has_run = false;
        if self.server_engines.iter().any(is_due) {
            self.server.turn();
            has_run = true;
        }
        let clients = self.clients.iter_mut().map(|actor| &mut actor.party);
        for party in self.origins.iter_mut().chain(clients) {
            if is_due(&party.engine) {
                (party.turn)();
                has_run = true;
            }
        }
        if !has_run {
            world.wait();
        }
    }

    /// Says which clients have not come to an end.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = String> {
        let clients = self.clients.iter().enumerate();
        let left = clients.filter(|(_, actor)| !actor.has_ended());
        left.map(|(index, _)| format!("client {index} has not come to an end"))
    }
}

/// Turns until a new engine knows what is waited for.
const TURNS_OF_NEW: u8 = 2;
