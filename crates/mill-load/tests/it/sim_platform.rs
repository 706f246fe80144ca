//! A platform that is a simulated world.

use crate::server::{Act, Log, serve};
use mill_load::generator::{Progress, generator};
use mill_load::plan::Plan;
use mill_load::platform::{Machine, Platform, PlatformError, RunOutcome, ThreadInput, Watch};
use mill_load::record::Record;
use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::{Duration, UnixTime};
use mill_runtime::worker::Worker;
use mill_sim::link::Link;
use mill_sim::world::World;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Where the server of the world listens.
pub(crate) const SERVER: &str = "10.0.0.1:80";

/// What happens to a server during a run; times are from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    /// Its process ends: connections are reset or closed, and new ones are refused.
    Dies(Duration),
    /// From the first moment to the second it does nothing (SIGSTOP and SIGCONT); the kernel accepts for it.
    Stands(Duration, Duration),
    /// It ends at the first moment, and another one listens from the second one on.
    Restarts(Duration, Duration),
}

impl Fate {
    fn is_gone(self, elapsed: Duration) -> bool {
        match self {
            Self::Lives | Self::Stands(..) => false,
            Self::Dies(at) => elapsed >= at,
            Self::Restarts(from, to) => (from..to).contains(&elapsed),
        }
    }

    /// The additional delay of an answer that would be sent at `answer`.
    fn pause(self, answer: Duration) -> Duration {
        match self {
            Self::Stands(from, to) if (from..to).contains(&answer) => to - answer,
            _ => Duration::ZERO,
        }
    }
}

/// A world for one run, with one server.
pub(crate) struct SimPlatform {
    pub(crate) world: World,
    pub(crate) log: Rc<Log>,
    pub(crate) law: Rc<dyn Fn(usize) -> Act>,
    /// Whether the server listens.
    pub(crate) listens: bool,
    /// The server's fate during the run.
    pub(crate) fate: Fate,
    /// Connections that an engine may have.
    pub(crate) streams_max: usize,
}

impl SimPlatform {
    pub(crate) fn new(law: impl Fn(usize) -> Act + 'static) -> Self {
        Self {
            world: World::new(7),
            log: Rc::default(),
            law: Rc::new(law),
            listens: true,
            fate: Fate::Lives,
            streams_max: usize::MAX,
        }
    }

    pub(crate) fn with_fate(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }

    /// The one-way delay of the server's link.
    pub(crate) fn with_delay(self, delay: Duration) -> Self {
        self.world.set_link(Link {
            delay,
            ..Link::IDEAL
        });
        self
    }
}

impl Platform for SimPlatform {
    fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        match host.parse() {
            Ok(ip) => Ok(vec![SocketAddr::new(ip, port)]),
            Err(_) => Err(String::from("no such name in this world")),
        }
    }

    fn accepts(&self, address: SocketAddr) -> bool {
        self.listens && address.to_string() == SERVER
    }

    fn wall_clock(&self) -> UnixTime {
        self.world.wall_clock()
    }

    fn cpus(&self) -> u32 {
        2
    }

    fn run<R: Record>(
        &self,
        plan: &Plan,
        inputs: Vec<ThreadInput<R>>,
        watch: &mut dyn Watch<R::Interval>,
    ) -> Result<RunOutcome<R>, PlatformError> {
        let begin = self.world.now();
        let new_server = || {
            let engine = self.world.engine();
            let (now, wall_clock) = engine.clock();
            let scheduler = Scheduler::new(now, wall_clock);
            let (law, log) = (Rc::clone(&self.law), Rc::clone(&self.log));
            let time = Rc::clone(&scheduler);
            let (fate, clock) = (self.fate, Rc::clone(&scheduler));
            let law: Rc<dyn Fn(usize) -> Act> = Rc::new(move |number| {
                let mut act = law(number);
                act.delay += fate.pause(clock.now().since(begin) + act.delay);
                act
            });
            let mut server = Worker::new(engine.clone(), scheduler, move |stream, _| {
                serve(stream, Rc::clone(&time), Rc::clone(&law), Rc::clone(&log))
            });
            if self.listens {
                let options = ListenOptions::new(self.world.address(SERVER));
                let listener = engine.listen(&options).expect("the address is free");
                server.add_listener(listener.id);
            }
            server
        };
        let mut server = Some(new_server());

        let mut plan = plan.clone();
        // Virtual time stands still while a thread spins.
        plan.spin = Duration::ZERO;
        let plan = Arc::new(plan);
        let mut generators: Vec<_> = plan
            .shares()
            .zip(inputs)
            .map(|(share, input)| {
                let engine = self.world.engine();
                engine.set_streams_max(self.streams_max);
                let part = (Arc::clone(&plan), share);
                Some(generator(
                    engine,
                    part,
                    begin,
                    input.requests,
                    input.recorder,
                ))
            })
            .collect();
        let mut parts: Vec<_> = generators.iter().map(|_| None).collect();
        watch.on_begin();
        while generators.iter().any(Option::is_some) {
            let elapsed = self.world.now().since(begin);
            if self.fate.is_gone(elapsed) {
                server = None;
            } else {
                server.get_or_insert_with(new_server).turn();
            }
            for (index, slot) in generators.iter_mut().enumerate() {
                let Some(generator) = slot else { continue };
                let elapsed = self.world.now().since(begin + plan.warm_up);
                match generator.turn(
                    self.world.now(),
                    self.world.now() + Duration::from_millis(20),
                ) {
                    Progress::Running => {}
                    Progress::Interval(interval) => {
                        let thread = u32::try_from(index).expect("few threads");
                        watch.on_interval(thread, elapsed, interval);
                    }
                    Progress::Ended => parts[index] = slot.take().map(|ended| ended.finish()),
                }
            }
        }
        let measured = self.world.now().since(begin + plan.warm_up);
        Ok(RunOutcome {
            parts: parts.into_iter().flatten().collect(),
            measured,
            interrupted: false,
            machine: Machine::default(),
        })
    }
}
