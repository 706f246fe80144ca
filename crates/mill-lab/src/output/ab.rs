//! ab's report, of the released 2.3 and of its trunk. Keys are looked for anywhere in a line, because documents that quote a report
//! run its lines together.

use super::quantity::Quantity;
use super::{OutputError, Printed, missing};

/// Parses one report. Text before and after it is skipped.
pub(super) fn parse(tool: &'static str, text: &str) -> Result<Printed, OutputError> {
    let mut printed = Printed::default();
    if !text.contains("Complete requests:")
        && let Some(count) = aborted(text)
    {
        printed.set("requests", count);
        printed.interrupted = true;
        printed.notes.push(format!(
            "ab gave up after {count} requests and printed no figures; -r goes on after errors"
        ));
        return Ok(printed);
    }
    let need = |key: &'static str| number(text, key).ok_or_else(|| missing(tool, key, text));
    let connections = need("Concurrency Level:")?;
    let seconds = need("Time taken for tests:")?;
    let requests = need("Complete requests:")?;
    let failed = need("Failed requests:")?;
    let transferred = need("Total transferred:")?;
    let rate = need("Requests per second:")?;
    let transfer = need("Transfer rate:")?;
    // The words at its end prove that the number is whole.
    if !text.contains("[Kbytes/sec] received") {
        return Err(missing(
            tool,
            "Transfer rate: … [Kbytes/sec] received",
            text,
        ));
    }
    printed.set("connections_asked", connections);
    printed.set("seconds", seconds);
    printed.set("requests", requests);
    printed.set("requests_per_s", rate);
    printed.set_transfer(transfer * KIB);
    if requests > 0.0 {
        printed.set_response(Quantity {
            value: transferred / requests,
            half_width: 0.0,
        });
    }
    if let Some(length) = number(text, "Document Length:") {
        printed.set("bytes_per_response.content", length);
    }
    if let Some(mean) = number(text, "Time per request:") {
        printed.set("latency_s.mean", mean / 1000.0);
    }
    printed.url = url(text);
    failures(text, failed, &mut printed);
    times(text, &mut printed);
    percentiles(text, &mut printed)
        .ok_or_else(|| missing(tool, "100% … (longest request)", text))?;
    exact_percentiles(text, &mut printed);
    notes(text, requests, &mut printed);
    Ok(printed)
}

/// `Total of 101 requests completed`: ab's only output when a socket failed without -r.
fn aborted(text: &str) -> Option<f64> {
    let (_, rest) = text.rsplit_once("Total of ")?;
    let (count, _) = rest.split_once(" requests completed")?;
    Quantity::plain(count).map(|count| count.value)
}

/// The first number after a key.
fn number(text: &str, key: &str) -> Option<f64> {
    let word = word(text, key)?;
    Quantity::plain(word).map(|number| number.value)
}

fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    rest.lines().next()?.split_whitespace().next()
}

fn url(text: &str) -> Option<String> {
    let host = word(text, "Server Hostname:")?;
    let port = word(text, "Server Port:")?;
    let path = word(text, "Document Path:")?;
    let secure = text.contains("SSL/TLS Protocol:");
    let scheme = if secure { "https" } else { "http" };
    Some(match (port, secure) {
        ("80", false) | ("443", true) => format!("{scheme}://{host}{path}"),
        _ => format!("{scheme}://{host}:{port}{path}"),
    })
}

/// `Failed requests: 150` and, below it, `(Connect: 0, Receive: 100, Length: 0, Exceptions: 50)`.
fn failures(text: &str, failed: f64, printed: &mut Printed) {
    let kinds = text
        .split_once("(Connect:")
        .and_then(|(_, rest)| rest.split_once(')'))
        .map_or(String::new(), |(kinds, _)| format!("Connect:{kinds}"));
    let kind = |name: &str| number(&kinds.replace(',', " "), name).unwrap_or(0.0);
    let [connect, read, length, exception] =
        ["Connect:", "Receive:", "Length:", "Exceptions:"].map(kind);
    let write = number(text, "Write errors:").unwrap_or(0.0);
    let status = number(text, "Non-2xx responses:").unwrap_or(0.0);
    // An error page mostly has another length than the document, and is counted twice then.
    let all = failed + write + (status - length).max(0.0);
    let named = [
        ("connect", connect),
        ("read", read),
        ("length", length),
        ("exception", exception),
        ("write", write),
        ("status", status),
    ];
    printed.set_failures(&named, all, 0.0);
}

/// `Connect:        0    1   0.7      0       6`: min, mean, sd, median, max in ms. With -S ab leaves sd and median out.
fn times(text: &str, printed: &mut Printed) {
    let rows = [
        ("Connect:", "connect_s"),
        ("Processing:", "processing_s"),
        ("Waiting:", "waiting_s"),
        ("Total:", "total_s"),
    ];
    let Some((_, table)) = text.split_once("Connection Times (ms)") else {
        return;
    };
    for (key, family) in rows {
        let Some((_, rest)) = table.split_once(key) else {
            continue;
        };
        // A row that does not end may lack digits.
        let Some((row, _)) = rest.split_once('\n') else {
            continue;
        };
        let cells: Vec<f64> = row
            .split_whitespace()
            .map_while(Quantity::plain)
            .map(|cell| cell.value / 1000.0)
            .collect();
        let names: &[&str] = match cells.len() {
            5 => &["min", "mean", "stdev", "median", "max"],
            3 => &["min", "mean", "max"],
            _ => continue,
        };
        for (name, seconds) in names.iter().zip(cells) {
            printed.set(&format!("{family}.{name}"), seconds);
            if family == "total_s" && matches!(*name, "stdev" | "max") {
                printed.set(&format!("latency_s.{name}"), seconds);
            }
        }
    }
}

/// Rows such as `99,0.130` of what `-e` writes, which has microseconds where the report has milliseconds.
fn exact_percentiles(text: &str, printed: &mut Printed) {
    let Some((_, rows)) = text.split_once("Percentage served,Time in ms") else {
        return;
    };
    let steps = rows.lines().filter_map(|line| line.split_once(','));
    let steps =
        steps.filter_map(|(percent, ms)| Some((percent.parse().ok()?, ms.trim().parse().ok()?)));
    let steps: Vec<(f64, f64)> = steps.collect();
    printed.percentiles.clear();
    for (percent, ms) in steps {
        printed.add_percentile(percent, ms / 1000.0);
        if percent >= 100.0 {
            printed.set("latency_s.max", ms / 1000.0);
        }
    }
}

/// `50%      1` … `100%      8 (longest request)`. Nothing if there is no such table (-d, or a single request); none if it is cut off.
fn percentiles(text: &str, printed: &mut Printed) -> Option<()> {
    let Some((_, table)) = text.split_once("Percentage of the requests served") else {
        return Some(());
    };
    let (_, table) = table.split_once("(ms)")?;
    let (table, _) = table.split_once("(longest request)")?;
    // In quoted reports a column may have slipped (`50% 3 3 66% 75% 3`): then percents and times still come in the same order.
    let words = || table.split_whitespace();
    let percents = words().filter_map(|word| word.strip_suffix('%').and_then(Quantity::plain));
    let times = words().filter_map(Quantity::plain);
    let steps: Vec<(f64, f64)> = percents
        .zip(times)
        .map(|(percent, ms)| (percent.value, ms.value / 1000.0))
        .collect();
    for (percent, seconds) in steps {
        printed.add_percentile(percent, seconds);
        if percent < 100.0 {
            let name = super::figures::percentile_name("total_s", percent);
            printed.set(&name, seconds);
        }
    }
    printed.sort_percentiles();
    Some(())
}

fn notes(text: &str, requests: f64, printed: &mut Printed) {
    if let Some(kept) = number(text, "Keep-Alive requests:") {
        printed
            .notes
            .push(format!("{kept} requests on kept connections"));
    }
    let warnings = text
        .lines()
        .filter(|line| line.starts_with("WARNING:"))
        .map(|line| format!("ab: {}", line.trim_start_matches("WARNING: ")));
    printed.notes.extend(warnings);
    // Progress goes to standard error, and is here if both were stored: it has the number of requests.
    let asked = text.rsplit_once("ab -n ").and_then(|(_, rest)| {
        let count = rest.split_whitespace().next()?;
        Quantity::plain(count)
    });
    if let Some(asked) = asked
        && requests < asked.value
    {
        printed.interrupted = true;
        printed
            .notes
            .push(format!("{requests} of {} requests", asked.value));
    }
}

/// Bytes of ab's "Kbytes".
const KIB: f64 = 1024.0;
