//! Latency of the middle trial of each series: by percentile, and as a distribution.

use super::super::measured::{Filter, Measured, over};
use super::{Drawn, name, scale, series};
use crate::findings::{Dot, Drawing, Scale, Series};
use crate::metric::Unit;
use crate::recipe::Chart;

/// Latency over -log(1 - p).
pub(super) fn percentiles(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Drawn {
    let x = Scale {
        complement: true,
        ..scale("Percentile", Unit::Share)
    };
    let y = Scale {
        logarithmic: true,
        ..scale("Latency", Unit::Seconds)
    };
    let points = |(percent, seconds): &(f64, f64)| (percent / 100.0, *seconds);
    drawing(measured, chart, at, (x, y), points)
}

/// The share of requests that were answered within a time.
pub(super) fn cdf(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Drawn {
    let x = Scale {
        logarithmic: true,
        ..scale("Latency", Unit::Seconds)
    };
    let y = scale("Requests answered within", Unit::Share);
    let points = |(percent, seconds): &(f64, f64)| (*seconds, percent / 100.0);
    drawing(measured, chart, at, (x, y), points)
}

fn drawing(
    measured: &Measured<'_>,
    chart: &Chart,
    at: &Filter,
    (x, y): (Scale, Scale),
    point: impl Fn(&(f64, f64)) -> (f64, f64),
) -> Drawn {
    let mut averaged = false;
    let lines: Vec<Series> = series(measured, chart, at)
        .into_iter()
        .filter_map(|part| {
            let here = over(&[at, &part]);
            let trial = measured.middle(&here, "latency_s.p99")?;
            averaged |= measured.usable(&here).len() > 1;
            let dots = trial
                .percentiles
                .iter()
                .filter(|(_, seconds)| *seconds > 0.0)
                .map(|pair| Dot::without_interval(point(pair)));
            let points: Vec<Dot> = dots.collect();
            (!points.is_empty()).then(|| Series {
                name: name(measured, &part),
                points,
            })
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let caption = if averaged {
        "Of the trial with the median p99 of each series; percentiles of several trials can't be averaged."
    } else {
        "One trial each."
    };
    let drawing = Drawing::Lines {
        x,
        y,
        series: lines,
        curves: Vec::new(),
        shaded: Vec::new(),
    };
    Some((drawing, String::from(caption)))
}
