//! Charts as data.

use super::made_up::{Run, limit};
use crate::analysis::{KeptFile, findings};
use crate::findings::{Drawing, Picture};
use crate::limit::Side;
use crate::parts::assert_contains;

const WORKERS: &str = r#"
id = "workers"
title = "By workers"
question = "How does it scale?"

[for]
workers = [1, 2, 4, 8, 16, 28]
system = ["nginx"]

[system.nginx]
title = "nginx"

[load]
ramp_s = 1.0

[[chart]]
title = "Scaling"
kind = "scaling"
x = "workers"

[[chart]]
title = "Latency"
kind = "percentiles"
at = { workers = 1 }

[[chart]]
title = "CPUs"
kind = "cpu"
at = { workers = 1 }

[[chart]]
title = "Over time"
kind = "time"
metric = "cpu.server.usr"
at = { workers = 1 }
"#;

/// Seed 001, Table 2, as if it had been measured.
fn made_up(workers: usize) -> Run {
    let rates = [
        35_890.7, 73_226.1, 128_555.0, 209_513.0, 278_366.0, 288_632.0,
    ];
    let mut run = Run::new(WORKERS);
    for (n, rate) in [1, 2, 4, 8, 16, 28].into_iter().zip(rates).take(workers) {
        let cpu = [
            ("cpu.server.usr", 30.0),
            ("cpu.server.sys", 60.0),
            ("cpu.server.idle", 10.0),
        ];
        let trial = run.trial(0, &format!("workers={n} system=nginx"), &cpu);
        trial.figures.insert(String::from("requests_per_s"), rate);
        trial.percentiles = vec![(50.0, 0.001), (99.0, 0.004), (100.0, 0.02)];
    }
    let mut text = String::from("second,cpu.server.usr\n");
    for i in 0..40_u32 {
        text.push_str(&format!("{},{}\n", f64::from(i) / 4.0, 30 + i % 3));
    }
    run.kept.files.push(KeptFile {
        trial: 0,
        name: String::from("monitor.csv"),
        text,
    });
    run.kept.files.push(KeptFile {
        trial: 0,
        name: String::from("profile.folded"),
        text: String::from("nginx;main 10\n"),
    });
    run
}

fn picture(pictures: &[Picture], title: &str) -> Picture {
    pictures
        .iter()
        .find(|picture| picture.title == title)
        .cloned()
        .unwrap()
}

#[test]
fn six_numbers_of_workers_get_a_fitted_curve_and_an_ideal_line() {
    let found = picture(&findings(&made_up(6).kept).charts, "Scaling");
    let Drawing::Lines { series, curves, .. } = found.drawing else {
        panic!("a scaling chart has lines")
    };
    assert_eq!(series[0].points.len(), 6);
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["nginx, ideal", "nginx, fitted"]);
    assert!(found.caption.contains("σ = 0.0432"), "{}", found.caption);
    assert_contains(&found.caption, "the peak at 22.4");
}

#[test]
fn five_numbers_of_workers_get_none_and_the_caption_has_the_reason() {
    let found = picture(&findings(&made_up(5).kept).charts, "Scaling");
    assert_contains(&found.caption, "needs 6 different numbers, there are 5");
}

#[test]
fn a_client_bound_top_gets_no_fit() {
    let mut run = made_up(6);
    run.kept.trials[5].limit = limit(Side::Client);
    let findings = findings(&run.kept);
    let found = picture(&findings.charts, "Scaling");
    assert_contains(&found.caption, "at 28 the run was client-bound");
    let said = |words: &str| findings.summary.iter().any(|s| s.text.contains(words));
    assert!(
        said("server-bound at 1 to 16, client-bound at 28 (workers)"),
        "{:?}",
        findings.summary
    );
    assert!(
        said("nginx: highest median 288632 requests/s (1 trial), at workers = 28, client-bound"),
        "{:?}",
        findings.summary
    );
}

#[test]
fn percentiles_processors_time_and_profiles_are_drawn() {
    let charts = findings(&made_up(1).kept).charts;
    let Drawing::Lines { x, series, .. } = picture(&charts, "Latency").drawing else {
        panic!("percentiles are lines")
    };
    assert!(x.complement);
    assert!((series[0].points[1].x - 0.99).abs() < 1e-12);
    let Drawing::Stacks { parts, bars } = picture(&charts, "CPUs").drawing else {
        panic!("CPUs are stacks")
    };
    assert_eq!(parts, ["usr", "sys", "idle"]);
    assert_eq!(
        bars,
        [(String::from("nginx: server"), vec![30.0, 60.0, 10.0])]
    );
    let Drawing::Lines { shaded, series, .. } = picture(&charts, "Over time").drawing else {
        panic!("time is a line")
    };
    assert_eq!(series[0].points.len(), 40);
    assert_eq!(shaded, [(0.0, 1.0), (8.75, 9.75)]);
    let flame = picture(&charts, "Where the CPU time of nginx went").drawing;
    let folded = vec![(String::from("nginx;main"), 10)];
    assert_eq!(flame, Drawing::Flame { folded });
}

#[test]
fn one_number_of_workers_is_no_picture_of_scaling() {
    let titles = |workers| -> Vec<String> {
        let pictures = findings(&made_up(workers).kept).charts;
        pictures.into_iter().map(|picture| picture.title).collect()
    };
    let (one, two) = (titles(1), titles(2));
    assert_eq!(two.len(), one.len() + 1, "{one:?} {two:?}");
}
