//! The curves over percentiles, with dots at the common ones.

use super::area::Area;
use super::scale::{Across, Up, latency_label};
use crate::native::outcome::Outcome;
use crate::native::units;
use mill_metrics::Histogram;
use std::fmt::Write;

/// A curve and its name.
struct Curve<'a> {
    class: &'static str,
    caption: &'static str,
    histogram: &'a Histogram,
}

/// The area of a label.
#[derive(Clone, Copy)]
struct Label {
    left: f64,
    right: f64,
    baseline: f64,
}

pub(super) fn draw(text: &mut String, outcome: &Outcome<'_>, area: Area) {
    let curves = curves(outcome);
    let latency = &outcome.results.measures.latency;
    let histograms: Vec<&Histogram> = curves.iter().map(|curve| curve.histogram).collect();
    let across = Across::new(area, latency.count());
    let up = Up::of(area, &histograms);
    for value in up.ticks() {
        area.rule_across(text, up.place(value), &latency_label(value));
    }
    rules_up(text, area, &across);
    area.floor(text);
    let scale = if up.is_logarithmic() {
        "percentile of requests (both scales are logarithmic)"
    } else {
        "percentile of requests"
    };
    area.caption(text, scale);
    // The first is the most important, so it is drawn last, above the others.
    for curve in curves.iter().rev() {
        line(text, curve, area, (&across, &up));
    }
    marks(text, latency, area, (&across, &up));
    legend(text, &curves, area);
}

fn curves<'a>(outcome: &Outcome<'a>) -> Vec<Curve<'a>> {
    let measures = &outcome.results.measures;
    let latency = |caption| Curve {
        class: "latency",
        caption,
        histogram: &measures.latency,
    };
    match &measures.raw {
        Some(raw) => vec![
            latency("latency from when the request was due"),
            Curve {
                class: "raw",
                caption: "from when it was sent",
                histogram: raw,
            },
        ],
        None => vec![latency(
            "latency from when the request was sent (closed loop)",
        )],
    }
}

/// From the right, where the nines are; without room for its label a value only has a line.
fn rules_up(text: &mut String, area: Area, across: &Across) {
    let mut free = f64::INFINITY;
    for (quantile, label) in across.ticks().into_iter().rev() {
        let x = across.place(quantile);
        let half = width(&label) / 2.0;
        let fits = x + half + 8.0 <= free;
        area.rule_up(text, x, fits.then_some(label.as_str()));
        if fits {
            free = x - half;
        }
    }
}

/// The curve, reduced to one point a pixel: more would only make the file larger.
fn line(text: &mut String, curve: &Curve<'_>, area: Area, (across, up): (&Across, &Up)) {
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    for step in curve.histogram.steps() {
        let (x, y) = (
            across.place(step.quantile),
            up.place(step.value.as_secs_f64()),
        );
        match last {
            None => {
                let _ = write!(path, "M{:.1} {y:.1}L{x:.1} {y:.1}", area.left);
            }
            Some(before) if near(before, (x, y)) && step.quantile < 1.0 => continue,
            Some(_) => {
                let _ = write!(path, "L{x:.1} {y:.1}");
            }
        }
        last = Some((x, y));
    }
    let class = curve.class;
    let _ = writeln!(text, "<path class=\"curve {class}\" d=\"{path}\"/>");
}

fn near(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() < 1.0 && (one.1 - other.1).abs() < 1.0
}

/// The maximum, p99, the median and p99.9, the important ones first: a label that would cover another is omitted with
/// its dot. Labels are left of a dot and above it, where no curve is: all of them rise, and none is above this one.
fn marks(text: &mut String, histogram: &Histogram, area: Area, (across, up): (&Across, &Up)) {
    let mut taken: Vec<Label> = Vec::new();
    for (percent, name) in MARKS {
        let value = histogram.percentile(percent);
        let (x, y) = (across.place(percent / 100.0), up.place(value.as_secs_f64()));
        let shown = units::duration(value);
        let width = width(name) + 6.0 + width(&shown);
        let is_last = x >= area.right - 1.0;
        let left = (if is_last { x } else { x - 6.0 } - width).max(area.left + 6.0);
        let right = left + width;
        // At the left end the label extends to the right of its dot, where the curve may be higher.
        let beyond = histogram.percentile(across.quantile(right.min(area.right)) * 100.0);
        let top = if right > x {
            up.place(beyond.as_secs_f64())
        } else {
            y
        };
        let label = Label {
            left,
            right,
            baseline: top.min(y) - 10.0,
        };
        if taken.iter().any(|other| label.touches(*other)) {
            continue;
        }
        taken.push(label);
        let baseline = label.baseline;
        let _ = writeln!(
            text,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <text class=\"mark\" x=\"{right:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">\
             {name} <tspan class=\"value\">{shown}</tspan></text>"
        );
    }
}

/// Above the plot, where no curve is.
fn legend(text: &mut String, curves: &[Curve<'_>], area: Area) {
    let y = area.top - 20.0;
    let mut x = area.left;
    for curve in curves {
        let (class, caption) = (curve.class, curve.caption);
        let (end, beside) = (x + 30.0, x + 40.0);
        let _ = writeln!(
            text,
            "<line class=\"curve {class}\" x1=\"{x}\" x2=\"{end}\" y1=\"{y}\" y2=\"{y}\"/>\
             <text x=\"{beside}\" y=\"{}\">{caption}</text>",
            y + 4.5
        );
        x = (beside + width(caption) + 24.0).round();
    }
}

impl Label {
    fn touches(self, other: Self) -> bool {
        let beside = self.right + 6.0 < other.left || other.right + 6.0 < self.left;
        !beside && (self.baseline - other.baseline).abs() < 18.0
    }
}

/// The maximum width of a text, in letters of size 12.
fn width(text: &str) -> f64 {
    text.chars().map(|_| LETTER).sum()
}

/// Percentiles with a dot, in the order of their importance.
const MARKS: [(f64, &str); 4] = [
    (100.0, "max"),
    (99.0, "p99"),
    (50.0, "p50"),
    (99.9, "p99.9"),
];

/// An average letter of size 12 in the widest common fonts.
const LETTER: f64 = 7.2;
