//! h2load's report.
//!
//! ```text
//! finished in 68.06ms, 29384.54 req/s, 77.77MB/s
//! requests: 2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout
//! status codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx
//! traffic: 5.29MB (5550196) total, 210.94KB (216000) headers (space savings 39.66%), 5.05MB (5298000) data
//!                      min         max         mean         sd        +/- sd
//! time for request:       44us      4.93ms       236us       377us    98.80%
//! time for connect:      180us       562us       359us       158us    50.00%
//! time to 1st byte:      971us      1.23ms      1.08ms       111us    75.00%
//! ```
//!
//! Later versions have columns for the median, p95 and p99, and shorter names of rows.

use super::figures::percentile_name;
use super::quantity::Quantity;
use super::{OutputError, Printed, missing};

/// Parses one report. Text before and after it is skipped.
pub(super) fn parse(tool: &'static str, text: &str) -> Result<Printed, OutputError> {
    let mut printed = Printed::default();
    let found = |what| missing(tool, what, text);
    finished(text, &mut printed).ok_or_else(|| found("finished in …, … req/s, …B/s"))?;
    let counts = counts(text, "requests:", "timeout").ok_or_else(|| found("requests: …"))?;
    let codes = counts_of_codes(text).ok_or_else(|| found("status codes: …"))?;
    let bytes = traffic(text).ok_or_else(|| found("traffic: … (…) total"))?;
    let count = |name: &str| {
        let found = counts.iter().find(|(_, known)| *known == name);
        found.map_or(0.0, |(count, _)| *count)
    };
    let done = count("done");
    printed.set("requests", done);
    // With a warm-up "finished in" is longer than what the rate is of.
    let rate = printed.figures["requests_per_s"];
    if rate > 0.0 {
        printed.set("seconds", done / rate);
    }
    if done > 0.0 {
        printed.set_response(Quantity {
            value: bytes / done,
            half_width: 0.0,
        });
    }
    let named = [
        ("connect", 0.0),
        ("read", count("errored")),
        ("write", 0.0),
        ("timeout", count("timeout")),
        ("status", codes),
    ];
    let all = count("failed").max(count("errored") + codes) + count("timeout");
    printed.set_failures(&named, all, (count("started") - done).max(0.0));
    if done < count("total") {
        printed.interrupted = true;
        let total = count("total");
        printed.notes.push(format!("{done} of {total} requests"));
    }
    clients(text, &mut printed);
    if done > 0.0 {
        table(text, &mut printed).ok_or_else(|| found("time to 1st byte: …"))?;
    }
    printed.sort_percentiles();
    Ok(printed)
}

fn finished(text: &str, printed: &mut Printed) -> Option<()> {
    let line = line(text, "finished in ")?;
    let mut parts = line.split(", ");
    let whole = Quantity::time(parts.next()?)?;
    let rate = Quantity::plain(parts.next()?.strip_suffix(" req/s")?)?;
    let transfer = Quantity::bytes(parts.next()?.strip_suffix("/s")?)?;
    printed.set("seconds", whole.value);
    printed.set("requests_per_s", rate.value);
    printed.set_transfer(transfer.value);
    Some(())
}

/// `requests: 2000 total, 2000 started, …`, whole to its last name.
fn counts<'a>(text: &'a str, key: &str, last: &str) -> Option<Vec<(f64, &'a str)>> {
    let line = line(text, key)?;
    let parts: Option<Vec<(f64, &str)>> = line
        .split(',')
        .map(|part| {
            let (count, name) = part.trim().split_once(' ')?;
            Some((Quantity::plain(count)?.value, name))
        })
        .collect();
    parts.filter(|parts| parts.last().is_some_and(|(_, name)| *name == last))
}

/// How many answers were 4xx or 5xx.
fn counts_of_codes(text: &str) -> Option<f64> {
    let codes = counts(text, "status codes:", "5xx")?;
    let bad = codes
        .iter()
        .filter(|(_, name)| matches!(*name, "4xx" | "5xx"));
    Some(bad.map(|(count, _)| count).sum())
}

/// Bytes in all, exactly.
fn traffic(text: &str) -> Option<f64> {
    let (total, _) = line(text, "traffic:")?.split_once(" total")?;
    let (_, exact) = total.split_once('(')?;
    Quantity::plain(exact.strip_suffix(')')?).map(|bytes| bytes.value)
}

/// `spawning thread #0: 4 total client(s). 2000 total requests`, once for each thread.
fn clients(text: &str, printed: &mut Printed) {
    let each: Vec<f64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("spawning thread #"))
        .filter_map(|rest| rest.split_once(": ")?.1.split_once(" total client"))
        .filter_map(|(clients, _)| Quantity::plain(clients))
        .map(|clients| clients.value)
        .collect();
    if each.is_empty() {
        return;
    }
    printed.set("connections_asked", each.iter().sum());
    printed.set("threads", each.iter().map(|_| 1.0).sum());
    if let Some(protocol) = line(text, "Application protocol:") {
        printed.notes.push(format!("protocol {protocol}"));
    }
}

/// The times, by the names of the columns.
fn table(text: &str, printed: &mut Printed) -> Option<()> {
    let is_head = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next() == Some("min") && words.next() == Some("max")
    };
    let columns: Vec<&str> = text
        .lines()
        .find(is_head)?
        .split_whitespace()
        .take_while(|name| *name != "+/-")
        .collect();
    for (keys, family) in [
        (["time for request:", "request "], "latency_s"),
        (["time for connect:", "connect "], "connect_s"),
        (["time to 1st byte:", "TTFB "], "waiting_s"),
    ] {
        let row = keys.iter().find_map(|key| line(text, key))?;
        let cells = row.trim_start_matches([' ', ':']).split_whitespace();
        let mut cells = cells.map(Quantity::time);
        for column in &columns {
            let seconds = cells.next()??.value;
            match *column {
                "sd" => printed.set(&format!("{family}.stdev"), seconds),
                "median" => percentile(printed, family, 50.0, seconds),
                "p95" => percentile(printed, family, 95.0, seconds),
                "p99" => percentile(printed, family, 99.0, seconds),
                name => printed.set(&format!("{family}.{name}"), seconds),
            }
        }
    }
    Some(())
}

fn percentile(printed: &mut Printed, family: &str, percent: f64, seconds: f64) {
    if family == super::curve::LATENCY {
        printed.add_percentile(percent, seconds);
    } else {
        printed.set(&percentile_name(family, percent), seconds);
    }
}

/// What follows a key that begins a line.
fn line<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .map(str::trim)
}
