//! Requests per connection, openings, sources.

use crate::closed_loop::{MS, plan, run};
use crate::server::{Act, Then};
use crate::sim_platform::SimPlatform;
use mill_load::plan::{Life, Opening, Pace};
use mill_load::source::Sources;
use mill_runtime::time::Duration;
use std::collections::BTreeMap;

fn quick() -> SimPlatform {
    SimPlatform::new(|_| Act::answer("x").after(MS))
}

#[test]
fn a_connection_is_closed_after_its_number_of_requests() {
    let platform = quick();
    let mut plan = plan();
    plan.life = Life::Requests(4);
    plan.stop.requests = Some(40);
    assert_eq!(run(&platform, &plan).tally().connected, 10);
    assert_eq!(platform.log.connections.get(), 10);
}

#[test]
fn requests_per_connection_follow_their_distribution() {
    let platform = quick();
    let mut plan = plan();
    plan.life = Life::Distribution(vec![(1, 50.0), (3, 50.0)]);
    plan.stop.requests = Some(2000);
    let connected = run(&platform, &plan).tally().connected;
    assert!((950..1050).contains(&connected), "{connected}");
}

#[test]
fn a_ramp_opens_connections_evenly() {
    let platform = quick();
    let mut plan = plan();
    (plan.connections, plan.threads) = (10, 2);
    plan.opening = Opening::Ramp(100 * MS);
    plan.stop.after = Some(200 * MS);
    let ran = run(&platform, &plan);
    let mut firsts: Vec<_> = ran
        .parts
        .iter()
        .flat_map(|part| &part.recorder.samples)
        .filter(|sample| sample.connected.is_some())
        .map(|sample| sample.started)
        .collect();
    firsts.sort_unstable();
    assert_eq!(firsts.len(), 10);
    let gaps = firsts.windows(2).map(|pair| pair[1].since(pair[0]));
    assert!(gaps.into_iter().all(|gap| gap == 10 * MS));
}

#[test]
fn a_connection_rate_bounds_openings_also_of_later_connections() {
    let platform = quick();
    let mut plan = plan();
    plan.connections = 20;
    plan.life = Life::Requests(1);
    plan.opening = Opening::Rate(100.0);
    plan.stop.after = Some(500 * MS);
    let tally = run(&platform, &plan).tally();
    assert!((49..=51).contains(&tally.connected), "{}", tally.connected);
}

#[test]
fn a_connection_rate_bounds_openings_also_after_the_server_has_closed() {
    let platform = SimPlatform::new(|_| Act::answer("x").then(Then::Close));
    let mut plan = plan();
    plan.connections = 10;
    plan.pace = Pace::Closed { think: 5 * MS };
    plan.opening = Opening::Rate(100.0);
    plan.stop.after = Some(500 * MS);
    let tally = run(&platform, &plan).tally();
    assert!((49..=51).contains(&tally.connected), "{}", tally.connected);
}

#[test]
fn unneeded_openings_are_not_made_up_for() {
    // The first requests of all connections are answered after a second, all at once.
    let platform = SimPlatform::new(|number| {
        let delay = 1000_usize.saturating_sub(10 * number).max(100);
        Act::answer("x").after(MS * u32::try_from(delay).unwrap())
    });
    let mut plan = plan();
    plan.connections = 20;
    plan.life = Life::Requests(1);
    plan.opening = Opening::Rate(100.0);
    plan.stop.after = Some(Duration::from_secs(3));
    let ran = run(&platform, &plan);
    let mut opened: Vec<_> = ran.parts[0]
        .recorder
        .samples
        .iter()
        .filter_map(|sample| sample.connected)
        .collect();
    opened.sort_unstable();
    assert!(opened.len() > 40, "{}", opened.len());
    let least = opened.windows(12).map(|some| some[11].since(some[0])).min();
    assert!(least >= Some(100 * MS), "{least:?}");
}

#[test]
fn connections_come_from_the_given_addresses_in_turn_and_from_the_given_ports() {
    let platform = quick();
    let mut plan = plan();
    (plan.connections, plan.threads) = (4, 2);
    plan.sources = Sources {
        addresses: vec!["10.0.1.1".parse().unwrap(), "10.0.1.2".parse().unwrap()],
        ports: Some(5000..=5099),
    };
    plan.life = Life::Requests(1);
    plan.stop.requests = Some(80);
    run(&platform, &plan);
    let mut uses: BTreeMap<String, u32> = BTreeMap::new();
    for peer in platform.log.peers.borrow().iter() {
        *uses.entry(peer.clone()).or_default() += 1;
    }
    assert_eq!(
        uses.len(),
        80,
        "no port is used again while others rest: {uses:?}"
    );
    assert!(uses.keys().all(|peer| {
        let (ip, port) = peer.split_once(':').unwrap();
        ["10.0.1.1", "10.0.1.2"].contains(&ip) && (5000..5100).contains(&port.parse().unwrap())
    }));
}
