//! The latencies by percentile as a picture: the horizontal axis is log 1/(1-p), so that each nine has the same width.

/// From values to places.
mod scale;

use crate::native::outcome::Outcome;
use crate::native::{summary, units};
use mill_metrics::Histogram;
use scale::{Across, Up};
use std::fmt::Write;

/// A curve and its caption.
struct Curve<'a> {
    class: &'static str,
    caption: &'static str,
    histogram: &'a Histogram,
}

/// Draws the latencies of a run. Without any answer it says so.
pub(super) fn emit(outcome: &Outcome<'_>) -> String {
    let measures = &outcome.results.measures;
    let mut curves = Vec::new();
    if outcome.is_open_loop() {
        curves.push(Curve {
            class: "latency",
            caption: "latency, from when the request was due",
            histogram: &measures.latency,
        });
        curves.push(Curve {
            class: "raw",
            caption: "raw, from when it was started",
            histogram: measures.raw(),
        });
    } else {
        curves.push(Curve {
            class: "latency",
            caption: "service time of a closed loop",
            histogram: &measures.latency,
        });
    }
    let mut text = String::new();
    frame(&mut text, outcome);
    if measures.latency.is_empty() {
        let _ = writeln!(
            text,
            "<text class=\"caption\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">no request was answered</text>",
            WIDTH / 2.0,
            HEIGHT / 2.0
        );
    } else {
        let histograms: Vec<&Histogram> = curves.iter().map(|curve| curve.histogram).collect();
        let across = Across::new(measures.latency.count());
        let up = Up::new(&histograms);
        grid(&mut text, &across, &up);
        // The first is the one that counts, so it is drawn last, above the others.
        for curve in curves.iter().rev() {
            draw(&mut text, curve, &across, &up);
        }
        marks(&mut text, &measures.latency, &across, &up);
        legend(&mut text, &curves);
    }
    text.push_str("</svg>\n");
    text
}

fn frame(text: &mut String, outcome: &Outcome<'_>) {
    let title = summary::title(outcome);
    let (first, second) = title.split_once('\n').unwrap_or((&title, ""));
    let verdict = outcome.verdict.word.name();
    let rate = units::rate(outcome.results.rate());
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n\
         <title>{first}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"36\">{first}</text>\n\
         <text class=\"subtitle\" x=\"{LEFT}\" y=\"58\">{second}; {rate} answered, {verdict}</text>\n",
        first = escape(first),
        second = escape(second),
    );
}

fn grid(text: &mut String, across: &Across, up: &Up) {
    let bottom = HEIGHT - BOTTOM;
    for (at, label) in up.ticks() {
        let y = up.place(at);
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            WIDTH - RIGHT,
            LEFT - 10.0,
            y + 4.0
        );
    }
    for (quantile, label) in across.ticks() {
        let x = across.place(quantile);
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 20.0
        );
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let _ = writeln!(
        text,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\n\
         <text class=\"label\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">\
         percentile of requests{}</text>",
        WIDTH - RIGHT,
        bottom + 46.0,
        if up.is_logarithmic() {
            " (both scales are logarithmic)"
        } else {
            ""
        }
    );
}

/// The curve, thinned to one point a pixel: more would only make the file larger.
fn draw(text: &mut String, curve: &Curve<'_>, across: &Across, up: &Up) {
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    for step in curve.histogram.steps() {
        let place = (
            across.place(step.quantile),
            up.place(step.value.as_secs_f64()),
        );
        match last {
            None => {
                let _ = write!(
                    path,
                    "M{LEFT:.1} {:.1}L{:.1} {:.1}",
                    place.1, place.0, place.1
                );
            }
            Some(before) if near(before, place) && step.quantile < 1.0 => continue,
            Some(_) => {
                let _ = write!(path, "L{:.1} {:.1}", place.0, place.1);
            }
        }
        last = Some(place);
    }
    let class = curve.class;
    let _ = writeln!(text, "<path class=\"curve {class}\" d=\"{path}\"/>");
}

fn near(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() < 1.0 && (one.1 - other.1).abs() < 1.0
}

/// Dots with their values where people look: the median, p99, p99.9 and the longest.
fn marks(text: &mut String, histogram: &Histogram, across: &Across, up: &Up) {
    let mut right_end = 0.0;
    let percentiles = [
        (50.0, "p50"),
        (99.0, "p99"),
        (99.9, "p99.9"),
        (100.0, "max"),
    ];
    for (percent, name) in percentiles.into_iter().rev() {
        let value = histogram.percentile(percent);
        let x = across.place(percent / 100.0);
        let y = up.place(value.as_secs_f64());
        let is_last = percent >= 100.0;
        // Each label takes so much room to the left of the one before it.
        if !is_last && x > right_end - LABEL {
            continue;
        }
        right_end = x;
        // A curve rises: above and to the left of a dot is room, but not beyond the axis.
        let (anchor, beside, height) = if is_last {
            ("end", x, y - 10.0)
        } else if x < LEFT + LABEL {
            ("start", x + 8.0, y + 18.0)
        } else {
            ("end", x - 6.0, y - 10.0)
        };
        let _ = writeln!(
            text,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <text class=\"mark\" x=\"{beside:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">\
             {name} <tspan class=\"value\">{}</tspan></text>",
            height.max(TOP - 6.0),
            units::duration(value)
        );
    }
}

fn legend(text: &mut String, curves: &[Curve<'_>]) {
    let mut y = TOP + 18.0;
    for curve in curves {
        let (class, caption) = (curve.class, curve.caption);
        let _ = writeln!(
            text,
            "<line class=\"curve {class}\" x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>\
             <text class=\"caption\" x=\"{}\" y=\"{}\">{caption}</text>",
            LEFT + 16.0,
            LEFT + 44.0,
            LEFT + 54.0,
            y + 4.5
        );
        y += 22.0;
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The picture, in the units of SVG.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;

/// Room around the plot for titles, ticks and labels.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 72.0;

/// Width of a mark's label.
const LABEL: f64 = 96.0;

/// Colours of Okabe and Ito, which colour-blind people tell apart; dark where the reader's page is.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px;fill:#444}\
.paper{fill:#fff}.title{font-size:18px;font-weight:600;fill:#111}.subtitle{fill:#555}\
.grid{stroke:#e6e6e6}.axis{stroke:#888}.tick{fill:#666;font-size:12px}.label{fill:#444}\
.curve{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}\
.latency{stroke:#d55e00}.raw{stroke:#0072b2}.dot{fill:#d55e00;stroke:#fff;stroke-width:1.5}\
.mark{font-size:12px;paint-order:stroke;stroke:#fff;stroke-width:3px}.value{font-weight:600;fill:#111}\
@media(prefers-color-scheme:dark){text{fill:#bbb}.paper{fill:#16181c}.title,.value{fill:#f2f2f2}\
.subtitle,.label{fill:#aaa}.tick{fill:#999}.grid{stroke:#2c2f36}.axis{stroke:#777}\
.raw{stroke:#56b4e9}.dot,.mark{stroke:#16181c}}";

#[cfg(test)]
mod tests;
