//! The report as text.

use super::arguments::Options;
use super::recorder::{Counts, Row};
use super::statistics::{Spread, Times, ms, percentile, round_ms};
use super::tls::{self, Secured};
use core::time::Duration;
use std::io::{self, Write};

/// The data of reports.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) options: &'a Options,
    pub(super) server: &'a [u8],
    pub(super) secured: Option<&'a Secured>,
    pub(super) document_len: u64,
    pub(super) taken: Duration,
    pub(super) counts: Counts,
    pub(super) bytes_received: u64,
    pub(super) content_bytes: u64,
    pub(super) bytes_sent: u64,
    pub(super) times: Option<Times>,
    /// In the order of their total times.
    pub(super) rows: &'a [Row],
    /// When no request was answered, or how much was not served: ab's form has no place for it.
    pub(super) unserved: Option<String>,
}

/// Numbers per second, and others derived from the run's duration; none if that is zero.
pub(super) struct Rates {
    seconds: f64,
}

impl Outcome<'_> {
    /// The run's duration, in whole µs as in ab.
    pub(super) fn seconds(&self) -> f64 {
        self.taken.as_micros() as f64 / 1e6
    }

    pub(super) fn rates(&self) -> Option<Rates> {
        let seconds = self.seconds();
        (seconds > 0.0).then_some(Rates { seconds })
    }
}

impl Rates {
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    pub(super) fn kib_per_second(&self, bytes: u64) -> f64 {
        bytes as f64 / 1024.0 / self.seconds
    }
}

/// Writes the report.
pub(super) fn emit(outcome: &Outcome<'_>, out: &mut dyn Write) -> io::Result<()> {
    subject(outcome, out)?;
    counts(outcome, out)?;
    if outcome.counts.done > 0
        && let Some(rates) = outcome.rates()
    {
        self::rates(outcome, &rates, out)?;
    }
    let Some(times) = &outcome.times else {
        return Ok(());
    };
    out.write_all(b"\nConnection Times (ms)\n")?;
    if outcome.options.confidence {
        times_with_confidence(times, out)?;
    } else {
        times_without(times, out)?;
    }
    if outcome.options.percentiles && outcome.rows.len() > 1 {
        percentiles(outcome.rows, out)?;
    }
    Ok(())
}

fn subject(outcome: &Outcome<'_>, out: &mut dyn Write) -> io::Result<()> {
    let url = &outcome.options.url;
    let lines: [(&[u8], &[u8]); 2] = [
        (b"\n\nServer Software:        ", outcome.server),
        (b"\nServer Hostname:        ", &url.host),
    ];
    for (label, value) in lines {
        out.write_all(label)?;
        out.write_all(value)?;
    }
    writeln!(out, "\nServer Port:            {}", url.port)?;
    tls::emit(outcome.options, outcome.secured, out)?;
    out.write_all(b"\nDocument Path:          ")?;
    out.write_all(&url.path)?;
    if outcome.options.any_length {
        out.write_all(b"\nDocument Length:        Variable\n\n")
    } else {
        let len = outcome.document_len;
        write!(out, "\nDocument Length:        {len} bytes\n\n")
    }
}

fn counts(outcome: &Outcome<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (options, counts) = (outcome.options, &outcome.counts);
    let seconds = outcome.seconds();
    writeln!(out, "Concurrency Level:      {}", options.concurrency)?;
    writeln!(out, "Time taken for tests:   {seconds:.3} seconds")?;
    writeln!(out, "Complete requests:      {}", counts.done)?;
    writeln!(out, "Failed requests:        {}", counts.failed())?;
    if counts.failed() > 0 {
        writeln!(
            out,
            "   (Connect: {}, Receive: {}, Length: {}, Exceptions: {})",
            counts.connect, counts.receive, counts.length, counts.exceptions
        )?;
    }
    if counts.non_2xx > 0 {
        writeln!(out, "Non-2xx responses:      {}", counts.non_2xx)?;
    }
    if options.keep_alive {
        writeln!(out, "Keep-Alive requests:    {}", counts.kept_alive)?;
    }
    let received = outcome.bytes_received;
    writeln!(out, "Total transferred:      {received} bytes")?;
    if options.body.is_some() {
        writeln!(out, "Total body sent:        {}", outcome.bytes_sent)?;
    }
    let content = outcome.content_bytes;
    writeln!(out, "HTML transferred:       {content} bytes")
}

fn rates(outcome: &Outcome<'_>, rates: &Rates, out: &mut dyn Write) -> io::Result<()> {
    let done = outcome.counts.done;
    let concurrency = f64::from(outcome.options.concurrency);
    let seconds = outcome.seconds();
    let each = seconds * 1000.0 / done as f64;
    let mean = concurrency * seconds * 1000.0 / done as f64;
    let (received, sent) = (outcome.bytes_received, outcome.bytes_sent);
    writeln!(
        out,
        "Requests per second:    {:.2} [#/sec] (mean)",
        rates.per_second(done)
    )?;
    writeln!(out, "Time per request:       {mean:.3} [ms] (mean)")?;
    writeln!(
        out,
        "Time per request:       {each:.3} [ms] (mean, across all concurrent requests)"
    )?;
    writeln!(
        out,
        "Transfer rate:          {:.2} [Kbytes/sec] received",
        rates.kib_per_second(received)
    )?;
    if outcome.options.body.is_none() {
        return Ok(());
    }
    for (bytes, what) in [(sent, "sent"), (received + sent, "total")] {
        let rate = rates.kib_per_second(bytes);
        writeln!(out, "                        {rate:.2} kb/s {what}")?;
    }
    Ok(())
}

fn times_with_confidence(times: &Times, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"              min  mean[+/-sd] median   max\n")?;
    for (label, spread) in lines(times) {
        let deviation = spread.deviation / 1000.0;
        writeln!(
            out,
            "{label} {:>5} {:>4} {deviation:>5.1} {:>6} {:>7}",
            round_ms(spread.min),
            round_ms(spread.mean),
            round_ms(spread.median),
            round_ms(spread.max)
        )?;
    }
    for (what, spread) in [
        ("the initial connection time", &times.connect),
        ("the processing time", &times.processing),
        ("the waiting time", &times.waiting),
        ("the total time", &times.total),
    ] {
        sane(what, spread, out)?;
    }
    Ok(())
}

/// ab compares rounded numbers, and so must we.
fn sane(what: &str, spread: &Spread, out: &mut dyn Write) -> io::Result<()> {
    let apart = round_ms(spread.mean).abs_diff(round_ms(spread.median)) as f64;
    let deviation = spread.deviation / 1000.0;
    if apart > 2.0 * deviation {
        writeln!(
            out,
            "ERROR: The median and mean for {what} are more than twice the standard\n       \
             deviation apart. These results are NOT reliable."
        )
    } else if apart > deviation {
        writeln!(
            out,
            "WARNING: The median and mean for {what} are not within a normal deviation\n        \
             These results are probably not that reliable."
        )
    } else {
        Ok(())
    }
}

fn times_without(times: &Times, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"              min   avg   max\n")?;
    for (label, spread) in lines(times) {
        writeln!(
            out,
            "{label} {:>5} {:>5}{:>5}",
            round_ms(spread.min),
            round_ms(spread.mean),
            round_ms(spread.max)
        )?;
    }
    Ok(())
}

fn lines(times: &Times) -> [(&'static str, &Spread); 4] {
    [
        ("Connect:   ", &times.connect),
        ("Processing:", &times.processing),
        ("Waiting:   ", &times.waiting),
        ("Total:     ", &times.total),
    ]
}

fn percentiles(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\nPercentage of the requests served within a certain time (ms)\n")?;
    for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
        let time = round_ms(percentile(rows, percent));
        writeln!(out, "  {percent}%  {time:>5}")?;
    }
    let longest = round_ms(percentile(rows, 100));
    writeln!(out, " 100%  {longest:>5} (longest request)")
}

/// What ab's form hides, in one line of our own; `None` if the form is enough.
pub(super) fn warning(outcome: &Outcome<'_>) -> Option<String> {
    let parts: Vec<String> = [
        outcome.unserved.clone(),
        hidden_times(outcome),
        unanswered(outcome),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("millstream: {}", parts.join("; ")))
}

fn hidden_times(outcome: &Outcome<'_>) -> Option<String> {
    let times = outcome.times.as_ref()?;
    if times.total.mean < ROUNDING_MATTERS_US {
        let exact = [
            ("min", times.total.min),
            ("mean", times.total.mean),
            ("median", times.true_median),
            ("99%", percentile(outcome.rows, 99)),
            ("max", times.total.max),
        ];
        let exact = exact.map(|(name, us)| format!("{name} {:.3}", ms(us)));
        return Some(format!(
            "ab rounds to whole milliseconds; the total times are {} ms",
            exact.join(", ")
        ));
    }
    (round_ms(times.total.median) != round_ms(times.true_median)).then(|| {
        format!(
            "ab's median lies beyond the middle, that of the total times is {:.3} ms",
            ms(times.true_median)
        )
    })
}

/// ab counts a failed request once for each of the ways that it sees it fail.
fn unanswered(outcome: &Outcome<'_>) -> Option<String> {
    let count = outcome
        .counts
        .done
        .saturating_sub(outcome.rows.len() as u64);
    (count > 0).then(|| {
        format!("{count} requests failed without an answer: they are counted once each, and are not in the times")
    })
}

/// The mean total time below which half a millisecond, the rounding error, is 5 % and more.
const ROUNDING_MATTERS_US: u64 = 10_000;

#[cfg(test)]
mod tests;
