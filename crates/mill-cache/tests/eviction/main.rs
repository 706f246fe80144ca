//! Hit ratios on traces of equal objects: the zone's beside those of plain simulators. With `--nocapture` the table is printed,
//! which docs/measurements/cache_eviction.md has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// Policies, as simple as they are described.
mod policy;
/// Sequences of requests.
mod trace;

use std::time::Duration;

use mill_cache::{Arrival, Claim, Limits, Seed, Zone};
use policy::Policy;
use trace::Trace;

/// Objects that each cache has room for.
const CAPACITY: usize = 1000;

/// The share of requests that find their object, in percent.
fn percent(hits: usize, trace: &Trace) -> f64 {
    let (hits, requests) = (
        u32::try_from(hits).unwrap(),
        u32::try_from(trace.keys.len()).unwrap(),
    );
    f64::from(hits) / f64::from(requests) * 100.0
}

/// The zone with room for so many objects of this trace, and no more.
fn zone_hits(trace: &Trace) -> usize {
    let now = Duration::from_secs(1);
    let charge = {
        let zone = Zone::<()>::new(Limits::default(), Seed([1, 2]));
        store(&zone, 0, now);
        zone.figures().bytes
    };
    let limits = Limits {
        bytes: charge * CAPACITY as u64,
        ..Limits::default()
    };
    let zone = Zone::<()>::new(limits, Seed([3, 4]));
    let mut hits = 0;
    for key in &trace.keys {
        let bytes = key.to_le_bytes();
        match zone.look_up(zone.key(&bytes).unwrap(), now, |()| true) {
            Some(_) => hits += 1,
            None => store(&zone, *key, now),
        }
    }
    hits
}

fn store(zone: &std::sync::Arc<Zone<()>>, key: u64, now: Duration) {
    let bytes = key.to_le_bytes();
    let Claim::Fill(ticket) = zone.claim(zone.key(&bytes).unwrap(), now) else {
        panic!("nothing else fills");
    };
    let arrival = Arrival {
        meta: (),
        tags: &[],
        length: Some(100),
        length_max: u64::MAX,
        now,
    };
    let (mut fill, _) = ticket.start(arrival, |()| true);
    fill.append(&[0; 100]);
    fill.finish().unwrap();
}

#[test]
fn the_zone_keeps_what_s3_fifo_keeps() {
    let names: Vec<&str> = Policy::ALL.iter().map(|policy| policy.name()).collect();
    println!("| trace | the zone | {} |", names.join(" | "));
    println!("| --- |{}", " --: |".repeat(names.len() + 1));
    for trace in Trace::all() {
        let ours = percent(zone_hits(&trace), &trace);
        let others = Policy::ALL.map(|policy| percent(policy.hits(&trace.keys, CAPACITY), &trace));
        let texts = others.map(|ratio| format!("{ratio:.2} %"));
        println!("| {} | {ours:.2} % | {} |", trace.name, texts.join(" | "));
        let oracle = percent(Policy::S3Fifo.hits(&trace.keys, CAPACITY), &trace);
        assert!(
            ours > oracle - 0.5,
            "{}: {ours:.2} % where S3-FIFO has {oracle:.2} %",
            trace.name
        );
        let best = percent(Policy::Belady.hits(&trace.keys, CAPACITY), &trace);
        assert!(ours <= best + 0.01, "{}: better than possible", trace.name);
    }
}
