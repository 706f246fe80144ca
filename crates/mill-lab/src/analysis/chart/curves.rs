//! A figure along an axis: lines, and scaling with the ideal and the fitted law.

use super::super::measured::{Filter, Measured, named, over};
use super::{Drawn, name, scale, series};
use crate::findings::{Dot, Drawing, Scale, Series};
use crate::limit::Side;
use crate::metric::{Unit, describe};
use crate::recipe::Chart;
use crate::statistics::{ScalingPoint, fit_scaling, median, median_interval, number};

/// Points of a line with what they rest on.
struct Measurements {
    name: String,
    points: Vec<(f64, Vec<f64>, Option<Side>)>,
}

pub(super) fn lines(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Drawn {
    let lines = measurements(measured, chart, at);
    let drawing = drawing(measured, chart, at, &lines, Vec::new())?;
    let said: Vec<String> = [whiskers(&lines), bounds(&lines)]
        .into_iter()
        .filter(|sentence| !sentence.is_empty())
        .collect();
    Some((drawing, said.join(" ")))
}

pub(super) fn scaling(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Drawn {
    let lines = measurements(measured, chart, at);
    let end = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.0))
        .fold(1.0, f64::max);
    let mut numbers = lines.iter().flat_map(|line| &line.points).map(|it| it.0);
    let first = numbers.next()?;
    // Nothing scales along one number: the table has it.
    if numbers.all(|other| (other - first).abs() < f64::EPSILON) {
        return None;
    }
    let mut curves: Vec<Series> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    for line in &lines {
        // Many ideals are a fan that hides the lines; with more than two the first one has to do.
        if curves.is_empty() || lines.len() <= IDEALS_MAX {
            curves.extend(ideal(line, end));
        }
        let points: Vec<ScalingPoint> = line
            .points
            .iter()
            .map(|(n, rates, side)| ScalingPoint {
                n: *n,
                rates: rates.clone(),
                other_limit: side
                    .filter(|side| *side != Side::Server)
                    .map(|side| String::from(side.word())),
            })
            .collect();
        match fit_scaling(&points, measured.kept.run.seed) {
            Ok(law) => {
                curves.push(curve(&format!("{}, fitted", line.name), end, |n| {
                    law.rate(n)
                }));
                said.push(fitted(&line.name, &law));
            }
            Err(error) => said.push(format!("{}: {error}.", line.name)),
        }
    }
    let drawing = drawing(measured, chart, at, &lines, curves)?;
    said.insert(0, bounds(&lines));
    said.insert(0, whiskers(&lines));
    said.retain(|sentence| !sentence.is_empty());
    Some((drawing, said.join(" ")))
}

fn fitted(name: &str, law: &crate::statistics::Scaling) -> String {
    let span = |interval: Option<(f64, f64)>| {
        interval
            .map(|(low, high)| format!(" [{low:.4}, {high:.4}]"))
            .unwrap_or_default()
    };
    let peak = law.peak_n.map_or_else(
        || String::from("no peak"),
        |n| format!("the peak at {n:.1}"),
    );
    format!(
        "{name}: X(N) = λN / (1 + σ(N-1) + κN(N-1)) with λ = {:.0}, σ = {:.4}{}, κ = {:.5}{}, {peak}.",
        law.lambda,
        law.sigma,
        span(law.sigma_interval),
        law.kappa,
        span(law.kappa_interval)
    )
}

/// The first point times N.
fn ideal(line: &Measurements, end: f64) -> Option<Series> {
    let (first, rates, _) = line.points.first()?;
    let each = median(rates)? / first;
    Some(Series {
        name: format!("{}, ideal", line.name),
        points: [*first, end]
            .map(|n| Dot::without_interval((n, each * n)))
            .to_vec(),
    })
}

fn curve(name: &str, end: f64, rate: impl Fn(f64) -> f64) -> Series {
    let points = (0..=CURVE_STEPS).map(|step| {
        let n = 1.0 + (end - 1.0) * number(step) / number(CURVE_STEPS);
        Dot::without_interval((n, rate(n)))
    });
    Series {
        name: String::from(name),
        points: points.collect(),
    }
}

fn measurements(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Vec<Measurements> {
    let names = measured.names_at(&chart.x, at);
    let lines = series(measured, chart, at).into_iter().map(|part| {
        let points = names.iter().enumerate().filter_map(|(index, value)| {
            let here = over(&[at, &part, &Filter::from([(chart.x.clone(), named(value))])]);
            let values = measured.values(&here, &chart.metric);
            // Values without a number are one apart, in the recipe's order.
            let x = measured
                .number(&chart.x, value)
                .unwrap_or(number(index + 1));
            (!values.is_empty()).then(|| (x, values, measured.limit(&here)))
        });
        Measurements {
            name: name(measured, &part),
            points: points.collect(),
        }
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// None if there is nothing to draw.
fn drawing(
    measured: &Measured<'_>,
    chart: &Chart,
    at: &Filter,
    lines: &[Measurements],
    curves: Vec<Series>,
) -> Option<Drawing> {
    if lines.is_empty() {
        return None;
    }
    let metric = describe(&chart.metric);
    let one = |line: &Measurements| Series {
        name: line.name.clone(),
        points: line
            .points
            .iter()
            .filter_map(|(x, values, _)| {
                let interval = median_interval(values);
                Some(Dot {
                    x: *x,
                    y: median(values)?,
                    low: interval.map(|span| span.low),
                    high: interval.map(|span| span.high),
                })
            })
            .collect(),
    };
    Some(Drawing::Lines {
        x: along(measured, chart, at),
        y: scale(&metric.title, metric.unit),
        series: lines.iter().map(one).collect(),
        curves,
        shaded: Vec::new(),
    })
}

/// Logarithmic where values span more than a decade, as 1k to 50k connections do.
fn along(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Scale {
    let names = measured.names_at(&chart.x, at);
    let numbers: Vec<f64> = names
        .iter()
        .filter_map(|name| measured.number(&chart.x, name))
        .collect();
    let words = numbers.len() < names.len();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let title = if words {
        format!("{}: {}", chart.x, names.join(", "))
    } else {
        chart.x.clone()
    };
    Scale {
        logarithmic: !words
            && least > 0.0
            && most / least > DECADES
            && chart.kind != crate::recipe::ChartKind::Scaling,
        ..scale(&title, Unit::Count)
    }
}

/// What the whiskers are.
fn whiskers(lines: &[Measurements]) -> String {
    let points = lines.iter().flat_map(|line| &line.points);
    let covers: Vec<f64> = points
        .filter_map(|(_, values, _)| Some(median_interval(values)?.covers))
        .collect();
    let Some(least) = covers.iter().copied().min_by(f64::total_cmp) else {
        return String::new();
    };
    let percent = (least * 100.0).floor();
    format!("Medians, whose whiskers cover {percent:.0} % of cases or more.")
}

/// Which points are not the server's own.
fn bounds(lines: &[Measurements]) -> String {
    let other = |side: &Option<Side>| side.filter(|side| *side != Side::Server);
    let mut parts: Vec<String> = Vec::new();
    for line in lines {
        let points: Vec<String> = line
            .points
            .iter()
            .filter_map(|(x, _, side)| Some(format!("{} at {x}", other(side)?.word())))
            .collect();
        if !points.is_empty() {
            parts.push(format!("{}: {}", line.name, points.join(", ")));
        }
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("Not the server's own limit: {}.", parts.join("; "))
    }
}

/// Straight pieces of a smooth curve.
const CURVE_STEPS: usize = 60;

/// Ideal lines in one picture.
const IDEALS_MAX: usize = 2;

/// Span of values from which a logarithmic axis reads better.
const DECADES: f64 = 20.0;
