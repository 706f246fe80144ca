//! h2load's report.

use super::arguments::Arguments;
use super::recorder::Recorder;
use crate::plan::Plan;
use crate::tally::Tally;
use core::time::Duration;
use mill_metrics::Histogram;
use std::io::{self, Write};

/// The results of a run.
#[derive(Debug)]
pub(super) struct Figures<'a> {
    pub(super) recorder: &'a Recorder,
    pub(super) tally: Tally,
    /// Heads are sent as they are.
    pub(super) is_http1: bool,
    pub(super) timeouts: u64,
    /// As asked for; `None`: for a time.
    pub(super) requests: Option<u64>,
    pub(super) measured: Duration,
}

pub(super) fn emit_banner(
    arguments: &Arguments,
    plan: &Plan,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "starting benchmark...")?;
    for share in plan.shares() {
        let (thread, clients) = (share.thread, share.connections.len());
        match (arguments.duration, share.requests) {
            (Some(duration), _) => writeln!(
                out,
                "spawning thread #{thread}: {clients} total client(s). Timing-based test with {}s of warm-up time and {}s of main \
                 duration for measurements.",
                arguments.warm_up.as_secs_f64(),
                duration.as_secs_f64()
            )?,
            (None, requests) => writeln!(
                out,
                "spawning thread #{thread}: {clients} total client(s). {} total requests",
                requests.unwrap_or(0)
            )?,
        }
    }
    writeln!(out, "Application protocol: {}", arguments.protocol())
}

pub(super) fn emit(figures: &Figures<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Figures {
        recorder,
        tally,
        measured,
        ..
    } = figures;
    let seconds = measured.as_secs_f64().max(1e-9);
    let [_, ok, moved, refused, broken] = tally.statuses;
    let succeeded = ok + moved;
    let total = figures
        .requests
        .unwrap_or(tally.started - tally.unfinished());
    let errored = total.saturating_sub(tally.answered);
    writeln!(
        out,
        "\nfinished in {}, {:.2} req/s, {}/s",
        time(*measured),
        tally.answered as f64 / seconds,
        bytes(tally.bytes_received as f64 / seconds)
    )?;
    writeln!(
        out,
        "requests: {total} total, {} started, {} done, {succeeded} succeeded, {} failed, {errored} errored, {} timeout",
        tally.started,
        tally.answered,
        total.saturating_sub(succeeded),
        figures.timeouts
    )?;
    writeln!(
        out,
        "status codes: {ok} 2xx, {moved} 3xx, {refused} 4xx, {broken} 5xx"
    )?;
    let exact = |count: u64| format!("{} ({count})", bytes(count as f64));
    writeln!(
        out,
        "traffic: {} total, {} headers (space savings {:.2}%), {} data",
        exact(tally.bytes_received),
        exact(match figures.is_http1 {
            true => recorder.head_bytes,
            false => tally.head_bytes,
        }),
        savings(tally),
        exact(tally.content_bytes)
    )?;
    writeln!(
        out,
        "                     min         max         mean         sd        +/- sd"
    )?;
    emit_times("time for request", &Spread::of(&recorder.requests), out)?;
    let clients = recorder.clients.iter();
    let connects = clients.clone().filter_map(|client| client.connect);
    let first_bytes = clients.clone().filter_map(|client| client.first_byte);
    let seconds = |times: &mut dyn Iterator<Item = Duration>| {
        Spread::of_values(&times.map(|time| time.as_secs_f64()).collect::<Vec<_>>())
    };
    emit_times("time for connect", &seconds(&mut connects.into_iter()), out)?;
    emit_times(
        "time to 1st byte",
        &seconds(&mut first_bytes.into_iter()),
        out,
    )?;
    let rates: Vec<f64> = clients.filter_map(super::recorder::Client::rate).collect();
    let rates = Spread::of_values(&rates);
    let [min, max, mean, sd] = rates.figures();
    writeln!(
        out,
        "req/s           : {min:>10.2}  {max:>10.2}  {mean:>10.2}  {sd:>10.2}{:>10}",
        format!("{:.2}%", rates.within)
    )
}

/// How much the fields have become shorter by their coding.
fn savings(tally: &Tally) -> f64 {
    match tally.head_field_bytes {
        0 => 0.0,
        fields => (1.0 - tally.head_bytes as f64 / fields as f64) * 100.0,
    }
}

fn emit_times(name: &str, spread: &Spread, out: &mut dyn Write) -> io::Result<()> {
    let [min, max, mean, sd] = spread
        .figures()
        .map(|seconds| time(Duration::from_secs_f64(seconds.max(0.0))));
    writeln!(
        out,
        "{name}: {min:>10}  {max:>10}  {mean:>10}  {sd:>10}{:>10}",
        format!("{:.2}%", spread.within)
    )
}

/// The least, the most, the mean and the standard deviation of some values, and how many lie within one deviation of the mean.
#[derive(Debug)]
struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    sd: f64,
    /// Percent.
    within: f64,
}

impl Spread {
    fn figures(&self) -> [f64; 4] {
        [self.min, self.max, self.mean, self.sd]
    }

    fn of_values(values: &[f64]) -> Self {
        let count = values.len() as f64;
        if values.is_empty() {
            return Self {
                min: 0.0,
                max: 0.0,
                mean: 0.0,
                sd: 0.0,
                within: 0.0,
            };
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        // As h2load: of a sample.
        let sd = (squares.sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
        let is_within = |value: &&f64| (**value - mean).abs() <= sd;
        Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            mean,
            sd,
            within: values.iter().filter(is_within).count() as f64 / count * 100.0,
        }
    }

    /// Of a histogram: its steps are a thousandth of their value wide.
    fn of(histogram: &Histogram) -> Self {
        if histogram.is_empty() {
            return Self::of_values(&[]);
        }
        let (mean, sd) = (histogram.mean(), histogram.stdev());
        let above = histogram.count_above(mean + sd);
        let not_below = histogram.count_above(mean.saturating_sub(sd));
        let within = not_below.saturating_sub(above) as f64 / histogram.count() as f64;
        Self {
            min: histogram.min().as_secs_f64(),
            max: histogram.max().as_secs_f64(),
            mean: mean.as_secs_f64(),
            sd: sd.as_secs_f64(),
            within: within * 100.0,
        }
    }
}

/// `740us`, `7.31ms`, `1.00s`.
fn time(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1000 => format!("{micros}us"),
        1000..1_000_000 => format!("{:.2}ms", micros as f64 / 1e3),
        _ => format!("{:.2}s", time.as_secs_f64()),
    }
}

/// `3.07KB`, with powers of 1024.
fn bytes(count: f64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    if count < 1024.0 {
        return format!("{count:.0}B");
    }
    let mut scaled = count / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!(
        "{scaled:.2}{}",
        units.get(unit).copied().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_h2loads_forms() {
        let check =
            |micros, expected: &str| assert_eq!(time(Duration::from_micros(micros)), expected);
        check(0, "0us");
        check(740, "740us");
        check(7_312, "7.31ms");
        check(2_004_000, "2.00s");
        assert_eq!(bytes(0.0), "0B");
        assert_eq!(bytes(3140.0), "3.07KB");
        assert_eq!(bytes(1_100_000.0), "1.05MB");
    }

    #[test]
    fn a_spread_counts_what_lies_within_its_deviation() {
        let spread = Spread::of_values(&[1.0, 2.0, 3.0, 4.0, 10.0]);
        assert_eq!((spread.min, spread.max, spread.mean), (1.0, 10.0, 4.0));
        assert!((spread.sd - 3.5355).abs() < 1e-3);
        assert!((spread.within - 80.0).abs() < 1e-9);
    }
}
