//! Pictures of the examples.

use crate::findings::{Dot, Drawing, Picture, Scale, Series};
use crate::metric::Unit;

/// Those of the allocators.
pub(super) fn jemalloc() -> Vec<Picture> {
    vec![
        percentiles(),
        parsed(include_str!("cpu.toml")),
        over_time(),
        parsed(include_str!("flame.toml")),
    ]
}

fn scale(title: &str, unit: Unit, logarithmic: bool, complement: bool) -> Scale {
    Scale {
        title: title.to_owned(),
        unit,
        logarithmic,
        complement,
    }
}

fn line(name: &str, points: &[(f64, f64)], width: f64) -> Series {
    let dot = |&(x, y): &(f64, f64)| Dot {
        x,
        y,
        low: (width > 0.0).then_some(y * (1.0 - width)),
        high: (width > 0.0).then_some(y * (1.0 + width)),
    };
    Series {
        name: name.to_owned(),
        points: points.iter().map(dot).collect(),
    }
}

/// Rounded figures of the cookbook's Table 2, so that the picture has a shape that a reader knows.
pub(in crate::report) fn scaling() -> Picture {
    let workers = [1.0, 2.0, 4.0, 8.0, 16.0, 28.0];
    let of = |thousands: [u32; 6]| -> Vec<(f64, f64)> {
        let rates = thousands.map(|rate| f64::from(rate) * 1000.0);
        workers.into_iter().zip(rates).collect()
    };
    let ideal: Vec<(f64, f64)> = workers.iter().map(|n| (*n, n * 126_007.0)).collect();
    let law: Vec<(f64, f64)> = (1..=28)
        .map(f64::from)
        .map(|n| {
            (
                n,
                37_100.0 * n / (1.0 + 0.044 * (n - 1.0) + 0.0019 * n * (n - 1.0)),
            )
        })
        .collect();
    Picture {
        title: String::from("New connections a second by worker processes"),
        drawing: Drawing::Lines {
            x: scale("Worker processes", Unit::Count, false, false),
            y: scale("New connections/s", Unit::PerSecond, false, false),
            series: vec![
                line("Kernel", &of([36, 73, 129, 210, 278, 289]), 0.04),
                line(
                    "Onload balanced",
                    &of([126, 198, 405, 755, 1454, 2335]),
                    0.03,
                ),
                line(
                    "Onload performance",
                    &of([125, 201, 407, 780, 1434, 2302]),
                    0.03,
                ),
            ],
            curves: vec![
                line("ideal", &ideal, 0.0),
                line("Kernel: fit, σ = 0.044, κ = 0.0019", &law, 0.0),
            ],
            shaded: Vec::new(),
        },
        caption: String::from(
            "Medians with 95 % intervals. The fit is the universal scalability law; its peak is at 22.5 workers.",
        ),
    }
}

fn percentiles() -> Picture {
    let ranks = [
        0.0, 50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0,
    ];
    let of = |ms: [f64; 11]| -> Vec<(f64, f64)> {
        ranks.into_iter().zip(ms.map(|ms| ms / 1000.0)).collect()
    };
    Picture {
        title: String::from("Latency by percentile"),
        drawing: Drawing::Lines {
            x: scale("Percentile", Unit::Percent, false, true),
            y: scale("Latency", Unit::Seconds, true, false),
            series: vec![
                line(
                    "glibc",
                    &of([1.0, 3.0, 3.1, 3.2, 3.4, 4.0, 4.2, 5.0, 5.3, 12.0, 25.0]),
                    0.0,
                ),
                line(
                    "jemalloc",
                    &of([1.0, 7.0, 8.0, 8.1, 8.2, 8.4, 9.0, 11.0, 12.0, 225.0, 1015.0]),
                    0.0,
                ),
            ],
            curves: Vec::new(),
            shaded: Vec::new(),
        },
        caption: String::from(
            "The median trial of each. Service times of a closed loop, not response times.",
        ),
    }
}

fn over_time() -> Picture {
    let down: Vec<(f64, f64)> = (0..120)
        .map(f64::from)
        .map(|step| {
            let second = step * 0.25;
            let ramp = (second / 2.0).min(1.0).min((30.0 - second) / 2.0);
            (second, 4200.0 * ramp + 220.0 * (second * 2.1).sin() * ramp)
        })
        .collect();
    let up: Vec<(f64, f64)> = down.iter().map(|(x, y)| (*x, y * 0.19)).collect();
    Picture {
        title: String::from("The interface over time"),
        drawing: Drawing::Lines {
            x: scale("Time", Unit::Seconds, false, false),
            y: scale("Mb/s", Unit::Count, false, false),
            series: vec![line("down", &down, 0.0), line("up", &up, 0.0)],
            curves: Vec::new(),
            shaded: vec![(0.0, 2.0), (28.0, 30.0)],
        },
        caption: String::from("Shaded parts are ramps and not counted."),
    }
}

/// Bars of every tone, one without an interval.
pub(in crate::report) fn bars() -> Picture {
    parsed(include_str!("bars.toml"))
}

fn parsed(text: &str) -> Picture {
    toml::from_str(text).expect("the example is a picture")
}

/// Twelve lines over connections, as Figures 6 and 7 of the cookbook have, and two that hardly differ.
pub(in crate::report) fn crowded() -> Picture {
    let connections = [1000.0, 2000.0, 5000.0, 10_000.0, 25_000.0, 50_000.0];
    let stacks = ["Kernel", "Onload balanced", "Onload performance"];
    let sizes = ["0 kB", "1 kB", "10 kB", "100 kB"];
    let mut series = Vec::new();
    for (stack, factor) in stacks.iter().zip([1.0, 3.1, 3.2]) {
        for (size, rate) in sizes.iter().zip([1.6e6, 1.1e6, 2.9e5, 2.9e4]) {
            let points: Vec<(f64, f64)> = connections
                .iter()
                .map(|n| (*n, rate * factor * (n / 50_000.0_f64).powf(0.3)))
                .collect();
            series.push(line(&format!("{stack}, {size}"), &points, 0.05));
        }
    }
    Picture {
        title: String::from("Requests a second by connections, sizes and stacks"),
        drawing: Drawing::Lines {
            x: scale("Connections", Unit::Count, true, false),
            y: scale("Requests/s", Unit::PerSecond, true, false),
            series,
            curves: Vec::new(),
            shaded: Vec::new(),
        },
        caption: String::from("Many lines."),
    }
}
