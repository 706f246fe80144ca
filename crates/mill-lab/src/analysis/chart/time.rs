//! What a monitor saw while the load ran, with the parts that do not count shaded.

use super::super::measured::{Filter, Measured, over};
use super::{Drawn, name, scale};
use crate::findings::{Dot, Drawing, Series};
use crate::metric::{Unit, describe};
use crate::recipe::Chart;
use crate::statistics::mser5;

pub(super) fn series(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Drawn {
    let mut lines: Vec<Series> = Vec::new();
    let (mut shaded, mut said): (Vec<(f64, f64)>, Vec<String>) = (Vec::new(), Vec::new());
    for part in super::series(measured, chart, at) {
        let here = over(&[at, &part]);
        let Some(trial) = measured.middle(&here, &chart.metric) else {
            continue;
        };
        let file = measured.file(trial, "monitor.csv");
        let Some(points) = file.and_then(|file| column_of(&file.text, &chart.metric)) else {
            continue;
        };
        let name = name(measured, &part);
        if lines.is_empty() {
            shaded = ramps(measured, &points);
        }
        said.extend(steadiness(&name, &points));
        let points = points.into_iter().map(Dot::without_interval);
        lines.push(Series {
            name,
            points: points.collect(),
        });
    }
    if lines.is_empty() {
        return None;
    }
    let metric = describe(&chart.metric);
    let drawing = Drawing::Lines {
        x: scale("Time", Unit::Seconds),
        y: scale(&metric.title, metric.unit),
        series: lines,
        curves: Vec::new(),
        shaded,
    };
    said.insert(
        0,
        String::from("The median trial of each series; ramps are shaded and not counted."),
    );
    Some((drawing, said.join(" ")))
}

/// (second, figure) of each line that has both.
fn column_of(text: &str, metric: &str) -> Option<Vec<(f64, f64)>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next()?.split(',').collect();
    let second = head.iter().position(|name| *name == "second")?;
    let column = head.iter().position(|name| *name == metric)?;
    let points: Vec<(f64, f64)> = lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| fields.get(index)?.trim().parse::<f64>().ok();
            Some((number(second)?, number(column)?))
        })
        .filter(|(at, value)| at.is_finite() && value.is_finite())
        .collect();
    (!points.is_empty()).then_some(points)
}

/// The first and the last part, in the recipe's length.
fn ramps(measured: &Measured<'_>, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let ramp = measured.recipe.load.get("ramp_s");
    let ramp = ramp.and_then(|ramp| ramp.as_float().or_else(|| ramp.to_string().parse().ok()));
    let ramp = ramp.unwrap_or(RAMP_S);
    match (points.first(), points.last()) {
        (Some((first, _)), Some((last, _))) if last - first > 2.0 * ramp && ramp > 0.0 => {
            vec![(*first, first + ramp), (last - ramp, *last)]
        }
        _ => Vec::new(),
    }
}

/// A note if a series begins to be steady later than its ramp, or never.
fn steadiness(name: &str, points: &[(f64, f64)]) -> Option<String> {
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    if values.len() < STEADY_MIN {
        return None;
    }
    match mser5(&values) {
        Some(0) => None,
        Some(cut) => Some(format!(
            "{name} is steady from {:.1} s on.",
            points.get(cut)?.0
        )),
        None => Some(format!("{name} never became steady.")),
    }
}

/// A recipe's default ramp.
const RAMP_S: f64 = 0.5;

/// The least intervals for MSER-5.
const STEADY_MIN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_a_monitors_file_is_a_series() {
        let text = "second,cpu.server.usr,cpu.server.sys\n0.250,10.5,\n0.500,11.0,40\nbroken\n";
        assert_eq!(
            column_of(text, "cpu.server.usr"),
            Some(vec![(0.25, 10.5), (0.5, 11.0)])
        );
        assert_eq!(column_of(text, "cpu.server.sys"), Some(vec![(0.5, 40.0)]));
        assert_eq!(column_of(text, "cpu.client.usr"), None);
        assert_eq!(column_of("", "cpu.server.usr"), None);
    }
}
