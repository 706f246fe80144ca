//! A chart of a run: the latencies by percentile and, below, rate and p99 over time.

/// The rectangle of a plot.
mod area;
/// The curves over time.
mod over_time;
/// The curves over percentiles.
mod percentiles;
/// From values to coordinates.
mod scale;

use crate::native::outcome::Outcome;
use crate::native::{summary, units};
use area::Area;
use std::fmt::Write;

/// Draws a run. Without any answer the chart says so.
pub(super) fn emit(outcome: &Outcome<'_>) -> String {
    let mut body = String::new();
    let mut height = UPPER.bottom + BELOW;
    if outcome.results.measures.latency.is_empty() {
        let (x, y) = UPPER.middle();
        let _ = writeln!(
            body,
            "<text class=\"empty\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">no request was answered</text>"
        );
    } else {
        percentiles::draw(&mut body, outcome, UPPER);
        height = over_time::draw(&mut body, outcome, height);
    }
    let mut text = head(outcome, height);
    text.push_str(&body);
    text.push_str("</svg>\n");
    text
}

/// Everything around the plots: background, colours, and a description of the run and its result.
fn head(outcome: &Outcome<'_>, height: f64) -> String {
    let title = summary::title(outcome);
    let (what, how) = title.split_once('\n').unwrap_or((&title, ""));
    let results = outcome.results;
    let came_out = format!(
        "{} answered, {} failed; verdict: {}",
        units::rate(results.rate()),
        units::count(results.tally.failed()),
        outcome.verdict.word.name()
    );
    let left = UPPER.left;
    // A long line is compressed, so no words are cut and none overlap.
    let squeeze = if how.chars().count() > SUBTITLE_CHARS {
        let width = UPPER.right - left;
        format!(" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"")
    } else {
        String::new()
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>{full}</title>\n<desc>{how}; {came_out}</desc>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"{left}\" y=\"36\">{short}</text>\n\
         <text class=\"subtitle\" x=\"{left}\" y=\"59\"{squeeze}>{how}</text>\n\
         <text class=\"subtitle\" x=\"{left}\" y=\"79\">{came_out}</text>\n",
        full = escape(what),
        short = escape(&shortened(what, TITLE_CHARS)),
        how = escape(how),
    )
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => String::from(text),
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

/// XML 1.0 section 2.4; characters that section 2.2 forbids are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The picture, in the units of SVG.
const WIDTH: f64 = 960.0;

/// The plot over percentiles, with room for the ticks on the left, and for title and legend above.
const UPPER: Area = Area {
    left: 84.0,
    right: 920.0,
    top: 126.0,
    bottom: 470.0,
};

/// Room below a plot: its ticks and their caption.
const BELOW: f64 = 64.0;

/// Letters of the title that fit, in the widest fonts of common systems.
const TITLE_CHARS: usize = 72;

/// The same of the smaller line below.
const SUBTITLE_CHARS: usize = 112;

/// Colours of Okabe and Ito, which colour-blind people can distinguish; dark in dark mode. The first curve and the
/// second one differ in their dashes too.
const STYLE: &str = "\
text{font-family:system-ui,sans-serif;font-size:13px;fill:#444}\
.paper{fill:#fff}.title{font-size:18px;font-weight:600;fill:#111}.subtitle{fill:#555}\
.empty{font-size:16px}.heading{font-weight:600;fill:#333}\
.grid{stroke:#e6e6e6}.axis{stroke:#888}.tick{fill:#666;font-size:12px}\
.curve{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}\
.thin{stroke-width:1.75}.latency{stroke:#d55e00}.raw{stroke:#0072b2;stroke-dasharray:7 5}\
.rate{stroke:#007a5a}.offered{stroke:#777;stroke-dasharray:3 4}\
.dot{fill:#d55e00;stroke:#fff;stroke-width:1.5}\
.mark{font-size:12px;stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}\
.value{font-weight:600;fill:#111}\
@media(prefers-color-scheme:dark){text{fill:#bbb}.paper{fill:#16181c}.title,.value{fill:#f2f2f2}\
.subtitle{fill:#aaa}.heading{fill:#ccc}.tick{fill:#999}.grid{stroke:#2c2f36}.axis{stroke:#777}\
.latency{stroke:#f0772b}.raw{stroke:#56b4e9}.rate{stroke:#1fbf92}.offered{stroke:#999}\
.dot{fill:#f0772b;stroke:#16181c}.mark{stroke:#16181c}}";

#[cfg(test)]
mod tests;
