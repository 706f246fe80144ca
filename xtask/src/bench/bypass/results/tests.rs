//! What is judged, and by what.

use super::{CellResult, Found, Target};
use crate::bench::bypass::block::{Block, CoreUse};
use crate::bench::bypass::cell::{full, usual};
use crate::bench::bypass::overload::Overload;
use crate::bench::bypass::subject::{Kind, MEMIF, NGINX, NGINX_BY_XDP, RAW, Subject, Way, XDP};
use crate::bench::ratio::Verdict;
use crate::bench::told::Latency;

pub(in super::super) fn block(subject: Subject, pass: u32, rate: f64) -> Block {
    Block {
        subject,
        pass,
        requests_per_s: rate,
        bytes_per_s: 1000.0 * rate,
        errors: 0,
        latency: Latency {
            p50: Some(0.05),
            ..Latency::default()
        },
        lateness: Latency::default(),
        server_core: CoreUse {
            busy: 1.0,
            softirq: 0.25,
            steal: 0.0,
        },
        client_core: CoreUse {
            busy: 0.5,
            ..CoreUse::default()
        },
        server_bytes: 512.0,
        client_bytes: 1000.0,
        connections_held: Some(64),
        server_ran: 0.75,
        client_ran: 0.5,
        server_waited: 0.0,
        client_waited: 0.0,
    }
}

/// Two passes of a cell.
pub(in super::super) fn two_passes(name: &str, rates: &[(Subject, f64)]) -> CellResult {
    let cell = usual().into_iter().find(|cell| cell.name == name).unwrap();
    let mut result = CellResult::new(cell);
    for pass in 0..2 {
        let blocks = rates
            .iter()
            .map(|(subject, rate)| block(*subject, pass, rate * f64::from(1 + pass)));
        result.blocks.extend(blocks);
    }
    result
}

fn verdicts(result: &CellResult) -> Vec<Verdict> {
    let targets = result.targets();
    targets.iter().map(|target| target.verdict).collect()
}

#[test]
fn targets_are_judged_by_neighbours() {
    let rates = [
        (NGINX_BY_XDP, 100.0),
        (XDP, 500.0),
        (RAW, 1000.0),
        (MEMIF, 1.5e6),
    ];
    let result = two_passes("ka-1k-64", &rates);
    assert_eq!(
        verdicts(&result),
        [Verdict::Missed, Verdict::Met, Verdict::Open]
    );
    let Some(Found::Ratio(ratio)) = result.targets().first().map(|target| target.found) else {
        panic!("the first target is a ratio");
    };
    assert!((ratio.mean - 0.5).abs() < 1e-9);
}

#[test]
fn large_answers_are_held_against_the_better_nginx() {
    let rates = [(NGINX, 200.0), (NGINX_BY_XDP, 100.0), (XDP, 150.0)];
    let result = two_passes("ka-100k-64", &rates);
    assert_eq!(verdicts(&result), [Verdict::Missed]);
    let worse = [(NGINX, 90.0), (NGINX_BY_XDP, 100.0), (XDP, 150.0)];
    assert_eq!(verdicts(&two_passes("ka-100k-64", &worse)), [Verdict::Met]);
}

#[test]
fn times_are_held_against_the_quicker_nginx() {
    let rates = [(NGINX, 1.0), (NGINX_BY_XDP, 1.0), (XDP, 1.0), (MEMIF, 1.0)];
    let mut result = two_passes("half-1k-64", &rates);
    assert_eq!(result.targets(), []);
    for block in &mut result.blocks {
        block.latency.p99 = Some(match block.subject {
            NGINX => 0.5,
            NGINX_BY_XDP => 0.3,
            _ => 0.2,
        });
        block.lateness.p999 = Some(0.01);
    }
    assert_eq!(verdicts(&result), [Verdict::Missed]);
    for block in &mut result.blocks {
        if block.subject == XDP {
            block.latency.p99 = Some(0.15);
        }
    }
    assert_eq!(verdicts(&result), [Verdict::Met]);
    let paced = two_passes("100k/s-1k-64", &rates);
    assert_eq!(verdicts(&paced), [Verdict::Missed]);
    result.cell = paced.cell;
    assert_eq!(verdicts(&result), [Verdict::Met]);
}

#[test]
fn memory_is_judged_by_connection_and_goodput_by_what_is_kept() {
    let mut result = two_passes("ka-0B-64", &[(MEMIF, 1.0)]);
    result.cell = full()
        .into_iter()
        .find(|cell| cell.name == "idle-1m")
        .unwrap();
    assert_eq!(verdicts(&result), [Verdict::Missed], "too few are open");
    for block in &mut result.blocks {
        block.connections_held = Some(999_000);
        block.requests_per_s = 99_500.0;
    }
    assert_eq!(verdicts(&result), [Verdict::Met; 3]);
    result.blocks[0].client_bytes = 1025.0;
    result.blocks[1].requests_per_s = 50_000.0;
    let expected = [Verdict::Met, Verdict::Open, Verdict::Open];
    assert_eq!(verdicts(&result), expected);
    result.blocks[0].errors = 1;
    assert_eq!(result.targets(), []);

    let mut result = two_passes("overload", &[]);
    assert_eq!(result.targets(), []);
    for (goodput, expected) in [(95.0, Verdict::Met), (80.0, Verdict::Open)] {
        result.overloads.push(Overload {
            subject: XDP,
            alone_per_s: 100.0,
            many_per_s: 100.0,
            offered_per_s: 400.0,
            goodput_per_s: goodput,
            errors: 0,
            latency: Latency::default(),
            series: Vec::new(),
        });
        assert_eq!(verdicts(&result), [expected]);
    }
}

#[test]
fn whoever_had_errors_or_was_given_up_is_not_judged() {
    let rates = [(XDP, 500.0), (RAW, 1000.0)];
    let mut result = two_passes("ka-0B-1", &rates);
    assert_eq!(result.targets().len(), 1);
    result.blocks[0].errors = 1;
    assert_eq!(result.targets(), []);
    let mut result = two_passes("ka-0B-1", &rates);
    result.failures.push((XDP, "it crashed".to_owned()));
    assert_eq!(result.targets(), []);
    assert_eq!(
        two_passes("ka-0B-1", &[])
            .targets()
            .first()
            .map(|t| t.target),
        None::<Target>
    );
}

#[test]
fn who_spins_is_judged_by_the_other() {
    let from_kernel = Subject {
        kind: Kind::Xdp,
        way: Way::Kernel,
    };
    let rates = [
        (NGINX, 1.0),
        (NGINX_BY_XDP, 1.0),
        (XDP, 1.0),
        (from_kernel, 1.0),
    ];
    let mut result = two_passes("ka-0B-64", &rates);
    for (subject, expected) in [
        (NGINX, "server"),
        (NGINX_BY_XDP, "server"),
        (XDP, "both spin"),
        (from_kernel, "server"),
    ] {
        assert_eq!(result.bound(subject), expected, "{subject:?}");
    }
    for block in &mut result.blocks {
        block.client_core.busy = 1.0;
        block.server_core.busy = 0.5;
    }
    assert_eq!(result.bound(from_kernel), "client");
    assert_eq!(result.bound(NGINX_BY_XDP), "client");
}
