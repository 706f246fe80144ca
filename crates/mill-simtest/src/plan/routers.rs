//! Routers that do not tell the truth, or not at once, of packets that are too long.

use super::{Change, Plan, WireChange};
use mill_runtime::time::Duration;
use mill_sim::packet::wire::{Router, Says};
use mill_sim::random::Random;

/// In one world of four clients are behind such routers, and half of those without another trouble behind wires that carry
/// less than their card.
pub(super) fn draw(plan: &mut Plan, mtu: u16, random: &mut Random) {
    if !random.happens(250_000) {
        return;
    }
    for station in 2..plan.stations.len() {
        let is_quiet = plan.changes.iter().all(|it| it.station != station);
        if is_quiet && random.happens(600_000) {
            let at = Duration::from_millis(random.one_of(&[0, 0, 3_000]));
            let what = WireChange::Mtu(super::wires::smaller(mtu, plan.is_ipv6, random));
            plan.changes.push(Change { at, station, what });
        }
        let (outward, inward) = (router(random), router(random));
        plan.stations[station].outward.router = outward;
        plan.stations[station].inward.router = inward;
    }
    // A host that does not search for a packet size is lost behind a silent router.
    for station in &mut plan.stations {
        station.tcp.mtu_probing = true;
    }
}

fn router(random: &mut Random) -> Router {
    let mut router = Router::TRUTHFUL;
    match random.up_to(6) {
        0 | 1 => router = Router::SILENT,
        2 => router.silent_per_million = 100_000 + few(random, 800_000),
        3 => router.late = Duration::from_millis(random.one_of(&[30, 500, 3_000])),
        4 => router.says = lie(random),
        5 => {
            router.says = lie(random);
            router.slanders_per_million = few(random, 50_000);
        }
        _ => {}
    }
    router
}

fn lie(random: &mut Random) -> Says {
    let any = u16::try_from(random.up_to(9_000)).unwrap_or(0);
    random.one_of(&[
        Says::OfForeignFlow,
        // RFC 1191 4: a router that does not know of it says 0.
        Says::Mtu(0),
        Says::Mtu(67),
        Says::Mtu(68),
        Says::Mtu(552),
        Says::Mtu(1279),
        Says::Mtu(1280),
        Says::Mtu(u16::MAX),
        Says::Mtu(any),
        Says::Mtu(any),
    ])
}

fn few(random: &mut Random, most: u32) -> u32 {
    u32::try_from(random.up_to(u64::from(most))).unwrap_or(most)
}
