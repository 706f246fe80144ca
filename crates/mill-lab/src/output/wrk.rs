//! wrk's block: of wrk 4, of the dialects that print the same (ours, sephe's, dpdk-httperf), and of wrk2, which adds
//! percentiles of an HDR histogram.

use super::quantity::Quantity;
use super::spectrum;
use super::{OutputError, Printed, missing};

/// For wrk's `-s`: prints its figures unrounded. With the argument `new` (behind `--`, which follows the URL) each request of a
/// thread is for a target of its own: its number is the query. Without it there is no `request`, which leaves wrk's fast
/// path as it is.
pub const SCRIPT: &str = r#"
function init(arguments)
  if arguments[1] == "new" then
    local number = 0
    function request()
      number = number + 1
      return wrk.format(nil, wrk.path .. "?" .. number)
    end
  end
end

function done(summary, latency, requests)
  io.write(string.format("FIGURES %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(90), latency:percentile(99),
    latency:percentile(99.9), latency.max))
end
"#;

/// Parses one block. Text before and after it is skipped.
pub(super) fn parse(tool: &'static str, text: &str) -> Result<Printed, OutputError> {
    let mut printed = Printed::default();
    let found = |what| missing(tool, what, text);
    banner(text, &mut printed).ok_or_else(|| found("Running … test @ URL"))?;
    threads(text, &mut printed).ok_or_else(|| found("… threads and … connections"))?;
    let total = total(text, &mut printed).ok_or_else(|| found("… requests in …, … read"))?;
    if printed.figures["requests"] > 0.0 {
        rows(text, &mut printed).ok_or_else(|| found("Latency …, Req/Sec …"))?;
        spectrum::read(text, &mut printed);
    } else {
        printed
            .notes
            .push(String::from("no request was answered: latency is unknown"));
    }
    let rate = field(text, "Requests/sec:")
        .and_then(Quantity::plain)
        .ok_or_else(|| found("Requests/sec:"))?;
    let transfer = field(text, "Transfer/sec:")
        .and_then(Quantity::bytes)
        .ok_or_else(|| found("Transfer/sec:"))?;
    printed.set("requests_per_s", rate.value);
    printed.set_transfer(transfer.value);
    // Both quotients are the same number; the total has three digits from 1 GB up, the rate often more.
    let quotients = [total.1.over(total.0), transfer.over(rate)];
    if let Some(best) = quotients
        .into_iter()
        .flatten()
        .min_by(|one, other| one.half_width.total_cmp(&other.half_width))
    {
        printed.set_response(best);
    }
    failures(text, &mut printed);
    if printed.figures["requests"] > 0.0 {
        unrounded(text, &mut printed);
    }
    Ok(printed)
}

/// `Running 30s test @ http://…`.
fn banner(text: &str, printed: &mut Printed) -> Option<()> {
    let (duration, url) = text
        .lines()
        .filter_map(|line| line.split_once("Running ")?.1.split_once(" test @ "))
        .next()?;
    printed.set("seconds.asked", Quantity::time(duration)?.value);
    printed.url = Some(String::from(url.trim()));
    Some(())
}

/// `8 threads and 15000 connections, 1 requests/connection`; the last part is sephe's.
fn threads(text: &str, printed: &mut Printed) -> Option<()> {
    let (threads, rest) = text
        .lines()
        .filter_map(|line| line.split_once(" threads and "))
        .next()?;
    let (connections, rest) = rest.split_once(" connections")?;
    printed.set("threads", Quantity::plain(threads)?.value);
    printed.set("connections_asked", Quantity::plain(connections)?.value);
    if let Some(each) = rest.trim_start_matches(',').strip_suffix("/connection") {
        printed.notes.push(format!("{} a connection", each.trim()));
    }
    Some(())
}

/// `405901 requests in 30.09s, 322.45MB read`: requests and bytes.
fn total(text: &str, printed: &mut Printed) -> Option<(Quantity, Quantity)> {
    let (requests, rest) = text
        .lines()
        .filter_map(|line| line.split_once(" requests in "))
        .next()?;
    let (seconds, read) = rest.split_once(", ")?;
    let requests = Quantity::plain(requests)?.value;
    let seconds = Quantity::time(seconds)?.value;
    let bytes = Quantity::bytes(read.strip_suffix(" read").unwrap_or(read).trim())?;
    printed.set("requests", requests);
    printed.set("seconds", seconds);
    let asked = printed.figures.get("seconds.asked").copied()?;
    if seconds < asked * SHORTEST {
        printed.interrupted = true;
        printed.notes.push(format!(
            "it ended after {seconds} s of the {asked} s asked for"
        ));
    }
    // A count is exact.
    let requests = Quantity {
        value: requests,
        half_width: 0.0,
    };
    Some((requests, bytes))
}

/// What `SCRIPT` has printed, in place of the figures of three digits.
fn unrounded(text: &str, printed: &mut Printed) -> Option<()> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("FIGURES "))?;
    let numbers: Vec<f64> = line
        .split(' ')
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let &[requests, us, bytes, p50, p90, p99, p999, max] = numbers.as_slice() else {
        return None;
    };
    let seconds = us / 1e6;
    printed.set("seconds", seconds);
    printed.set("requests_per_s", requests / seconds);
    printed.set_transfer(bytes / seconds);
    printed.set_response(Quantity {
        value: bytes / requests,
        half_width: 0.0,
    });
    printed.percentiles.clear();
    for (percent, us) in [
        (50.0, p50),
        (90.0, p90),
        (99.0, p99),
        (99.9, p999),
        (100.0, max),
    ] {
        printed.add_percentile(percent, us / 1e6);
    }
    printed.set("latency_s.max", max / 1e6);
    Some(())
}

/// `Latency    49.46ms  113.73ms   1.88s    89.24%` and `Req/Sec     1.70k   726.97     6.68k    71.25%`.
fn rows(text: &str, printed: &mut Printed) -> Option<()> {
    let row = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some(name)).then_some(())?;
            Some([words.next()?, words.next()?, words.next()?])
        })
    };
    let parts = ["mean", "stdev", "max"];
    for (part, text) in parts.into_iter().zip(row("Latency")?) {
        // wrk2 prints "-nan" for a histogram of one value: that part is left out.
        if let Some(time) = Quantity::time(text) {
            printed.set(&format!("latency_s.{part}"), time.value);
        }
    }
    for (part, text) in parts.into_iter().zip(row("Req/Sec")?) {
        if let Some(rate) = Quantity::metric(text) {
            printed.set(&format!("thread_requests_per_s.{part}"), rate.value);
        }
    }
    printed.figures.contains_key("latency_s.mean").then_some(())
}

/// `Socket errors: connect 0, read 0, write 0, timeout 579` and `Non-2xx or 3xx responses: 12`; both only if there were any.
fn failures(text: &str, printed: &mut Printed) {
    let mut counts = [0.0; 5];
    let kinds = ["connect", "read", "write", "timeout", "status"];
    if let Some(errors) = field(text, "Socket errors:") {
        for (kind, count) in errors
            .split(',')
            .filter_map(|part| part.trim().split_once(' '))
        {
            if let Some(index) = kinds.iter().position(|known| *known == kind) {
                counts[index] = Quantity::plain(count).map_or(0.0, |count| count.value);
            }
        }
    }
    if let Some(count) = field(text, "Non-2xx or 3xx responses:").and_then(Quantity::plain) {
        counts[4] = count.value;
    }
    let named: Vec<(&str, f64)> = kinds.into_iter().zip(counts).collect();
    // Answers that came too late or with a bad status are among the requests done; those that broke off are not.
    let broken = counts[0] + counts[1] + counts[2];
    printed.set_failures(&named, counts.iter().sum(), broken);
}

/// What follows a key that begins a line.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(key))
        .map(str::trim)
}

/// Share of the configured duration: wrk always uses all of it, so a shorter run was ended by ^C.
const SHORTEST: f64 = 0.98;
