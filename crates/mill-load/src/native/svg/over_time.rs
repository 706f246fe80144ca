//! Answers per second and p99 over time, one below the other on one axis: whether and when it was a steady state.

use super::BELOW;
use super::area::Area;
use super::scale::{Up, latency_label, multiples, step};
use crate::native::outcome::Outcome;
use crate::native::series::Period;
use crate::native::units;
use core::time::Duration;
use std::fmt::Write;

/// The values of a period, or of several in a very long run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    begin: Duration,
    end: Duration,
    answered_per_second: f64,
    /// The highest p99 of its periods; none without an answer.
    p99: Option<Duration>,
}

/// The time axis: in seconds, minutes or hours, whichever gives small numbers.
#[derive(Debug)]
struct Clock {
    area: Area,
    end: Duration,
    unit: Duration,
    name: &'static str,
}

/// Draws below `top` and returns the lower end. A run of one interval has no plot over time.
pub(super) fn draw(text: &mut String, outcome: &Outcome<'_>, top: f64) -> f64 {
    let columns = columns(&outcome.results.periods, outcome.prepared.plan.interval);
    let Some(end) = columns.last().map(|last| last.end) else {
        return top;
    };
    if columns.len() < 2 {
        return top;
    }
    let rates = strip(top + HEADING);
    let latencies = strip(rates.bottom + HEADING);
    rate(
        text,
        &columns,
        outcome.options.rate,
        &Clock::new(rates, end),
    );
    let clock = Clock::new(latencies, end);
    p99(text, &columns, &clock);
    let since = if outcome.options.warm_up.is_zero() {
        "the beginning"
    } else {
        "the end of the warm-up"
    };
    let caption = format!("{} since {since}", clock.name);
    latencies.caption(text, &caption);
    latencies.bottom + BELOW
}

/// The whole periods; the rest at the end, more than a tenth shorter than the others, has no meaningful rate.
fn columns(periods: &[Period], interval: Duration) -> Vec<Column> {
    let whole: Vec<&Period> = periods
        .iter()
        .filter(|period| period.length() * 10 >= interval * 9)
        .collect();
    let together = whole.len().div_ceil(COLUMNS_MAX).max(1);
    whole.chunks(together).filter_map(column).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of an interval are far below 2^52"
)]
fn column(periods: &[&Period]) -> Option<Column> {
    let (first, last) = (periods.first()?, periods.last()?);
    let seconds: f64 = periods.iter().map(|one| one.length().as_secs_f64()).sum();
    let answered: u64 = periods.iter().map(|one| one.answered).sum();
    let with_answers = periods.iter().filter(|one| one.answered > 0);
    Some(Column {
        begin: first.begin,
        end: last.end,
        answered_per_second: answered as f64 / seconds.max(f64::MIN_POSITIVE),
        p99: with_answers.map(|one| one.p99).max(),
    })
}

fn rate(text: &mut String, columns: &[Column], offered: Option<f64>, clock: &Clock) {
    let area = clock.area;
    let rates = columns.iter().map(|column| column.answered_per_second);
    let highest = rates.fold(offered.unwrap_or(0.0), f64::max);
    let up = Up::linear(area, highest);
    for value in up.ticks() {
        area.rule_across(text, up.place(value), &rate_label(value));
    }
    clock.rules(text, false);
    area.floor(text);
    heading(text, area, "answered per second");
    if let Some(offered) = offered {
        let (left, right, y) = (area.left, area.right, up.place(offered));
        let (key, key_y) = (area.left + 172.0, area.top - 16.0);
        let _ = writeln!(
            text,
            "<line class=\"curve thin offered\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <line class=\"curve thin offered\" x1=\"{key}\" x2=\"{}\" y1=\"{key_y}\" y2=\"{key_y}\"/>\
             <text x=\"{}\" y=\"{}\">asked for</text>",
            key + 30.0,
            key + 40.0,
            key_y + 4.5
        );
    }
    let steps = columns
        .iter()
        .map(|column| (column, Some(up.place(column.answered_per_second))));
    staircase(text, "rate", clock, steps);
}

fn p99(text: &mut String, columns: &[Column], clock: &Clock) {
    let area = clock.area;
    let mut sorted: Vec<f64> = columns
        .iter()
        .filter_map(|column| Some(column.p99?.as_secs_f64()))
        .collect();
    sorted.sort_by(f64::total_cmp);
    let value = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let last = sorted.len().saturating_sub(1);
    let up = Up::latencies(area, value(0), value(last / 2), value(last));
    for value in up.ticks() {
        area.rule_across(text, up.place(value), &latency_label(value));
    }
    clock.rules(text, true);
    area.floor(text);
    let scale = if up.is_logarithmic() {
        "p99 of each interval (logarithmic)"
    } else {
        "p99 of each interval"
    };
    heading(text, area, scale);
    let steps = columns.iter().map(|column| {
        let y = column.p99.map(|p99| up.place(p99.as_secs_f64()));
        (column, y)
    });
    staircase(text, "latency", clock, steps);
}

/// A step for each column; a gap where there is no value.
fn staircase<'a>(
    text: &mut String,
    class: &str,
    clock: &Clock,
    steps: impl Iterator<Item = (&'a Column, Option<f64>)>,
) {
    let mut path = String::new();
    let mut pen_is_down = false;
    for (column, y) in steps {
        if let Some(y) = y {
            let (from, to) = (clock.place(column.begin), clock.place(column.end));
            let to_begin = if pen_is_down { 'L' } else { 'M' };
            let _ = write!(path, "{to_begin}{from:.1} {y:.1}H{to:.1}");
        }
        pen_is_down = y.is_some();
    }
    let _ = writeln!(text, "<path class=\"curve thin {class}\" d=\"{path}\"/>");
}

fn heading(text: &mut String, area: Area, heading: &str) {
    let (x, y) = (area.left, area.top - 12.0);
    let _ = writeln!(
        text,
        "<text class=\"heading\" x=\"{x}\" y=\"{y}\">{heading}</text>"
    );
}

/// `0`, `0.5`, `20,000`, `1.5 M`: a round number.
fn rate_label(value: f64) -> String {
    if value >= 1e6 {
        format!("{} M", round(value / 1e6))
    } else if value >= 100.0 {
        units::number(value)
    } else {
        round(value).to_string()
    }
}

/// Removes the rounding error of a multiplication from a round number.
fn round(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

impl Clock {
    fn new(area: Area, end: Duration) -> Self {
        let (unit, name) = match end.as_secs() {
            0..=180 => (1, "seconds"),
            181..=10_800 => (60, "minutes"),
            _ => (3600, "hours"),
        };
        Self {
            area,
            end,
            unit: Duration::from_secs(unit),
            name,
        }
    }

    fn place(&self, time: Duration) -> f64 {
        let share = time.as_secs_f64() / self.end.as_secs_f64().max(f64::MIN_POSITIVE);
        self.area.left + self.area.width() * share.clamp(0.0, 1.0)
    }

    fn rules(&self, text: &mut String, with_labels: bool) {
        let unit = self.unit.as_secs_f64();
        let high = self.end.as_secs_f64() / unit;
        for value in multiples(step(high, TIMES_MAX), high) {
            let time = Duration::try_from_secs_f64(value * unit).unwrap_or_default();
            let label = round(value).to_string();
            let label = with_labels.then_some(label.as_str());
            self.area.rule_up(text, self.place(time), label);
        }
    }
}

fn strip(top: f64) -> Area {
    Area {
        top,
        bottom: top + STRIP_HEIGHT,
        ..super::UPPER
    }
}

/// Height of a small plot.
const STRIP_HEIGHT: f64 = 78.0;

/// Room above a small plot for its heading.
const HEADING: f64 = 40.0;

/// More columns cannot be distinguished; periods are merged then.
const COLUMNS_MAX: usize = 400;

/// Values below the time axis, at most.
const TIMES_MAX: f64 = 15.0;

#[cfg(test)]
mod tests;
