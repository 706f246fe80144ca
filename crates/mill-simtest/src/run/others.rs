//! Hosts of a world that do not have our stack.

use super::build::{address, socket};
use crate::plain_tcp::forger::Forger;
use crate::plain_tcp::host::{Circumstances, PlainHost, PlainHostOptions};
use crate::plan::{FloodPlan, PlainPlan, Plan};
use mill_sim::packet::ethernet::{Ethernet, Station, StationOptions};
use mill_sim::packet::wire::Wire;
use mill_sim::world::World;

/// They are at the stations behind all others.
pub(super) struct Others {
    pub(super) plain: Option<PlainHost>,
    /// The station of `plain`.
    pub(super) plain_address: Option<usize>,
    pub(super) forger: Option<Forger>,
    pub(super) stations: Vec<Station>,
}

impl Others {
    /// `next` is the number of the next station.
    pub(super) fn build(plan: &Plan, world: &World, ethernet: &Ethernet, next: usize) -> Self {
        let mut others = Self {
            plain: None,
            plain_address: None,
            forger: None,
            stations: Vec::new(),
        };
        if let Some(plain) = &plan.plain {
            others.add_plain(plan, plain, world, ethernet, next);
        }
        if let Some(flood) = &plan.flood {
            let index = next + others.stations.len();
            others.add_forger(plan, *flood, world, ethernet, index);
        }
        others
    }

    fn add_plain(
        &mut self,
        plan: &Plan,
        plain: &PlainPlan,
        world: &World,
        ethernet: &Ethernet,
        index: usize,
    ) {
        let engine = world.engine();
        let link = ethernet.plug(StationOptions::new(plain.mtu), Some(&engine));
        let station = link.station();
        station.set_wires(plain.outward, plain.inward);
        partition(plain, world, &station);
        let wires = wires(plan, plain);
        let options = PlainHostOptions {
            address: address(plan, index),
            serves: plain.serves.map(|habits| (80, habits)),
            targets: [
                socket(plan, 0, 80),
                socket(plan, 1, 7000),
                socket(plan, 1, 7001),
            ],
            world: Circumstances {
                is_orderly: wires.iter().all(is_orderly),
                is_clean: wires.iter().all(|wire| wire.corrupt_per_million == 0),
                has_cookies: plan.has_cookies(),
            },
            seed: plan.seed ^ HABITS,
        };
        self.plain = Some(PlainHost::new(engine, link, options, &plain.talks));
        self.plain_address = Some(index);
        self.stations.push(station);
    }

    fn add_forger(
        &mut self,
        plan: &Plan,
        flood: FloodPlan,
        world: &World,
        ethernet: &Ethernet,
        index: usize,
    ) {
        let engine = world.engine();
        let mtu = plan.stations[0].card.mtu;
        let link = ethernet.plug(StationOptions::new(mtu), Some(&engine));
        self.stations.push(link.station());
        let ends = (address(plan, index), socket(plan, 0, 80));
        self.forger = Some(Forger::new(engine, link, flood, ends, plan.seed ^ FORGER));
    }
}

/// Has a partition begin and end.
fn partition(plain: &PlainPlan, world: &World, station: &Station) {
    let Some(cut) = plain.cut else {
        return;
    };
    let (out, inwards) = (plain.outward, plain.inward);
    let (begins, ends) = (station.clone(), station.clone());
    world.at(cut.at, move || {
        let outward = Wire {
            cut: cut.outward,
            ..out
        };
        let inward = Wire {
            cut: cut.inward,
            ..inwards
        };
        begins.set_wires(outward, inward);
    });
    world.at(cut.heals_at, move || ends.set_wires(out, inwards));
}

/// All wires that a frame from or to the plain host may take.
fn wires(plan: &Plan, plain: &PlainPlan) -> Vec<Wire> {
    let stations = plan.stations.iter();
    let mut wires: Vec<_> = stations.flat_map(|it| [it.outward, it.inward]).collect();
    wires.extend([plain.outward, plain.inward]);
    wires
}

/// Neither overtakes nor doubles.
fn is_orderly(wire: &Wire) -> bool {
    wire.reorder_per_million == 0 && wire.duplicate_per_million == 0
}

/// Mixed into the seed for how a plain host cuts its segments, and for what a forger writes.
const HABITS: u64 = 0x4ab1_7500_0000_0004;
const FORGER: u64 = 0xf026_e200_0000_0005;
