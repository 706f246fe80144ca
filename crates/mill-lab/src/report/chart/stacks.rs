//! Shares of a hundred, side by side in one bar each.

use super::canvas::{Anchor, Area, Canvas};
use super::legend::{Legend, Sample, squeezed, text_width};
use super::style::PARTS_COUNT;
use crate::report::number::significant;

pub(super) fn draw(parts: &[String], bars: &[(String, Vec<f64>)]) -> Canvas {
    let names = bars.iter().map(|(name, _)| text_width(name));
    let left = names.fold(0.0, f64::max).min(NAMES_MAX) + 14.0;
    let entries = parts
        .iter()
        .enumerate()
        .map(|(index, part)| (Sample::Fill(class(part, index)), part.clone()));
    let legend = Legend::new(entries.collect(), WIDTH - 8.0);
    let plot = Area {
        left,
        top: legend.height() + 14.0,
        width: WIDTH - left - 20.0,
        height: ROW * f64::from(u32::try_from(bars.len().max(1)).unwrap_or(1)),
    };
    let mut canvas = Canvas::new(WIDTH, plot.bottom() + 30.0);
    legend.draw(&mut canvas, 4.0);
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let x = plot.left + plot.width * percent / 100.0;
        canvas.line("grid", (x, plot.top), (x, plot.bottom()));
        let at = (x, plot.bottom() + 17.0);
        canvas.text("small", at, Anchor::Middle, &format!("{percent} %"));
    }
    for (row, (name, values)) in bars.iter().enumerate() {
        let top = plot.top + ROW * f64::from(u32::try_from(row).unwrap_or(0));
        let name = squeezed(name, NAMES_MAX);
        let at = (plot.left - 10.0, top + ROW / 2.0 + 4.5);
        canvas.text("", at, Anchor::End, &name);
        draw_bar(&mut canvas, parts, values, plot, top);
    }
    if bars.is_empty() {
        let at = (plot.left + plot.width / 2.0, plot.top + ROW / 2.0 + 4.5);
        canvas.text("small", at, Anchor::Middle, "no figures");
    }
    canvas
}

/// Pixels.
const WIDTH: f64 = 760.0;
const ROW: f64 = 30.0;
const BAR: f64 = 20.0;

/// Pixels of the names; longer ones are cut.
const NAMES_MAX: f64 = 330.0;

/// Idle is pale in any place, so that busy parts stand out.
fn class(part: &str, index: usize) -> String {
    if part.eq_ignore_ascii_case("idle") {
        String::from("idle")
    } else {
        format!("p{}", index % PARTS_COUNT)
    }
}

fn draw_bar(canvas: &mut Canvas, parts: &[String], values: &[f64], plot: Area, top: f64) {
    let counted = |value: &f64| {
        if value.is_finite() {
            value.max(0.0)
        } else {
            0.0
        }
    };
    let sum: f64 = values.iter().map(counted).sum();
    // Shares of rounded tools may add up to a little more than a hundred.
    let whole = sum.max(100.0);
    let mut left = plot.left;
    for (index, value) in values.iter().map(counted).enumerate() {
        let width = plot.width * value / whole;
        let part = parts.get(index).map_or("", String::as_str);
        let area = Area {
            left,
            top: top + (ROW - BAR) / 2.0,
            width,
            height: BAR,
        };
        left += width;
        if width < 0.05 {
            continue;
        }
        let text = significant(value, 3);
        let title = format!("{part} {text} %");
        canvas.titled_rect(&class(part, index), area, &title);
        if text_width(&text) + 6.0 <= width {
            let at = (area.left + width / 2.0, top + ROW / 2.0 + 4.5);
            canvas.text("onpart", at, Anchor::Middle, &text);
        }
    }
}
