//! Tables of figures that are known.

use std::time::Duration;

use super::*;
use crate::bench::paths::standing::Queued;

const CALM: Trust = Trust {
    late_per_mille: 0.0,
    latest: Duration::from_micros(300),
};

const QUEUE: Queued = Queued {
    mean: 125_000.0,
    p95: 250_000.0,
};

fn alone(goodput: f64) -> Alone {
    Alone {
        goodput,
        short: [Some(0.25), None],
        queue: QUEUE,
        dropped_per_mille: 1.5,
        trust: CALM,
    }
}

fn path(name: &str) -> Path {
    Path::named(name).unwrap()
}

/// The cells of the only line of a table that begins with this.
fn line(text: &str, beginning: &str) -> Vec<String> {
    let mut lines = text.lines().filter(|line| line.starts_with(beginning));
    let line = lines.next().unwrap();
    assert_eq!(lines.next(), None, "{beginning}");
    line.split("  ")
        .filter(|cell| !cell.is_empty())
        .map(|cell| cell.trim().to_owned())
        .collect()
}

#[test]
fn a_ratio_is_the_median_of_pairs_and_is_judged() {
    let check = |ours: [f64; 2], expected: &str| {
        let kernel = subject(Stack::Kernel, Algorithm::Cubic);
        let our = subject(Stack::Ours, Algorithm::Cubic);
        let trials = [
            (kernel, 80e6),
            (our, ours[0]),
            (our, ours[1]),
            (kernel, 100e6),
        ];
        let results = Results {
            alone: trials
                .map(|(subject, goodput)| (path("loss-1"), subject, alone(goodput)))
                .to_vec(),
            ..Results::default()
        };
        let cells = line(&results.text(), "loss-1: 100 Mbit/s");
        assert_eq!(cells[1], "90.0");
        assert_eq!(cells[3], expected);
    };
    check([80e6, 90e6], "0.95 (0.90 to 1.00)");
    check([79e6, 90e6], "0.94 (0.90 to 0.99) missed");
}

#[test]
fn what_waits_is_told_in_time_of_the_wire_and_what_never_came_as_a_dash() {
    let trial = (
        path("deep"),
        subject(Stack::Ours, Algorithm::Bbr),
        alone(1e6),
    );
    let results = Results {
        alone: vec![trial],
        ..Results::default()
    };
    let text = results.text();
    assert!(text.contains("20.0 / 40.0"), "{text}");
    assert!(text.contains("0.25 / –"), "{text}");
    assert!(results.markdown().contains("| deep | – / – |"));
}

#[test]
fn a_share_is_ours_whichever_flow_began() {
    let check = |algorithm, goodput: [f64; 2], expected: &str| {
        let ours = subject(Stack::Ours, Algorithm::Cubic);
        let kernel = subject(Stack::Kernel, algorithm);
        let together = |goodput| Together {
            goodput,
            queue: QUEUE,
            trust: CALM,
        };
        let [our_rate, kernel_rate] = goodput;
        let results = Results {
            together: vec![
                (
                    path("dsl"),
                    [ours, kernel],
                    together([our_rate, kernel_rate]),
                ),
                (
                    path("dsl"),
                    [kernel, ours],
                    together([kernel_rate, our_rate]),
                ),
            ],
            ..Results::default()
        };
        assert_eq!(line(&results.text(), "dsl")[3], expected);
    };
    check(Algorithm::Cubic, [4e6, 6e6], "0.40 (0.40 to 0.40)");
    check(Algorithm::Cubic, [3e6, 7e6], "0.30 (0.30 to 0.30) missed");
    check(Algorithm::Cubic, [7e6, 3e6], "0.70 (0.70 to 0.70) missed");
    // Between two algorithms there is no target.
    check(Algorithm::Bbr, [7e6, 3e6], "0.70 (0.70 to 0.70)");
}

#[test]
fn late_frames_and_disturbed_trials_are_told() {
    let mut disturbed = alone(1e6);
    disturbed.trust.latest = Duration::from_millis(80);
    let results = Results {
        alone: vec![(
            path("lan"),
            subject(Stack::Kernel, Algorithm::Bbr),
            disturbed,
        )],
        disturbed: 2,
        ..Results::default()
    };
    let notes = results.notes();
    assert!(
        notes.starts_with("1 trials;") && notes.contains("the latest by 80.0 ms"),
        "{notes}"
    );
    assert!(
        notes.contains("2 disturbed trials were repeated, 1 of those above"),
        "{notes}"
    );
}

#[test]
fn a_median_of_an_even_count_lies_between() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
}
