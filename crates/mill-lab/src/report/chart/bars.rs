//! One bar a line, from where nothing changes to its value, with its interval.

use super::axis::Axis;
use super::canvas::{Anchor, Area, Canvas};
use super::legend::{squeezed, text_width};
use crate::findings::{Bar, Scale, Tone};
use crate::metric::Unit;
use crate::report::number::{figure, significant};

pub(super) fn draw(scale: &Scale, zero: f64, all: &[Bar]) -> Canvas {
    let bars = &all[..all.len().min(BARS_MAX)];
    let names = bars.iter().map(|bar| text_width(&bar.name));
    let left = names.fold(0.0, f64::max).min(NAMES_MAX) + 34.0;
    let values = bars
        .iter()
        .map(|bar| text_width(&value_text(bar, scale, zero)));
    let right = values.fold(0.0, f64::max) + 14.0;
    let plot = Area {
        left,
        top: 10.0,
        width: WIDTH - left - right,
        height: ROW * f64::from(u32::try_from(bars.len().max(1)).unwrap_or(1)),
    };
    let ends = bars
        .iter()
        .flat_map(|bar| [Some(bar.value), bar.low, bar.high]);
    let mut ends: Vec<f64> = ends.flatten().filter(|end| end.is_finite()).collect();
    ends.push(zero);
    let axis = if zero == 0.0 || scale.logarithmic {
        Axis::upward(scale, &ends)
    } else {
        // Around 1 a ratio's bars would all look alike if zero had to be on the axis.
        Axis::around(scale, &ends)
    };
    let across = |value: f64| {
        let share = axis.place(value)?.clamp(0.0, 1.0);
        Some(plot.left + share * plot.width)
    };
    let mut canvas = Canvas::new(WIDTH, plot.bottom() + 48.0);
    draw_axis(&mut canvas, &axis, plot);
    let origin = across(zero).unwrap_or(plot.left);
    for (row, bar) in bars.iter().enumerate() {
        let middle = plot.top + ROW * (f64::from(u32::try_from(row).unwrap_or(0)) + 0.5);
        let name = squeezed(&bar.name, NAMES_MAX);
        canvas.text("", (plot.left - 30.0, middle + 4.5), Anchor::End, &name);
        let sign = (plot.left - 16.0, middle + 4.5);
        canvas.text("", sign, Anchor::Middle, bar.tone.sign());
        draw_bar(&mut canvas, bar, origin, middle, &across);
        let text = value_text(bar, scale, zero);
        canvas.text(
            "",
            (plot.right() + 10.0, middle + 4.5),
            Anchor::Start,
            &text,
        );
    }
    canvas.line("zero", (origin, plot.top), (origin, plot.bottom()));
    if bars.is_empty() {
        let at = (plot.left + plot.width / 2.0, plot.top + ROW / 2.0 + 4.5);
        canvas.text("small", at, Anchor::Middle, "no figures");
    }
    if bars.len() < all.len() {
        let text = format!("and {} more", all.len() - bars.len());
        canvas.text("small", (2.0, plot.bottom() + 39.0), Anchor::Start, &text);
    }
    canvas
}

/// Further bars are only counted: more cannot be compared by eye.
const BARS_MAX: usize = 120;

/// Pixels.
const WIDTH: f64 = 760.0;
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;

/// Pixels of the names; longer ones are cut.
const NAMES_MAX: f64 = 390.0;

fn draw_axis(canvas: &mut Canvas, axis: &Axis, plot: Area) {
    let mut free = f64::INFINITY;
    for tick in axis.ticks.iter().rev() {
        let x = plot.left + tick.at * plot.width;
        canvas.line("grid", (x, plot.top), (x, plot.bottom()));
        let half = text_width(&tick.label) / 2.0;
        if x + half <= free {
            let at = (x, plot.bottom() + 17.0);
            canvas.text("small", at, Anchor::Middle, &tick.label);
            free = x - half - 6.0;
        }
    }
    let at = (plot.left + plot.width / 2.0, plot.bottom() + 39.0);
    canvas.text("axis-title", at, Anchor::Middle, &axis.title);
}

fn draw_bar(
    canvas: &mut Canvas,
    bar: &Bar,
    origin: f64,
    middle: f64,
    across: &impl Fn(f64) -> Option<f64>,
) {
    let Some(end) = across(bar.value) else {
        return;
    };
    // What is not sure is pale as well as marked.
    let hollow = match bar.tone {
        Tone::Unsure | Tone::Same => " hollow",
        Tone::Gain | Tone::Loss | Tone::Plain => "",
    };
    let area = Area {
        left: origin.min(end),
        top: middle - BAR / 2.0,
        width: (origin - end).abs(),
        height: BAR,
    };
    let class = format!("b-{}{hollow}", bar.tone.class());
    canvas.titled_rect(&class, area, &bar.name);
    let ends = (bar.low.and_then(across), bar.high.and_then(across));
    if let (Some(low), Some(high)) = ends {
        canvas.line("plainwhisker", (low, middle), (high, middle));
        for x in [low, high] {
            canvas.line("plainwhisker", (x, middle - 4.0), (x, middle + 4.0));
        }
    }
}

/// "+7.5 %" for changes, "1.075" for ratios, a figure for anything else.
fn value_text(bar: &Bar, scale: &Scale, zero: f64) -> String {
    let percent = match scale.unit {
        Unit::Percent => bar.value,
        Unit::Share => bar.value * 100.0,
        _ => return figure(bar.value, scale.unit),
    };
    if zero != 0.0 {
        return significant(bar.value, 4);
    }
    let text = if percent.abs() < 0.05 {
        String::from("0.0")
    } else if percent.abs() < 100.0 {
        format!("{:.1}", percent.abs())
    } else {
        significant(percent.abs(), 3)
    };
    match percent {
        percent if !percent.is_finite() => String::from("–"),
        percent if percent <= -0.05 => format!("−{text} %"),
        percent if percent >= 0.05 => format!("+{text} %"),
        _ => format!("±{text} %"),
    }
}
