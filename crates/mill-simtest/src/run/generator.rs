//! The load generator as one more client.

use super::build::GENERATOR_STEP;
use crate::WorldEngine;
use mill_load::generator::{Progress, generator};
use mill_load::plan::Plan;
use mill_load::record::Record;
use mill_load::request::{Batch, Rendered, Requests};
use mill_load::sample::Sample;
use mill_load::tally::Tally;
use mill_load::target::Endpoint;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use mill_sim::world::World;
use std::fmt;
use std::sync::Arc;

/// A run of the load generator.
pub(super) struct Load {
    /// One turn, until the run is over; then what it counted.
    turn: Box<dyn FnMut(Instant) -> Option<Tally>>,
    pub(super) engine: WorldEngine,
    requests: u64,
    /// Its wires do nothing to frames: every request has to be answered.
    is_faithful: bool,
}

/// The run's tally says everything that is asked of it.
#[derive(Debug)]
struct NoRecord;

impl Record for NoRecord {
    type Interval = ();

    fn on_sample(&mut self, _: &Sample) {}

    fn cut(&mut self, _: Instant, _: &Tally) {}
}

impl Load {
    pub(super) fn new(
        engine: WorldEngine,
        target: &Address,
        (requests, connections): (u64, u32),
        is_faithful: bool,
        world: &World,
    ) -> Self {
        let Address::Ip(target) = target else {
            unreachable!("servers of worlds have IP addresses");
        };
        let mut plan = Plan::new(Endpoint::Ip(*target));
        plan.connections = connections;
        plan.stop.after = None;
        plan.stop.requests = Some(requests);
        let bytes = b"GET /small HTTP/1.1\r\nHost: world\r\n\r\n";
        let asked = Requests::always(Rendered {
            bytes: Arc::from(&bytes[..]),
            batch: Batch::ONE,
        });
        let begin = world.now();
        let (Some(share), plan) = (plan.shares().next(), Arc::new(plan.clone())) else {
            unreachable!("a plan has a thread");
        };
        debug_assert_eq!(engine.now(), begin);
        let own = engine.clone();
        let mut running = Some(generator(own, (plan, share), begin, asked, NoRecord));
        let turn = move |now: Instant| {
            let ended = match running.as_mut()?.turn(now, now + GENERATOR_STEP) {
                Progress::Running | Progress::Interval(()) => None,
                Progress::Ended => running.take(),
            };
            ended.map(|ended| ended.finish().tally)
        };
        Self {
            turn: Box::new(turn),
            engine,
            requests,
            is_faithful,
        }
    }

    /// Whether the run is over.
    ///
    /// # Panics
    /// If requests are unaccounted for, or failed where nothing could have made them fail.
    pub(super) fn turn(&mut self, world: &World) -> bool {
        let Some(tally) = (self.turn)(world.now()) else {
            return false;
        };
        let accounted = tally.answered + tally.failed() + tally.unfinished();
        assert_eq!(tally.started, accounted, "{tally:?}");
        if self.is_faithful {
            assert_eq!(tally.answered, self.requests, "{tally:?}");
            assert_eq!(tally.content_bytes, self.requests * 5, "{tally:?}");
        }
        true
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Load({} requests)", self.requests)
    }
}
